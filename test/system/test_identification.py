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
from std_srvs.srv import Trigger

from com_msgs import action, srv
from com_msgs.msg import IdentificationResult, IdentificationState, ModelCheck
from com_ros.conversions import ns_to_stamp, numpy_to_joint_state, numpy_to_wrench
from com_ros.identification_conversions import proposed_posture_to_numpy
from com_ros.identification_result import identification_result_to_numpy
from com_ros.qos import LATCHED

PROGRAM = Path(get_package_prefix("com_estimation")) / "lib/com_estimation/com_identification"
PERIOD_NS = 10_000_000  # of the stamps, which are the test's own: a busy machine is no silence
OFFSET = np.array([2.0, -1.0, 5.0, 0.1, 0.2, -0.1])  # of the left foot's sensor
PATIENCE = 60.0  # s


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
            "capture.samples": 20,
            "capture.still_time": 0.2,
            "plan.candidates": 20,
            "plan.refinements": 0,
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
                marked = self.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
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
    """What a robot's drivers publish, while the test waits for something."""

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
        self._clients = {}
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

    def call(self, kind, name, /, **fields):
        """Answer of a service."""
        answer = self.begin(kind, name, **fields)
        self.ear.until(answer.done, f"answer of {name}")
        return answer.result()

    def begin(self, kind, name, /, **fields):
        """Future of an answer."""
        if name not in self._clients:
            self._clients[name] = self.ear.node.create_client(kind, f"com_identification/{name}")
        client = self._clients[name]
        self.ear.until(client.service_is_ready, f"service {name}")
        return client.call_async(kind.Request(**fields))

    def capture(self, *posture):
        """Id of a new posture."""
        self.take(*posture)
        answer = self.call(srv.CapturePosture, "capture_posture", timeout=PATIENCE)
        assert answer.success, answer.message
        return answer.posture.id

    def ids(self):
        answer = self.call(srv.GetPostures, "get_postures")
        assert answer.success, answer.message
        return [posture.id for posture in answer.postures]


@pytest.fixture
def robot(make_standing_robot):
    return make_standing_robot("biped3", seed=3)


@pytest.fixture
def program(domain, tmp_path, robot):
    program = Program(tmp_path, robot)
    yield program
    program.close()


@pytest.fixture
def drivers(ear, robot):
    return Drivers(ear, robot)


def restart(program, ear, drivers):
    """A killed node comes back; its old services are gone from the sight of the test."""
    program.kill()
    drivers._clients.clear()
    ear.until(lambda: not ear.node.count_publishers("identification/state"), "end of the old node")
    program.start()
    ear.until(lambda: ear.node.count_publishers("identification/state"), "new node")


def test_every_service_and_a_kill_at_any_moment(program, ear, drivers, robot):
    results, checks, states = [], [], []
    ear.node.create_subscription(
        IdentificationResult, "identification/result", results.append, LATCHED
    )
    ear.node.create_subscription(ModelCheck, "identification/model_check", checks.append, 10)
    ear.node.create_subscription(IdentificationState, "identification/state", states.append, 10)

    # The zero of the left foot's sensor, taken while it hangs in the air.
    still = np.zeros(robot.model.n_joints)
    drivers.take(still, np.array([0.0, 1.0]))
    tared = drivers.call(srv.TareWrench, "tare_wrench", foot="l_sole", timeout=PATIENCE)
    assert tared.success, tared.message
    restart(program, ear, drivers)  # it must survive, too

    acknowledged = []
    for round_number in range(3):
        for _ in range(3):
            acknowledged.append(drivers.capture())
        restart(program, ear, drivers)  # right after an acknowledged capture
        assert drivers.ids() == acknowledged
        if round_number == 0:  # while a capture waits that is never acknowledged
            drivers.take(still, np.array([0.5, 0.5]))
            drivers.begin(srv.CapturePosture, "capture_posture", samples=900, timeout=PATIENCE)
            ear.until(lambda: states and states[-1].capturing, "waiting capture")
            restart(program, ear, drivers)
            assert drivers.ids() == acknowledged
    assert len(set(acknowledged)) == 9

    removed = drivers.call(srv.RemovePosture, "remove_posture", id=acknowledged[4])
    assert removed.success, removed.message
    total = drivers.call(srv.IdentifyTotalCom, "identify_total_com")
    assert total.success, total.message
    assert total.mass == pytest.approx(robot.model.mass, abs=0.1)  # 5 N of offset are 0.5 kg

    # A computation that is killed leaves nothing behind.
    identify = ActionClient(ear.node, action.IdentifyLinks, "com_identification/identify_links")
    ear.until(identify.server_is_ready, "action identify_links")
    sent = identify.send_goal_async(action.IdentifyLinks.Goal())
    ear.until(sent.done, "goal")
    ear.until(program.others, "process of the computation")
    restart(program, ear, drivers)
    ear.until(lambda: not program.others(), "end of the computation")

    feedback = []
    ear.until(identify.server_is_ready, "action identify_links")
    sent = identify.send_goal_async(action.IdentifyLinks.Goal(), feedback_callback=feedback.append)
    ear.until(sent.done, "goal")
    ended = sent.result().get_result_async()
    ear.until(ended.done, "result")
    answer = ended.result().result
    assert answer.success, answer.message
    assert feedback
    ear.until(lambda: results[-1].status != IdentificationResult.STATUS_UNKNOWN, "result")
    values = identification_result_to_numpy(results[-1])
    assert set(values.postures) == set(acknowledged) - {acknowledged[4]}
    assert values.residual[1] < 0.3 * values.prior_residual[1]

    again = drivers.call(srv.IdentifyLinks, "identify_links")
    assert repr(again.result) == repr(answer.result)  # same input, same result
    written = drivers.call(srv.ExportUrdf, "export_urdf")
    assert written.success, written.message
    found = Path(written.path)
    assert found.parent == program.folder / "export"
    assert robot.error(found.read_text()) < 0.3 * robot.error(robot.model.xml)

    proposed = drivers.call(srv.ProposePostures, "propose_postures", count=2)
    assert proposed.success, proposed.message
    best = proposed_posture_to_numpy(proposed.postures[0])
    drivers.capture(best.q, np.array([0.5, 0.5]))
    assert drivers.call(srv.SavePostures, "save", name="kept").success
    assert drivers.call(Trigger, "reset").success
    assert drivers.ids() == []
    loaded = drivers.call(srv.LoadPostures, "load", name="kept")
    assert (loaded.success, loaded.count) == (True, 9), loaded.message
    ear.until(lambda: checks and checks[-1].verdict == ModelCheck.COM_OFF, "check of the model")

    assert program.stop() == 0, program.output
    assert "Traceback" not in program.output
    limit = time.monotonic() + PATIENCE
    while program.others():
        assert time.monotonic() < limit, program.others()
        time.sleep(0.05)
