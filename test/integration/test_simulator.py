"""The simulator node: what it publishes belongs together, what it is told is done or refused."""

import time
from collections import defaultdict
from contextlib import ExitStack, closing
from pathlib import Path

import mujoco
import numpy as np
import pytest
import rclpy
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from com_demos.background import free_domain_id
from com_model import ConfigError, RobotModel, Sesc, UrdfError, link_poses
from com_msgs.msg import CenterOfMass
from com_ros import qos
from com_ros.conversions import (
    imu_to_rotation,
    ns_to_stamp,
    point_to_numpy,
    stamp_to_ns,
    vector3_to_numpy,
    wrench_to_numpy,
)
from com_ros.exceptions import ComRosError, ParameterError
from com_simulation.exceptions import DivergedError
from com_simulation.nodes.simulator import Simulator

DESCRIPTIONS = Path(__file__).resolve().parents[2] / "src" / "robot_descriptions"
HOAP2 = {
    "robot_description": (DESCRIPTIONS / "urdf" / "hoap2.urdf").read_text(),
    "robot_config": str(DESCRIPTIONS / "config" / "hoap2.yaml"),
}
ARM = """<robot name="arm"><link name="base"/>
<joint name="a" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
</joint><link name="upper"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="b" type="continuous"><parent link="upper"/><child link="lower"/>
<origin xyz="0.2 0 0"/><axis xyz="0 1 0"/></joint>
<link name="lower"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
TOPICS = {
    "joint_states": JointState,
    "imu": Imu,
    "l_sole/wrench": WrenchStamped,
    "r_sole/wrench": WrenchStamped,
    "ground_truth/com": CenterOfMass,
    "ground_truth/trunk_com": CenterOfMass,
    "/tf": TFMessage,
    "/clock": Clock,
    "/diagnostics": DiagnosticArray,
}


class Bench:
    """A simulator, and a node that hears what it says and commands it."""

    def __init__(self, **parameters):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=free_domain_id())
        self.heard = defaultdict(list)
        self.node = rclpy.create_node("bench", context=self.context)
        for topic, kind in TOPICS.items():
            self.node.create_subscription(kind, topic, self.heard[topic].append, qos.stream(2000))
        self.trajectory = self.node.create_publisher(
            JointTrajectory, "joint_trajectory", qos.RESULT
        )
        self.commands = self.node.create_publisher(Float64MultiArray, "joint_commands", qos.RESULT)
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.simulator = None
        try:
            self.simulator = Simulator(context=self.context, parameter_overrides=overrides)
        except Exception:
            self.close()
            raise
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.executor.add_node(self.simulator)

    def until(self, condition, what, limit=30.0):
        end = time.monotonic() + limit
        while not condition():
            counts = {topic: len(messages) for topic, messages in self.heard.items()}
            assert time.monotonic() < end, f"no {what}; heard {counts}"
            self.executor.spin_once(timeout_sec=0.05)

    def wait_for(self, topic, count=1):
        self.until(lambda: len(self.heard[topic]) >= count, f"{count} on {topic}")
        return self.heard[topic]

    def spin(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def connect(self):
        self.wait_for("joint_states")
        publishers = (self.trajectory, self.commands)
        self.until(lambda: all(p.get_subscription_count() for p in publishers), "subscription")

    def positions(self):
        """Joint positions heard last."""
        return np.array(self.heard["joint_states"][-1].position)

    def send(self, names, times, positions, velocities=None, stamp=None):
        msg = JointTrajectory(joint_names=names)
        for i, t in enumerate(times):
            point = JointTrajectoryPoint(positions=[float(x) for x in positions[i]])
            if velocities:
                point.velocities = [float(x) for x in velocities[i]]
            point.time_from_start = Duration(sec=int(t), nanosec=round((t % 1) * 1e9))
            msg.points.append(point)
        if stamp is not None:
            msg.header.stamp = stamp
        self.trajectory.publish(msg)

    def close(self):
        if self.simulator is not None:
            self.executor.shutdown()
            self.simulator.destroy_node()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)


@pytest.fixture
def bench():
    with ExitStack() as benches:
        yield lambda **parameters: benches.enter_context(closing(Bench(**parameters)))


@pytest.fixture
def warnings(monkeypatch):
    """Texts of the throttled warnings, without the throttle."""
    texts = []
    monkeypatch.setattr(
        "com_ros.throttle.ThrottledLog.warn", lambda self, kind, text: texts.append(text)
    )
    return texts


def by_stamp(messages):
    return {stamp_to_ns(msg.header.stamp): msg for msg in messages}


def test_all_of_one_instant_belongs_together(bench):
    bench = bench(**HOAP2, publish_rate_hz=100.0)
    bench.until(lambda: len(bench.heard["joint_states"]) > 150, "second of standing")
    names = ("joint_states", "imu", "l_sole/wrench", "r_sole/wrench", "ground_truth/com")
    stamped = {name: by_stamp(bench.heard[name]) for name in names}
    common = set.intersection(*(set(messages) for messages in stamped.values()))
    assert len(common) > 100
    last = max(common)
    assert abs(last - time.time_ns()) < 60e9  # comparable with now()
    joints, imu, left, right, truth = (stamped[name][last] for name in names)

    model = RobotModel.from_urdf(HOAP2["robot_description"])
    assert tuple(joints.name) == model.joint_names
    assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 25
    R, p = link_poses(model, joints.position)
    com = model.link_masses @ (p + np.einsum("lij,lj->li", R, model.link_coms)) / model.mass
    np.testing.assert_allclose(point_to_numpy(truth.position), com, atol=1e-6)
    assert truth.status == CenterOfMass.STATUS_OK
    assert truth.header.frame_id == "base_link"
    assert truth.mass == pytest.approx(7.1200448)
    assert np.isnan(truth.support_margin)

    assert imu.header.frame_id == "imu_link"
    force = imu_to_rotation(imu) @ vector3_to_numpy(imu.linear_acceleration)
    np.testing.assert_allclose(force, [0, 0, 9.81], atol=0.1)
    assert imu.orientation_covariance[0] > 0
    assert (left.header.frame_id, right.header.frame_id) == ("l_sole", "r_sole")
    weight = wrench_to_numpy(left.wrench) + wrench_to_numpy(right.wrench)
    assert weight[2] == pytest.approx(7.1200448 * 9.81, rel=0.02)

    transform = bench.heard["/tf"][-1].transforms[0]
    assert (transform.header.frame_id, transform.child_frame_id) == ("odom", "base_link")
    assert transform.transform.translation.z == pytest.approx(0.281, abs=0.01)
    assert not bench.heard["/clock"]
    steps = np.diff(sorted(stamped["joint_states"]))
    assert (steps == 10_000_000).all()


def test_clock_of_the_simulation(bench):
    bench = bench(**HOAP2, publish_clock=True, real_time_factor=0.0, publish_rate_hz=100.0)
    clocks = bench.wait_for("/clock", 50)
    assert 0 <= clocks[0].clock.sec < 1000
    stamps = set(by_stamp(bench.wait_for("joint_states", 50)))
    assert {stamp_to_ns(clock.clock) for clock in clocks} & stamps
    status = bench.wait_for("/diagnostics")[-1].status[0]
    assert status.level == DiagnosticStatus.OK
    assert status.hardware_id == "hoap2"
    values = {item.key: float(item.value) for item in status.values if item.key != "model"}
    assert values["drift_s"] == 0.0
    assert values["rate_hz"] == pytest.approx(100.0)


def test_commands_are_followed(bench):
    bench = bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    bench.send(["b", "a"], [0.2, 0.4], [[0.0, 0.1], [-0.5, 0.3]], [[0, 0], [0, 0]])
    bench.until(lambda: np.allclose(bench.positions(), [0.3, -0.5], atol=0.01), "trajectory")
    bench.commands.publish(Float64MultiArray(data=[-0.2, 0.1]))
    bench.until(lambda: np.allclose(bench.positions(), [-0.2, 0.1], atol=0.01), "command")


def test_a_stamped_trajectory_begins_at_its_time(bench):
    bench = bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    begin = stamp_to_ns(bench.heard["joint_states"][-1].header.stamp) + 500_000_000
    bench.send(["a"], [0.1], [[0.4]], stamp=ns_to_stamp(begin))
    bench.until(lambda: np.allclose(bench.positions(), [0.4, 0.0], atol=0.01), "trajectory")
    moved = [
        stamp_to_ns(msg.header.stamp)
        for msg in bench.heard["joint_states"]
        if msg.position[0] > 0.05
    ]
    assert begin < min(moved) < begin + 200_000_000


def test_bad_commands_are_refused_with_the_mend(bench, warnings):
    bench = bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.connect()
    bench.send(["a", "b"], [0.3], [[0.2, 0.2]])
    bench.until(lambda: np.allclose(bench.positions(), 0.2, atol=0.01), "good trajectory")
    now = stamp_to_ns(bench.heard["joint_states"][-1].header.stamp)
    for message, send in (
        ("unknown joint 'x': the robot's joints are a, b", lambda: bench.send(["x"], [1], [[1]])),
        ("positions of point 0 are not all finite", lambda: bench.send(["a"], [1], [[np.nan]])),
        ("point 0 has 2 positions for 1 joints", lambda: bench.send(["a"], [1], [[1, 2]])),
        ("times must start at 0 or later", lambda: bench.send(["a"], [2, 1], [[1], [2]])),
        (
            "stamp it by the clock of joint_states",
            lambda: bench.send(["a"], [1], [[1]], stamp=ns_to_stamp(now + 10**12)),
        ),
        (
            "s before it came",
            lambda: bench.send(["a"], [1], [[1]], stamp=ns_to_stamp(now - 10**12)),
        ),
        (
            "got 3 joint commands, expected 2 in the order a, b",
            lambda: bench.commands.publish(Float64MultiArray(data=[1.0, 2.0, 3.0])),
        ),
        (
            "command for 'b' is not a finite number",
            lambda: bench.commands.publish(Float64MultiArray(data=[1.0, float("inf")])),
        ),
    ):
        warnings.clear()
        send()
        bench.until(lambda: warnings, f"warning {message!r}")
        assert message in warnings[0]
        assert warnings[0].startswith(("joint_trajectory refused: ", "joint_commands refused: "))
    bench.spin(0.2)
    np.testing.assert_allclose(bench.positions(), 0.2, atol=0.01)


def test_robot_from_the_topic_and_no_second_one(bench, warnings):
    bench = bench(publish_rate_hz=100.0)
    bench.until(lambda: warnings, "warning")
    assert "no robot_description yet: waiting for a latched message" in warnings[0]
    latched = bench.node.create_publisher(String, "robot_description", qos.LATCHED)
    latched.publish(String(data="<robot name='broken'>"))
    latched.publish(String(data=ARM))
    joints = bench.wait_for("joint_states")
    assert list(joints[0].name) == ["a", "b"]
    latched.publish(String(data=HOAP2["robot_description"]))
    bench.spin(0.3)
    assert len(bench.heard["joint_states"][-1].name) == 2


def test_file_and_robot_description_on_the_topic(bench, tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    bench = bench(urdf_file=str(file), publish_robot_description=True, frame_prefix="r1/")
    heard = []
    bench.node.create_subscription(String, "robot_description", heard.append, qos.LATCHED)
    bench.until(lambda: heard, "robot_description")
    assert heard[0].data == ARM
    assert bench.wait_for("/tf")[0].transforms[0].child_frame_id == "r1/base"


def test_the_truth_about_the_trunk(bench):
    """A CoM that is not the URDF's, and a payload that drops at 0.3 s."""
    model = RobotModel.from_urdf(HOAP2["robot_description"])
    mass, place, offset = 0.5, np.array([0.02, 0.03, 0.1]), np.array([0.01, -0.02, 0.0])
    bench = bench(
        **HOAP2,
        **{
            "trunk_com_offset": offset.tolist(),
            "payload.mass": mass,
            "payload.position": place.tolist(),
            "payload.time": 0.3,
            "publish_clock": True,
            "publish_rate_hz": 100.0,
        },
    )
    last = 30 * 10**7 + 10**8
    heard = bench.heard["ground_truth/trunk_com"]
    bench.until(lambda: heard and stamp_to_ns(heard[-1].header.stamp) >= last, "trunk")
    before = [msg for msg in heard if stamp_to_ns(msg.header.stamp) < 30 * 10**7]
    after = [msg for msg in heard if stamp_to_ns(msg.header.stamp) >= 30 * 10**7]
    assert before
    trunk = model.bodies.mass[0]
    com = model.bodies.first_moment[0] / trunk + offset
    for msg in before:
        assert msg.mass == pytest.approx(trunk)
        np.testing.assert_allclose(point_to_numpy(msg.position), com, atol=1e-9)
    for msg in after:
        assert msg.header.frame_id == model.root_link
        assert msg.mass == pytest.approx(trunk + mass)
        loaded = (trunk * com + mass * place) / (trunk + mass)
        np.testing.assert_allclose(point_to_numpy(msg.position), loaded, atol=1e-9)
    total = {stamp_to_ns(msg.header.stamp): msg.mass for msg in bench.heard["ground_truth/com"]}
    for stamp, robot_mass in total.items():
        expected = model.mass + (mass if stamp >= 30 * 10**7 else 0.0)
        assert robot_mass == pytest.approx(expected)


@pytest.mark.parametrize("mass", [0.5, 0.0])
def test_a_payload_on_demand(bench, mass):
    bench = bench(**HOAP2, **{"payload.mass": mass, "payload.time": 1e6})
    trunk = bench.wait_for("ground_truth/trunk_com")[0].mass
    client = bench.node.create_client(SetBool, "simulator/payload")
    heard = bench.heard["ground_truth/trunk_com"]
    for on in (True, False):
        answer = client.call_async(SetBool.Request(data=on))
        bench.until(answer.done, "answer")
        assert answer.result().success is bool(mass)
        if not mass:
            assert answer.result().message == "there is no payload: give payload.mass"
            return
        assert answer.result().message == f"0.5 kg {'on' if on else 'off'} the trunk"
        expected = pytest.approx(trunk + on * mass)
        bench.until(lambda expected=expected: heard[-1].mass == expected, "new mass")


def test_errors_of_real_sensors(bench):
    bench = bench(
        **HOAP2,
        **{"noise.preset": "trot", "noise.position_step": 0.25, "publish_rate_hz": 100.0},
    )
    positions = np.array([msg.position for msg in bench.wait_for("joint_states", 5)])
    np.testing.assert_allclose(positions / 0.25, np.round(positions / 0.25), atol=1e-9)
    imu = bench.wait_for("imu")[0]
    spread = np.deg2rad(0.2) ** 2 + np.deg2rad(0.1) ** 2
    np.testing.assert_allclose(imu.orientation_covariance, (spread * np.eye(3)).ravel())
    gyro = [vector3_to_numpy(msg.angular_velocity) for msg in bench.wait_for("imu", 40)]
    assert 0.001 < np.std(gyro) < 0.1


def test_physics_for_exact_readings(bench):
    bench = bench(
        robot_description=ARM,
        integrator="euler",
        physics_step=1e-4,
        publish_rate_hz=1000.0,
        joint_friction=0.2,
    )
    bench.wait_for("joint_states", 20)
    world = bench.simulator._simulation.world
    assert world.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert world.mj.dof_frictionloss.max() == pytest.approx(0.2)


def test_the_true_robot_is_not_the_published_one(bench, tmp_path):
    file = tmp_path / "true.urdf"
    bench = bench(
        **HOAP2,
        **{
            "true_errors.com": 0.005,
            "true_errors.seed": 3,
            "true_urdf_output": str(file),
            "publish_robot_description": True,
            "publish_rate_hz": 50.0,
        },
    )
    heard = []
    bench.node.create_subscription(String, "robot_description", heard.append, qos.LATCHED)
    bench.until(lambda: heard, "robot_description")
    assert heard[0].data == HOAP2["robot_description"]
    true, believed = RobotModel.from_file(file), RobotModel.from_urdf(heard[0].data)
    truth = bench.wait_for("ground_truth/com")[-1]
    stamp = stamp_to_ns(truth.header.stamp)
    bench.until(lambda: stamp in by_stamp(bench.heard["joint_states"]), "joint_states")
    joints = by_stamp(bench.heard["joint_states"])[stamp]
    places = dict(zip(joints.name, joints.position, strict=True))
    q = np.array([places[name] for name in true.joint_names])
    com = point_to_numpy(truth.position)
    np.testing.assert_allclose(Sesc(true).com(q), com, atol=1e-6)
    assert np.linalg.norm(Sesc(believed).com(q) - com) > 1e-4


def test_the_hoist_lifts_and_lowers(bench):
    bench = bench(**HOAP2, publish_rate_hz=100.0, real_time_factor=4.0)
    service = bench.node.create_client(SetBool, "/simulator/hoist")
    bench.until(service.service_is_ready, "hoist")

    def lift():
        return sum(bench.heard[f"{side}_sole/wrench"][-1].wrench.force.z for side in "lr")

    bench.wait_for("r_sole/wrench", 20)
    weight = bench.simulator._simulation.world.robot.mass * 9.81
    for up in (True, False):
        call = service.call_async(SetBool.Request(data=up))
        bench.until(call.done, "hoist")
        assert call.result().success
        assert call.result().message == f"goes {'up' if up else 'down'} in 1.5 s"
        bench.until(lambda up=up: abs(lift() - (0.0 if up else weight)) < 0.01 * weight, "lift")


def test_a_floor_that_tilts_and_goes_back(bench):
    tilt = {"tilt.angle_deg": 3.0, "tilt.direction_deg": 90.0, "tilt.start": 0.2, "tilt.hold": 1.0}
    bench = bench(**HOAP2, **tilt, publish_rate_hz=100.0, real_time_factor=2.0)

    def leaning():
        """Angle (deg) by which what stands on the floor leans to the right."""
        return np.degrees(imu_to_rotation(bench.heard["imu"][-1])[2, 1])

    bench.wait_for("imu", 10)
    bench.until(lambda: leaning() > 2.8, "the floor tilts")
    bench.until(lambda: leaning() < 0.2, "the floor goes back")


@pytest.mark.parametrize("angle", [3.0, 0.0])
def test_a_floor_that_tilts_on_demand(bench, angle):
    tilt = {"tilt.angle_deg": angle, "tilt.start": 1e6, "tilt.hold": 1e6}
    bench = bench(**HOAP2, **tilt, publish_rate_hz=100.0, real_time_factor=2.0)

    def pitch():
        """Of the trunk, deg."""
        return np.degrees(imu_to_rotation(bench.heard["imu"][-1])[2, 0])

    bench.wait_for("imu", 50)
    before = pitch()
    bench.wait_for("imu", 100)
    assert abs(pitch() - before) < 0.1
    client = bench.node.create_client(Trigger, "/simulator/tilt")
    bench.until(client.service_is_ready, "the service")
    answer = client.call_async(Trigger.Request())
    bench.until(answer.done, "answer")
    assert answer.result().success == bool(angle)
    if not angle:
        assert answer.result().message == "the floor does not tilt: give tilt.angle_deg"
        return
    bench.until(lambda: abs(pitch() - before) > 2.8, "it tilts")


def test_it_waits_for_nodes_that_answer(bench):
    waits = {"lockstep.nodes": ["gait"], "lockstep.timeout": 1.0, "lockstep.start_timeout": 60.0}
    bench = bench(**HOAP2, **waits, publish_clock=True, publish_rate_hz=100.0, real_time_factor=0.0)
    joints = bench.heard["joint_states"]
    answers = bench.node.create_publisher(Header, "lockstep", qos.RESULT)
    bench.until(answers.get_subscription_count, "subscription")
    bench.spin(0.5)
    assert not joints
    answers.publish(Header(frame_id="gait"))  # it is ready
    bench.wait_for("joint_states")
    for count in range(1, 21):
        bench.spin(0.05)
        assert [stamp_to_ns(msg.header.stamp) for msg in joints] == [
            k * 10_000_000 for k in range(1, count + 1)
        ]
        answers.publish(Header(frame_id="gait", stamp=joints[-1].header.stamp))
        bench.until(lambda count=count: len(joints) > count, "the next sample")
    bench.until(lambda: len(joints) > 100, "it goes on without")

    def warnings():
        found = [status for msg in bench.heard["/diagnostics"] for status in msg.status]
        return [status.message for status in found if status.level == DiagnosticStatus.WARN]

    late = "goes on without gait, which did not answer"
    bench.until(lambda: late in warnings(), "a warning")


def test_what_was_commanded_before_an_answer_counts_first(bench):
    bench = bench(**HOAP2, **{"lockstep.nodes": ["gait"], "lockstep.start_timeout": 60.0})
    simulator = bench.simulator
    bench.until(bench.commands.get_subscription_count, "subscription")
    done = []
    simulator.destroy_subscription(simulator._command_inputs[1])
    simulator._command_inputs = (
        simulator.create_subscription(Float64MultiArray, "joint_commands", done.append, 10),
    )
    bench.until(lambda: bench.commands.get_subscription_count() == 1, "its end")
    bench.spin(0.2)
    for _ in range(2):
        bench.commands.publish(Float64MultiArray())
    time.sleep(0.2)
    assert not done  # the executor has not looked
    simulator._on_answer(Header(frame_id="gait"))
    assert len(done) == 2


def test_a_fixed_robot_has_no_hoist(bench):
    bench = bench(robot_description=ARM)
    service = bench.node.create_client(SetBool, "/simulator/hoist")
    bench.until(service.service_is_ready, "hoist")
    call = service.call_async(SetBool.Request(data=True))
    bench.until(call.done, "hoist")
    assert not call.result().success
    assert "root is fixed" in call.result().message


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"true_urdf_file": "/nowhere.urdf"}, UrdfError, "does not exist"),
        (
            {"true_urdf_file": HOAP2["robot_config"], "true_errors.com": 0.01},
            ComRosError,
            "both a true URDF and true_errors are given: give one of them",
        ),
        ({"base": "flying"}, ParameterError, "'base' is 'flying': give one of auto, floating"),
        ({"physics_step": 1.0}, ParameterError, "give a value from 1e-05 to 0.02"),
        ({"noise.gyro": -1.0}, ParameterError, "'noise.gyro' is -1.0: give a value from 0"),
        (
            {"noise.preset": "loud"},
            ParameterError,
            "'noise.preset' is 'loud': give one of none, tr",
        ),
        ({"integrator": "rk4"}, ParameterError, "'integrator' is 'rk4': give one of auto, euler"),
        (
            {"trunk_com_offset": [0.1]},
            ParameterError,
            r"'trunk_com_offset' is \[0.1\]: give three numbers: x, y, z",
        ),
        ({"payload.position": [0.1, 0.2]}, ParameterError, "'payload.position' is .*: give three"),
        (
            {"publish_rate_hz": 2000.0},
            ParameterError,
            "give at most 1000, or a physics_step of at most 0.0005",
        ),
        ({"urdf_file": "/nowhere.urdf", "robot_description": ""}, UrdfError, "does not exist"),
        ({"robot_config": "/nowhere.yaml"}, ConfigError, "nowhere.yaml"),
        ({"robot_config": HOAP2["robot_config"]}, ConfigError, "the URDF's root is 'base', not"),
    ],
)
def test_bad_parameters_end_with_the_mend(bench, parameters, error, message):
    with pytest.raises(error, match=message):
        bench(**{"robot_description": ARM, **parameters})


def test_a_diverged_simulation_ends_the_node(bench):
    bench = bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.wait_for("joint_states")
    bench.simulator._error = DivergedError(1.5, 0.001)
    with pytest.raises(ComRosError, match=r"diverged at 1\.500 s: take a physics step below"):
        bench.spin(3.0)
    bench.simulator._error = None
    levels = [msg.status[0].level for msg in bench.wait_for("/diagnostics")]
    assert DiagnosticStatus.ERROR in levels


def test_a_slow_machine_is_reported(bench, warnings, monkeypatch):
    monkeypatch.setattr("com_simulation.nodes.simulator.LATE", -1.0)
    bench = bench(robot_description=ARM, publish_rate_hz=100.0)
    status = bench.wait_for("/diagnostics")[-1].status[0]
    assert status.level == DiagnosticStatus.WARN
    assert "lower publish_rate_hz, raise physics_step, or set publish_clock here" in status.message
    assert not warnings  # once is a hiccup
    bench.until(lambda: warnings, "warning")
    assert "the machine is too slow" in warnings[0]


def test_the_same_seed_gives_the_same_messages(bench):
    parameters = {
        "robot_description": ARM,
        "seed": 5,
        "noise.position": 0.01,
        "publish_clock": True,
        "real_time_factor": 20.0,
        "publish_rate_hz": 100.0,
    }
    runs = []
    for _ in range(2):
        one = bench(**parameters)
        messages = by_stamp(one.wait_for("joint_states", 100))
        runs.append({stamp: tuple(msg.position) for stamp, msg in messages.items()})
    common = set(runs[0]) & set(runs[1])
    assert len(common) > 10
    assert all(runs[0][stamp] == runs[1][stamp] for stamp in common)
    assert len({runs[0][stamp] for stamp in common}) > 10
