"""com_setup --from-log: logs whose numbers are not what they are taken for."""

import dataclasses

import numpy as np
import pandas
import pytest
import yaml
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from standing_recording import record_standing

from com_bags import Bag, LogFormat, TopicRequest, find_topics
from com_identification.capture.log_fit import fit_log
from com_identification.capture.standing_log import LogReadings
from com_identification.commands.log_setup import read_readings
from com_identification.exceptions import LogFitError
from com_identification.walking.preparation import find_limbs
from com_model.commands import setup

AXES = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])  # of the IMU
UNTURNED = np.eye(3)
CURRENT = 0.48  # A per N m


@pytest.fixture(scope="module")
def go2():
    return record_standing("go2")


@pytest.fixture(scope="module")
def talos():
    return record_standing("talos", 0.5)


def wrong(robot, order, signs, axes=UNTURNED, turn=None, **units):
    """Readings with the names of the URDF in its order, but of other joints."""
    unit = {"position": 1.0, "effort": 1.0, "gyro": 1.0, "force": 1.0} | units
    return LogReadings(
        names=robot.model.joint_names,
        time=robot.time,
        position=unit["position"] * robot.position[:, order] * signs,
        velocity=unit["position"] * robot.velocity[:, order] * signs,
        effort=unit["effort"] * robot.effort[:, order] * signs,
        gyro=unit["gyro"] * robot.gyro @ axes,
        force=unit["force"] * robot.force @ axes,
        turn=robot.turn if turn is None else turn,
    )


def legs_exchanged(robot):
    """Order and signs of a logger that has the other side first, and reverses three joints."""
    legs = [own[own >= 0] for own in find_limbs(robot.model, robot.config).joints]
    order, signs = np.arange(robot.model.n_joints), np.ones(robot.model.n_joints)
    for left, right in zip(legs[::2], legs[1::2], strict=True):
        order[left], order[right] = right, left
    signs[[legs[0][0], legs[0][1], legs[1][1]]] = -1.0
    return order, signs


def names(robot, order):
    return tuple(robot.model.joint_names[j] for j in order)


class TestFitLog:
    def test_a_log_that_fits_stays_as_it_is(self, go2):
        plain = np.arange(12)
        found = fit_log(wrong(go2, plain, np.ones(12)), go2.model, go2.config)
        assert found.names == go2.model.joint_names
        assert set(found.told.values()) == {"fits", "rad/s", "m/s^2", "order xyzw"}
        assert not found.unsure
        np.testing.assert_array_equal(found.axes, np.eye(3))
        for factors in (found.position, found.velocity, found.effort):
            np.testing.assert_array_equal(factors, 1.0)

    def test_orders_signs_units_and_axes_are_found(self, go2):
        order, signs = legs_exchanged(go2)
        log = wrong(
            go2,
            order,
            signs,
            AXES,
            go2.turn[:, [3, 0, 1, 2]],
            position=180.0 / np.pi,
            effort=CURRENT,
            gyro=180.0 / np.pi,
            force=1.0 / 9.80665,
        )
        found = fit_log(log, go2.model, go2.config)
        assert found.names == names(go2, order)
        np.testing.assert_allclose(found.position, signs * np.pi / 180.0)
        np.testing.assert_allclose(found.velocity, signs * np.pi / 180.0)
        np.testing.assert_array_equal(np.sign(found.effort), signs)
        np.testing.assert_allclose(np.abs(found.effort), 1.0 / CURRENT, rtol=0.15)
        np.testing.assert_array_equal(found.axes, AXES)
        assert (found.order, found.gyro, found.force) == (
            "wxyz",
            np.pi / 180.0,
            9.80665,
        )
        assert "the feet carry 0." in found.told["FR_calf_joint: effort"]
        assert not found.unsure

    def test_joints_by_kind(self, go2):
        order = np.arange(12).reshape(4, 3)[[1, 0, 3, 2]].T.ravel()
        found = fit_log(wrong(go2, order, np.ones(12)), go2.model, go2.config)
        assert found.names == names(go2, order)

    def test_velocities_and_torques_have_signs_and_an_order_of_their_own(self, go2):
        log = wrong(go2, np.arange(12), np.ones(12))
        flipped = np.where(np.arange(12) == 4, -1.0, 1.0)
        log = dataclasses.replace(
            log, velocity=log.velocity[:, ::-1], effort=log.effort * flipped
        )
        found = fit_log(log, go2.model, go2.config)
        assert found.velocities == tuple(range(11, -1, -1))
        np.testing.assert_array_equal(found.effort, flipped)
        assert found.told["FR_thigh_joint: effort"] == "reversed"

    def test_a_humanoid_and_what_cannot_be_told(self, talos):
        order, signs = legs_exchanged(talos)
        found = fit_log(wrong(talos, order, signs, AXES), talos.model, talos.config)
        assert found.names == names(talos, order)
        np.testing.assert_array_equal(found.position, signs)
        np.testing.assert_array_equal(found.axes, AXES)
        assert "cannot tell" in found.unsure["arm_left_2_joint: position"]
        assert "cannot tell" in found.unsure["head_1_joint: effort"]
        assert "leg_left_4_joint: position" in found.told

    def test_a_robot_that_stands_still_shows_nothing(self, go2):
        log = wrong(go2, np.arange(12), np.ones(12))
        still = dataclasses.replace(log, position=np.tile(log.position[0], (601, 1)))
        with pytest.raises(LogFitError, match="hardly move"):
            fit_log(still, go2.model, go2.config)

    @pytest.mark.exhaustive  # it searches for a minute and a half
    def test_joints_that_move_at_random_fit_in_no_way(self, go2):
        log, rng = wrong(go2, np.arange(12), np.ones(12)), np.random.default_rng(1)
        walk = np.cumsum(0.03 * rng.standard_normal(log.position.shape), axis=0)
        other = dataclasses.replace(log, position=log.position[0] + walk)
        with pytest.raises(LogFitError, match=r"no order and no signs .* fit"):
            fit_log(other, go2.model, go2.config)


def read(path, robot, mapping):
    model = robot.model
    about = LogFormat(model.joint_names, model.link_names, {}, mapping)
    with Bag(path, about) as bag:
        topics = find_topics(bag.topics(), (), TopicRequest(), True, str(path))
        return read_readings(bag, topics)


def check_restored(found, robot):
    own = [found.names.index(name) for name in robot.model.joint_names]
    np.testing.assert_allclose(found.position[:, own], robot.position, atol=1e-9)
    np.testing.assert_allclose(found.velocity[:, own], robot.velocity, atol=1e-9)
    np.testing.assert_allclose(found.gyro, robot.gyro, atol=1e-9)
    np.testing.assert_allclose(found.force, robot.force, atol=1e-9)


@pytest.fixture
def urdf(go2, tmp_path):
    """A URDF with a configuration beside it."""
    path = tmp_path / "robot.urdf"
    path.write_text(go2.model.xml)
    assert setup.main([str(path), "--quiet"]) == 0
    config = yaml.safe_load((tmp_path / "robot.yaml").read_text())
    config.pop("imu", None)
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(config))
    return path


class TestCommand:
    def test_the_mapping_of_a_table_restores_it(self, go2, urdf, tmp_path, capsys):
        order, signs = legs_exchanged(go2)
        log = wrong(go2, order, signs, AXES, position=180.0 / np.pi)
        columns = {"t": log.time}
        for name in ("position", "velocity", "effort"):
            values = getattr(log, name)
            columns |= {f"{name}_{i}": values[:, i] for i in range(12)}
        for name in ("gyro", "force"):
            columns |= {
                f"{name}_{a}": getattr(log, name)[:, i] for i, a in enumerate("xyz")
            }
        pandas.DataFrame(columns).to_csv(tmp_path / "stand.csv", index=False)
        start = {
            "time": "t",
            "joints": {n: f"{n}_*" for n in ("position", "velocity", "effort")},
            "imu": {
                "gyro": [f"gyro_{a}" for a in "xyz"],
                "acceleration": [f"force_{a}" for a in "xyz"],
            },
        }
        (tmp_path / "start.yaml").write_text(yaml.safe_dump(start))
        words = [str(urdf), "--from-log", str(tmp_path / "stand.csv")]
        words += ["--mapping", str(tmp_path / "start.yaml")]
        assert setup.main(words) == 0
        printed = capsys.readouterr().out
        assert "is FR_hip_joint, reversed, degrees" in printed
        assert "the log has none" in printed  # of the orientation
        check_restored(read(tmp_path / "stand.csv", go2, tmp_path / "stand.yaml"), go2)
        assert setup.main(words) == 2
        assert "stand.yaml" in capsys.readouterr().err

    def test_the_mapping_of_standard_messages_restores_them(self, go2, urdf, tmp_path):
        order, signs = legs_exchanged(go2)
        log = wrong(go2, order, signs, AXES, go2.turn[:, [3, 0, 1, 2]])
        store = get_typestore(Stores.ROS2_JAZZY)
        make, kinds = store.types, ("sensor_msgs/msg/JointState", "sensor_msgs/msg/Imu")
        vector = make["geometry_msgs/msg/Vector3"]
        bag = tmp_path / "recording"
        with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            to = [
                writer.add_connection(topic, kind, typestore=store)
                for topic, kind in zip(("/joint_states", "/imu"), kinds, strict=True)
            ]
            for i, time in enumerate(log.time.tolist()):
                at = 10**18 + round(1e9 * time)
                stamp = make["builtin_interfaces/msg/Time"](*divmod(at, 10**9))
                header = make["std_msgs/msg/Header"](stamp, "")
                parts = log.position[i], log.velocity[i], log.effort[i]
                rows = map(np.ascontiguousarray, parts)
                state = make[kinds[0]](header, list(log.names), *rows)
                turn = make["geometry_msgs/msg/Quaternion"](*log.turn[i])
                zero = np.zeros(9)
                turning = vector(*log.gyro[i]), zero, vector(*log.force[i]), zero
                reading = make[kinds[1]](header, turn, zero, *turning)
                for connection, message in zip(to, (state, reading), strict=True):
                    writer.write(
                        connection, at, store.serialize_cdr(message, connection.msgtype)
                    )
        output = tmp_path / "found.yaml"
        words = [str(urdf), "--from-log", str(bag), "--output", str(output)]
        assert setup.main(words) == 0
        found = read(bag, go2, output)
        check_restored(found, go2)
        np.testing.assert_allclose(found.turn, go2.turn, atol=1e-9)

    def test_what_is_missing_is_said(self, urdf, tmp_path, capsys):
        assert setup.main([str(urdf), "--from-log", str(tmp_path / "none.csv")]) == 2
        assert "none.csv" in capsys.readouterr().err
