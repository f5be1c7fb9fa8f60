"""What tests of several kinds share."""

import gc
import os
import signal
import sys
from pathlib import Path

# Before numpy: tests run side by side, and threads that wait for a core took half of their time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

from com_demos.background import DOMAIN_IDS, free_domain_id, reserved

gc.disable()  # until all tests are collected: each worker imports everything in half of the time
# Tests that run side by side (pytest -n) draw from sets of ROS domains that do not overlap.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
DOMAINS = DOMAIN_IDS[WORKER::WORKERS]
if "PYTEST_XDIST_WORKER" in os.environ or "ROS_DOMAIN_ID" not in os.environ:
    DOMAIN = free_domain_id(DOMAINS) or DOMAINS[0]
    os.environ["ROS_DOMAIN_ID"] = str(DOMAIN)
    RESERVATION = reserved(DOMAIN)  # kept while the tests run
os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")

ROOT = Path(__file__).resolve().parents[1]
# All processes of the tests keep bytecode, also in containers whose environment forbids it: a node
# takes less than half of the time to start.
sys.dont_write_bytecode, sys.pycache_prefix = False, str(ROOT / "build" / "pycache")
os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": sys.pycache_prefix}
SHARE = ROOT / "src" / "robot_descriptions"
sys.path.append(str(ROOT / "benchmarks"))  # baselines and scenarios that tests use, too
sys.path.append(str(ROOT / "test" / "helpers"))
sys.path.append(str(ROOT / "tools" / "robustness"))
pytest.register_assert_rewrite(*(path.stem for path in ROOT.glob("test/helpers/*.py")))
# A shell lets what it starts in the background ignore Ctrl-C, and programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
GRAVITY = 9.81
# Files by the beginnings of their paths that run in one process: they share simulated recordings,
# or start a demo twice, which is more than two cores can do.
TOGETHER = {
    "test/system/test_demo_identify.py": "pairs",
    "test/system/test_demo_trot.py": "pairs",
    "test/system/test_demo_walk.py": "pairs",
    "test/unit/com_estimation/trunk/test_bad_input.py": "trots",
    "test/unit/com_estimation/trunk/test_floating_base.py": "trots",
    "test/unit/com_identification/walking/": "walks",
    "test/unit/com_identification/commands/test_identify_bag": "bags",
}
# A file whose tests take long and share nothing: each runs where there is room.
APART = "test/system/test_security_policy.py"
ORACLES = {"pinocchio": "pin", "example_robot_data": "example-robot-data"}


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "slow: files of 3 s and more, left out of make test-fast"
    )
    rest = "exhaustive: variants of other tests, more robots, long runs; left out of make test"
    config.addinivalue_line("markers", rest)
    alone = "alone: runs after all others, one at a time; a browser, or what needs real time"
    config.addinivalue_line("markers", alone)
    config.option.loadscopereorder = False  # of pytest -n: not by the number of tests


def pytest_collection_modifyitems(items):
    """The longest first, and beside them those that wait for time to pass.

    So tests that run side by side end together, and cores have work while others wait.
    """
    kinds = ("system", "integration", "unit")

    def kind(item):
        return item.path.relative_to(ROOT / "test").parts[0]

    def group(item):
        slow = item.get_closest_marker("slow") is not None
        long = slow or kind(item) == "system"
        return "long" if long else "waits" if kind(item) == "integration" else "short"

    items.sort(key=lambda item: kinds.index(kind(item)))
    files = {}  # of each group, with their places in it
    for item in items:
        places = files.setdefault(group(item), {})
        places.setdefault(item.path, len(places))

    def rank(item):
        places = files[group(item)]
        return group(item) == "short", places[item.path] / len(places)

    items.sort(key=rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """--dist loadfile, but for TOGETHER."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith(APART):
                return nodeid
            names = (name for path, name in TOGETHER.items() if nodeid.startswith(path))
            return next(names, None) or super()._split_scope(nodeid)

    return Scheduling(config, log)


def pytest_collection_finish():
    gc.freeze()  # the tests and what they imported stay: no collection need look at them
    gc.enable()


class MissingOracles:
    """Finder of modules that skips whoever imports an oracle that is not installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in ORACLES:
            needed = (
                f"{ORACLES[name]} is not installed (tools/requirements/oracles.txt)"
            )
            pytest.skip(needed, allow_module_level=True)


sys.meta_path.append(
    MissingOracles
)  # the last one: asked for what all others have not found


class StandingRobot:
    """A robot whose URDF is wrong, and what its sensors really read; Pinocchio knows the truth.

    Args:
        name: of a robot of robot_descriptions.
        rng: draws the errors of the URDF.
        std: m, standard deviation of each body's centre of mass against the URDF.

    Attributes:
        noise: draws the noise of readings; of its own where their number depends on time.
    """

    force_noise, moment_noise, position_noise = 0.5, 0.025, np.radians(0.05)

    def __init__(self, name, rng, std=0.005):
        import pinocchio

        from com_identification.store.results import corrected_inertials
        from com_model import RobotConfig, RobotModel
        from com_model.urdf.editing import edit_inertials

        self.config_path = SHARE / "config" / f"{name}.yaml"
        self.config = RobotConfig.from_file(self.config_path)
        self.model = RobotModel.from_file(self.config.urdf)
        bodies = self.model.bodies
        com = bodies.first_moment / bodies.mass[:, None]
        self.true_com = com + rng.normal(0.0, std, com.shape)
        change = corrected_inertials(self.model, bodies.mass, self.true_com)
        self.true_xml = edit_inertials(self.model.xml, change)
        self._pin = pinocchio
        self._oracle = pinocchio.buildModelFromXML(
            self.true_xml, pinocchio.JointModelFreeFlyer()
        )
        self._data = self._oracle.createData()
        self._index = [
            self._oracle.joints[self._oracle.getJointId(joint)].idx_q
            for joint in self.model.joint_names
        ]
        self._rng = self.noise = rng

    def wrenches(self, q, load):
        """(f, 6) true wrenches of feet that share the weight as `load`; the loaded soles are level.

        All feet's frames must be parallel where more than one is loaded.
        """
        frames = [self.frame(q, foot.wrench_frame) for foot in self.config.feet]
        up = frames[int(np.argmax(load))][0][:, 2]
        weight = self.model.mass * GRAVITY * up
        rest = np.cross(self.com(q), weight)
        for fraction, (_, p) in zip(load, frames, strict=True):
            rest = rest - np.cross(p, fraction * weight)
        return np.array(
            [
                foot.wrench_sign
                * np.concatenate((R.T @ (fraction * weight), R.T @ (fraction * rest)))
                for foot, fraction, (R, _) in zip(
                    self.config.feet, load, frames, strict=True
                )
            ]
        )

    def read(self, q, load, count):
        """`count` noisy readings: joint positions (count, n) and wrenches (count, f, 6)."""
        wrenches = self.wrenches(q, load)
        spread = np.repeat([self.force_noise, self.moment_noise], 3)
        noise = self.noise.normal(size=(count, *wrenches.shape)) * spread
        Q = q + self.position_noise * self.noise.normal(size=(count, len(q)))
        return Q, wrenches + noise

    def com(self, q, xml=None):
        """True centre of mass (3,) m in root axes; or that of a URDF."""
        oracle, data = self._oracle, self._data
        if xml is not None:
            oracle = self._pin.buildModelFromXML(xml, self._pin.JointModelFreeFlyer())
            data = oracle.createData()
        return self._pin.centerOfMass(oracle, data, self._full(q)).copy()

    def frame(self, q, name):
        """R, p of a link in root axes."""
        self._pin.framesForwardKinematics(self._oracle, self._data, self._full(q))
        pose = self._data.oMf[self._oracle.getFrameId(name)]
        return pose.rotation.copy(), pose.translation.copy()

    def random_posture(self):
        """Joint positions (n,), same legs, the CoM above the soles; and the load (f,)."""
        half = self.model.n_joints // 2
        low, high = (
            np.maximum(self.model.lower, -1.5),
            np.minimum(self.model.upper, 1.5),
        )
        corners_x = self.config.feet[0].corners[:, 0]
        while True:
            q = np.tile(self._rng.uniform(low[:half], high[:half]), 2)
            R, p = self.frame(q, self.config.feet[0].frame)
            place = (R.T @ (self.com(q) - p))[0]
            if 0.8 * corners_x.min() < place < 0.8 * corners_x.max():
                fraction = self._rng.uniform(0.42, 0.58)
                return q, np.array([fraction, 1.0 - fraction])

    def error(self, xml, postures=20):
        """m, rms distance of the CoM of a URDF from the truth, horizontal, random postures."""
        gaps = []
        for _ in range(postures):
            q, load = self.random_posture()
            up = self.frame(q, self.config.feet[int(np.argmax(load))].frame)[0][:, 2]
            gap = self.com(q, xml) - self.com(q)
            gaps.append(np.linalg.norm(gap - (gap @ up) * up))
        return float(np.sqrt(np.mean(np.square(gaps))))

    def _full(self, q):
        full = self._pin.neutral(self._oracle)
        full[self._index] = q
        return full


@pytest.fixture
def make_standing_robot():
    """make_standing_robot("biped3", seed=1): see StandingRobot."""
    return lambda name, seed=1, **options: StandingRobot(
        name, np.random.default_rng(seed), **options
    )


@pytest.fixture(scope="session")
def ros_context():
    """A ROS context of the tests' own."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context)
    yield context
    rclpy.try_shutdown(context=context)


@pytest.fixture(scope="session")
def draw_domain():
    """draw_domain(): a number for a ROS domain of a test's own."""
    return lambda: free_domain_id(DOMAINS) or DOMAINS[0]
