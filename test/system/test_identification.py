"""com_identification as a program: every service, and SIGKILL at the worst moments."""

import os
import signal
import subprocess
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
import yaml
from ament_index_python.packages import get_package_prefix
from geometry_msgs.msg import WrenchStamped
from rclpy.action import ActionClient
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from service_caller import ServiceCaller
from std_srvs.srv import Trigger

from com_msgs import action, srv
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, numpy_to_wrench
from com_ros.qos import LATCHED

NAME = "com_identification"
PROGRAM = Path(get_package_prefix(NAME)) / "lib" / NAME / NAME
# of the stamps, which are the test's own: a busy machine is no silence
PERIOD_NS = 10_000_000
OFFSET = np.array([2.0, -1.0, 5.0, 0.1, 0.2, -0.1])  # of the left foot's sensor
PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long


class Program:
    """Runs of com_identification with the same files; they carry a mark in their environment."""

    def __init__(self, folder, robot):
        self.mark = f"COM_TEST={uuid.uuid4()}"
        self.folder = folder
        (folder / "export").mkdir()
        parameters = {
            "robot_description": robot.model.xml,
            "robot_config": str(robot.config_path),
            "storage_directory": str(folder / "store"),
            "export_directory": str(folder / "export"),
            "capture.collect_time": 0.4,
            "capture.settle_time": 0.2,
            "capture.timeout": 30.0,  # a busy machine may pause
            "plan.candidates": 20,
            "plan.refinements": 0,
            # a laboratory that has calibrated its encoders and force sensors, but for their zeros
            "sensors.joint_offset": 0.0,
            "sensors.joint_repeatability": 0.0,
            "sensors.compliance": 0.0,
            "sensors.wrench_gain": 0.0,
            "sensors.crosstalk": 0.0,
        }
        self.file = folder / "parameters.yaml"
        self.file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        self.log = (folder / "log").open("w")
        self.start()

    def start(self):
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [PROGRAM, "--ros-args", "--params-file", self.file],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env={**os.environ, name: value},
        )

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE)

    def others(self):
        """Pids of what it started and still runs."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (folder / "environ").read_bytes().split(
                    b"\0"
                )
            except OSError:
                continue  # ended meanwhile, or another user's
            if marked and int(folder.name) != self.process.pid:
                found.append(int(folder.name))
        return found

    @property
    def output(self):
        return (self.folder / "log").read_text()

    def close(self):
        self.kill()
        for pid in self.others():
            os.kill(pid, signal.SIGKILL)
        self.log.close()


class Drivers:
    """What a robot's drivers publish, while the test waits for something; and who calls services.

    One for each life of the program, because a killed one is missed only after 20 s by those who
    knew it.
    """

    def __init__(self, ear, robot):
        self.ear, self.robot = ear, robot
        node, profile = ear.node, QoSProfile(depth=10)
        self._joints = node.create_publisher(JointState, "joint_states", profile)
        self._wrenches = [
            node.create_publisher(WrenchStamped, foot.wrench_topic, profile)
            for foot in robot.config.feet
        ]
        self._names = list(robot.model.joint_names)
        self._time_ns = 10**12
        self.begin = ServiceCaller(node, ear.until, "com_identification").begin
        self.take()
        node.create_timer(0.005, self._publish)

    def take(self, q=None, load=None):
        """Goes to a posture; a random one if none is given."""
        if q is None:
            q, load = self.robot.random_posture()
        self.q, self.load = q, load
        self._time_ns += 300_000_000

    def _publish(self):
        self._time_ns += PERIOD_NS
        stamp = ns_to_stamp(self._time_ns)
        Q, W = self.robot.read(self.q, self.load, 1)
        self._joints.publish(numpy_to_joint_state(self._names, Q[0], stamp=stamp))
        W[0, 0] += OFFSET
        for publisher, wrench in zip(self._wrenches, W[0], strict=True):
            msg = WrenchStamped(wrench=numpy_to_wrench(wrench))
            msg.header.stamp = stamp
            publisher.publish(msg)

    def listen(self, kind, topic, qos=10):
        """A list that grows with each message."""
        received = []
        self.ear.node.create_subscription(
            kind, f"identification/{topic}", received.append, qos
        )
        return received

    def call(self, kind, name, /, **fields):
        """Answer of a service."""
        answer = self.begin(kind, name, **fields)
        self.ear.until(answer.done, f"answer of {name}")
        return answer.result()

    def capture(self, *posture):
        """Id of a new posture."""
        self.take(*posture)
        arrived = self._time_ns + 30 * PERIOD_NS  # so that it is not the posture before
        self.ear.until(lambda: self._time_ns > arrived, "move")
        answer = self.call(srv.CapturePosture, "capture_posture", timeout=PATIENCE)
        assert answer.success, answer.message
        return answer.posture.id

    def ids(self):
        answer = self.call(srv.GetPostures, "get_postures")
        assert answer.success, answer.message
        return [posture.id for posture in answer.postures]


@pytest.fixture
def robot(make_standing_robot):
    robot = make_standing_robot("biped3", seed=3)
    robot.noise = np.random.default_rng(
        4
    )  # postures do not depend on how many readings there are
    # little noise: which readings a posture gets depends on the load of the machine
    robot.force_noise, robot.moment_noise, robot.position_noise = (
        0.05,
        0.0025,
        np.radians(0.005),
    )
    return robot


@pytest.fixture
def program(domain, tmp_path, robot):
    program = Program(tmp_path, robot)
    yield program
    program.close()


@pytest.fixture
def restart(program, make_ear, robot):
    """restart(): kills the program, starts it again, and gives its new drivers."""

    def begin():
        program.kill()
        program.start()
        return Drivers(make_ear(), robot)

    return begin


@pytest.mark.exhaustive
def test_every_service_and_a_kill_at_any_moment(program, make_ear, robot, restart):
    # The zero of the left foot's sensor, taken while the foot hangs in the air.
    drivers = Drivers(make_ear(), robot)
    drivers.take(np.zeros(robot.model.n_joints), np.array([0.0, 1.0]))
    tared = drivers.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=PATIENCE)
    assert tared.success, tared.message

    acknowledged = []
    for count in (2, 10):
        acknowledged += [drivers.capture() for _ in range(count)]
        drivers = restart()  # right after an acknowledged capture
        assert drivers.ids() == acknowledged
        stored = drivers.call(srv.GetPostures, "get_postures").postures
        assert all(
            posture.header.stamp.sec for posture in stored
        )  # known to a later run, too
    acknowledged.append(drivers.capture())
    states = drivers.listen(IdentificationState, "state")
    drivers.begin(
        srv.CapturePosture, "capture_posture", seconds=900.0, timeout=PATIENCE
    )
    drivers.ear.until(lambda: states and states[-1].capturing, "waiting capture")
    drivers = restart()  # while a capture waits, which is not acknowledged
    assert drivers.ids() == acknowledged
    assert len(set(acknowledged)) == 13

    removed = drivers.call(srv.RemovePosture, "remove_posture", id=acknowledged.pop(4))
    assert removed.success, removed.message
    _, sent = begin_to_identify(drivers)
    assert sent.result().accepted
    drivers.ear.until(program.others, "process of the computation")
    drivers = restart()  # while it computes
    drivers.ear.until(lambda: not program.others(), "end of the computation")
    assert drivers.ids() == acknowledged

    total = drivers.call(srv.IdentifyTotalCom, "identify_total_com")
    assert total.success, total.message
    assert total.mass == pytest.approx(
        robot.model.mass, abs=0.1
    )  # 5 N of offset are 0.5 kg
    result = check_identification(drivers, acknowledged)
    check_files(drivers, program, robot, result)

    assert program.stop() == 0, program.output
    assert "Traceback" not in program.output
    limit = time.monotonic() + PATIENCE
    while program.others():
        assert time.monotonic() < limit, program.others()
        time.sleep(0.05)


def begin_to_identify(drivers):
    """Sends a goal; gives its feedback and the future of its handle."""
    client = ActionClient(
        drivers.ear.node, action.IdentifyLinks, "com_identification/identify_links"
    )
    drivers.ear.until(client.server_is_ready, "action identify_links")
    feedback = []
    sent = client.send_goal_async(
        action.IdentifyLinks.Goal(), feedback_callback=feedback.append
    )
    drivers.ear.until(sent.done, "goal")
    return feedback, sent


def check_identification(drivers, ids):
    """By action, by service and by topic; gives the result."""
    results = drivers.listen(IdentificationResult, "result", LATCHED)
    feedback, sent = begin_to_identify(drivers)
    ended = sent.result().get_result_async()
    drivers.ear.until(ended.done, "result")
    answer = ended.result().result
    assert answer.success, answer.message
    assert feedback
    drivers.ear.until(lambda: results and results[-1].status, "result")
    values = results[-1]
    assert list(values.postures) == list(ids)
    assert values.residual_rms < 0.3 * values.prior_residual_rms
    again = drivers.call(srv.IdentifyLinks, "identify_links")
    assert repr(again.result) == repr(answer.result)  # same input, same result
    return values


def check_files(drivers, program, robot, result):
    """The URDF that is written, postures that are saved and come back, the check of the model."""
    written = drivers.call(srv.ExportUrdf, "export_urdf")
    assert written.success, written.message
    path = Path(written.path)
    assert path.parent == program.folder / "export"
    assert robot.error(path.read_text()) < 0.3 * robot.error(robot.model.xml)

    proposed = drivers.call(action.ProposePostures, "propose_postures", count=1)
    assert proposed.success, proposed.message
    best = np.array(proposed.postures[0].joint_positions)
    drivers.capture(best, np.array([0.5, 0.5]))
    saved = drivers.call(srv.SavePostures, "save", name="kept")
    assert saved.success, saved.message
    assert drivers.call(Trigger, "reset").success
    assert drivers.ids() == []
    loaded = drivers.call(srv.LoadPostures, "load", name="kept")
    assert (loaded.success, loaded.count) == (True, len(result.postures) + 1), (
        loaded.message
    )
    checks = drivers.listen(ModelCheck, "model_check")
    drivers.ear.until(
        lambda: checks and checks[-1].verdict != ModelCheck.UNKNOWN, "check"
    )
    assert checks[-1].mass == pytest.approx(robot.model.mass, abs=0.1)
