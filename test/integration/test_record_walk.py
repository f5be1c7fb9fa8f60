"""com_identification records a walk, says what to record next, identifies from it."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Imu
from service_caller import ServiceCaller
from slow_recording import make_robot, sway
from std_srvs.srv import SetBool, Trigger
from walk_recording import record

from com_identification.health.records import HealthDatabase
from com_identification.nodes import walk_services
from com_identification.nodes.com_identification import ComIdentification
from com_model import RobotModel
from com_model.geometry.rotations import minimal_rotation
from com_model.robots import find_robot
from com_msgs import action, srv
from com_msgs.msg import IdentificationResult, WalkRecording
from com_ros.conversions import (
    ns_to_stamp,
    numpy_to_joint_state,
    numpy_to_vector3,
    rotation_to_quaternion,
)
from com_ros.qos import LATCHED

PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long


@pytest.fixture(scope="module")
def recorded():
    return record()


def start_go2(world, recorded, tmp_path, **parameters):
    """The node of a Go2 and its drivers."""
    source = find_robot("go2").config
    text = source.read_text().replace("radius: 0.023", "radius: 0.0")
    config = tmp_path / "go2.yaml"
    config.write_text(text.replace("imu: {link: imu}", "imu: {link: base}"))
    return _Walk(world, recorded.believed, recorded.log, config, **parameters)


class _Walk:
    """The node of a robot and its drivers, which send a log."""

    def __init__(self, world, believed, log, config, **parameters):
        self.world, self.believed, self.log = world, believed, log
        self.said = world.collect(
            WalkRecording, "identification/walk_recording", LATCHED
        )
        self.results = world.collect(
            IdentificationResult, "identification/result", LATCHED
        )
        self.node = world.start(
            ComIdentification,
            robot_description=believed.xml,
            robot_config=str(config),
            **parameters,
        )
        self._caller = ServiceCaller(world.node, world.spin_until, "com_identification")

    def call(self, kind, name, /, **fields):
        answer = self._caller.begin(kind, name, **fields)
        self.world.spin_until(answer.done, f"answer of {name}", timeout=PATIENCE)
        return answer.result()

    def messages(self, k):
        log, names = self.log, list(self.believed.joint_names)
        stamp = ns_to_stamp(10**12 + round(1e9 * log.time[k]))
        joints = numpy_to_joint_state(names, log.position[k], stamp=stamp)
        joints.effort = log.effort[k].tolist()
        imu = Imu()
        imu.header.stamp = stamp
        if log.up is None:
            imu.orientation_covariance[0] = -1.0  # it gives none
        else:
            R_world_imu = minimal_rotation(log.up[k], np.array([0.0, 0.0, 1.0]))
            imu.orientation = rotation_to_quaternion(R_world_imu)
        imu.angular_velocity = numpy_to_vector3(log.angular_velocity[k])
        imu.linear_acceleration = numpy_to_vector3(log.specific_force[k])
        return {"joint_states": joints, "imu": imu}

    def send(self, count, spoil=lambda messages: messages):
        """The first of them over DDS, the others as if they came so."""
        walks, few = self.node._walks, 20
        for k in range(few):
            for topic, msg in spoil(self.messages(k)).items():
                self.world.send(topic, msg)
                self.world.spin_for(0.002)
        what = "the messages are recorded"
        self.world.spin_until(lambda: len(walks._messages) == 2 * few, what, PATIENCE)
        size = {
            name: len(data) for name, _, data in walks._messages
        }  # without what rclpy adds
        for k in range(few, count):
            for topic, msg in spoil(self.messages(k)).items():
                name = f"/{topic}"
                walks._store(name, serialize_message(msg)[: size[name]])
            if k % 500 == 0:
                self.world.spin_for(0.01)


@pytest.mark.exhaustive
def test_a_walk_is_recorded_analysed_and_identified(
    world, recorded, tmp_path, monkeypatch
):
    monkeypatch.setattr(walk_services, "MAX_CHUNK", 5600)  # 14 s
    # Not by the real time, which passes while others compute.
    monkeypatch.setattr(walk_services, "CHUNK", 1e6)
    store, export = tmp_path / "store", tmp_path / "export"
    export.mkdir()
    folders = {"storage_directory": str(store), "export_directory": str(export)}
    health = tmp_path / "robots.db"
    walk = start_go2(world, recorded, tmp_path, **folders, health_record=str(health))
    early = walk.call(action.IdentifyWalk, "identify_walk")
    assert not early.success
    assert "call record_walk" in early.message
    ended = walk.call(SetBool, "record_walk", data=False)
    assert (ended.success, ended.message) == (False, "nothing is being recorded")
    begun = walk.call(SetBool, "record_walk", data=True)
    assert begun.success, begun.message
    assert "being recorded" in walk.call(SetBool, "record_walk", data=True).message
    walk.send(len(recorded.log.time))
    assert "end that first" in walk.call(action.IdentifyWalk, "identify_walk").message
    ended = walk.call(SetBool, "record_walk", data=False)
    assert ended.success, ended.message
    bag = store / "walk_001"
    assert [path.name for path in sorted(bag.iterdir())] == [
        "walk_001_0000.mcap",
        "walk_001_0001.mcap",
    ]
    world.spin_until(lambda: walk.said[-1].analysed > 27.0, "the analysis", PATIENCE)
    last = walk.said[-1]
    assert (last.recording, last.path, last.problem) == (False, str(bag), "")
    assert len(last.motions) == len(last.com_std_after) == 5
    std = math.hypot(last.com_std.x, last.com_std.y, last.com_std.z)
    assert last.com_std_after[0] < last.com_std_same < std < last.prior_com_std.z
    assert "FL_hip" in last.unknown

    answer = walk.call(action.IdentifyWalk, "identify_walk", mass=recorded.true.mass)
    assert answer.success, answer.message
    assert answer.message.startswith("Result. total mass ")
    assert answer.result.total_mass == pytest.approx(recorded.true.mass, rel=1e-6)
    world.spin_until(lambda: HealthDatabase(health, create=True).records(), "a record")
    (kept,) = HealthDatabase(health).records()
    assert (kept.source, kept.path) == ("node", str(bag))
    assert kept.total_mass[0] == pytest.approx(recorded.true.mass, rel=1e-6)
    trunk = answer.result.bodies[0]
    true = recorded.true.bodies
    com = np.array([trunk.com.x, trunk.com.y, trunk.com.z])
    assert np.linalg.norm(com - true.first_moment[0] / true.mass[0]) < 5e-3
    assert trunk.trusted
    assert {Path(path).name for path in answer.files} == {
        "corrected.urdf",
        "posterior.npz",
        "report.html",
    }
    world.spin_until(
        lambda: repr(walk.results[-1]) == repr(answer.result), "the result"
    )
    written = walk.call(srv.ExportUrdf, "export_urdf", name="walked")
    assert written.success, written.message
    model = RobotModel.from_file(export / "walked.urdf")
    assert model.mass == pytest.approx(recorded.true.mass, rel=1e-6)
    wrong = walk.call(action.IdentifyWalk, "identify_walk", recordings=["../walk_007"])
    assert "no 'walk_007': there are walk_001" in wrong.message
    for values in ({"mass": -1.0}, {"mass": math.nan}, {"mass_std": math.inf}):
        assert (
            "expected kg"
            in walk.call(action.IdentifyWalk, "identify_walk", **values).message
        )
    none = walk.call(action.IdentifyWalk, "identify_walk", postures=True)
    assert "no postures are stored" in none.message


def test_what_cannot_be_recorded_or_used_is_named(
    world, recorded, tmp_path, monkeypatch
):
    monkeypatch.setattr(walk_services, "MAX_CHUNK", 1400)  # 3.5 s
    walk = start_go2(
        world, recorded, tmp_path, storage_directory=str(tmp_path / "store")
    )

    def without_torques(messages):
        messages["joint_states"].effort = []
        return messages

    assert walk.call(SetBool, "record_walk", data=True).success
    nothing = walk.call(SetBool, "record_walk", data=False)
    assert (nothing.success, nothing.message) == (
        False,
        "neither joint_states nor imu came",
    )
    assert walk.call(SetBool, "record_walk", data=True).success
    walk.send(700, without_torques)
    assert walk.call(SetBool, "record_walk", data=False).success
    said = "these joints of the legs report no torque"
    world.spin_until(lambda: said in walk.said[-1].problem, "the problem", PATIENCE)
    assert math.isnan(walk.said[-1].com_std.x)
    assert not walk.said[-1].motions
    answer = walk.call(action.IdentifyWalk, "identify_walk")
    assert not answer.success
    assert said in answer.message
    assert walk.results[-1].status == IdentificationResult.STATUS_UNKNOWN

    monkeypatch.setattr(
        walk_services,
        "append_messages",
        lambda *_: (_ for _ in ()).throw(OSError("no space")),
    )
    assert walk.call(SetBool, "record_walk", data=True).success
    walk.send(100)
    full = walk.call(SetBool, "record_walk", data=False)
    assert not full.success
    assert "cannot be written: no space. Free space" in full.message


def test_a_recording_needs_a_folder(world, recorded, tmp_path):
    walk = start_go2(world, recorded, tmp_path)
    refused = walk.call(SetBool, "record_walk", data=True)
    assert not refused.success
    assert "set the parameter storage_directory" in refused.message


def test_a_recorded_sway_is_checked_up(world, tmp_path, monkeypatch):
    """A knee's encoder is 2 degrees off; the service says so."""
    monkeypatch.setattr(walk_services, "CHUNK", 1e6)
    robot, knee = make_robot(1, 0.4), "R_LFE_R_KN_joint"
    zero = robot.errors.zero.copy()
    zero[robot.true.joint_names.index(knee)] += np.deg2rad(2.0)
    log = sway(replace(robot, errors=replace(robot.errors, zero=zero)), 40.0)
    found = find_robot("hoap3")
    settings = yaml.safe_load(found.config.read_text()) | {"urdf": str(found.urdf)}
    settings["imu"] = {"link": robot.believed.root_link}
    config = tmp_path / "robot.yaml"
    config.write_text(yaml.safe_dump(settings))
    walk = _Walk(
        world, robot.believed, log, config, storage_directory=str(tmp_path / "store")
    )
    assert "nothing is recorded" in walk.call(Trigger, "check_up").message
    assert walk.call(SetBool, "record_walk", data=True).success
    assert "end the recording" in walk.call(Trigger, "check_up").message
    walk.send(len(log.time))
    assert walk.call(SetBool, "record_walk", data=False).success
    answer = walk.call(Trigger, "check_up")
    assert answer.success, answer.message
    assert answer.message.startswith(f"encoder zero of {knee} (")
    assert "outside pull" in answer.message
