"""State messages of Unitree's robots stand for joint states and IMU."""

import sqlite3

import numpy as np
import pandas
import pytest
from lowstate import message, write_humble
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags import (
    Bag,
    LogFormat,
    SensorReader,
    TopicError,
    TopicRequest,
    find_topics,
    read_walk,
)
from com_bags.exceptions import DefinitionError
from com_bags.message_layout import MessageLayout, NumberReader
from com_bags.robot_states import STATE_ROBOTS, state_robot
from com_model import RobotModel, load_robot

GO, HG = "unitree_go/msg/LowState", "unitree_hg/msg/LowState"
START = 1_700_000_000_000_000_000
COUNT = 400
HALF = np.sqrt(0.5)


def chain(names):
    """A robot whose joints hang in a row, with these names."""
    links = [
        f'<link name="{n}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
        'ixz="0" iyz="0"/></inertial></link>'
        for n in ("pelvis", *names)
    ]
    joints = [
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}"/>'
        '<axis xyz="0 0 1"/><limit lower="-9" upper="9" effort="9" velocity="9"/></joint>'
        for parent, name in zip(("pelvis", *names[:-1]), names, strict=True)
    ]
    return RobotModel.from_urdf(f'<robot name="r">{"".join(links + joints)}</robot>')


def values(count, motors):
    """Position, velocity and torque by time and motor; all different."""
    k, i = np.arange(count)[:, None], np.arange(motors)
    return np.stack(
        (np.sin(0.01 * k + i), 0.1 * i + 0 * k, 1.0 * i - 0.01 * k), axis=-1
    )


def states(kind, slots, count=COUNT, tick=5000, **options):
    """Messages at 500 Hz of the robot's clock, 3 ms late every tenth."""
    table = values(count, max(slots) + 1)
    found = []
    for k in range(count):
        motors = {slot: tuple(table[k, slot]) for slot in slots}
        data = message(
            kind,
            tick + 2 * k if tick else 0,
            motors,
            np.array([HALF, 0.0, HALF, 0.0]),
            np.array([0.1, 0.2, 0.3]),
            np.array([9.81, 0.0, 0.0]),
            **options,
        )
        found.append((START + 2_000_000 * k + 3_000_000 * (k % 10 == 0), data))
    return found


def read(path, model, link):
    with Bag(path, LogFormat.of(model, ())) as bag:
        topics = find_topics(bag.topics(), (), TopicRequest(), True, str(path))
        reader = SensorReader(bag, model, (), topics, link)
        return read_walk(reader), reader.warnings()


def test_a_go2_of_humble_without_definitions(tmp_path):
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(12)))
    model, _ = load_robot("go2")
    log, warnings = read(tmp_path / "bag", model, "imu")
    names = [
        f"{leg}_{part}_joint"
        for leg in ("FR", "FL", "RR", "RL")
        for part in ("hip", "thigh", "calf")
    ]
    order = [names.index(name) for name in model.joint_names]
    expected = values(COUNT, 12)[:, order]
    # the robot's clock, not that of the recorder
    np.testing.assert_allclose(log.time, 0.002 * np.arange(COUNT), atol=1e-9)
    np.testing.assert_allclose(log.position, expected[..., 0], atol=1e-6)
    np.testing.assert_allclose(log.effort, expected[..., 2], atol=1e-6)
    np.testing.assert_allclose(
        log.angular_velocity, np.tile([0.1, 0.2, 0.3], (COUNT, 1)), atol=1e-7
    )
    np.testing.assert_allclose(log.specific_force[:, 0], 9.81, atol=1e-6)
    # turned by 90 degrees about y: its x axis looks down
    np.testing.assert_allclose(log.up, np.tile([-1.0, 0.0, 0.0], (COUNT, 1)), atol=1e-6)
    assert any("no definition of unitree_go/msg/LowState" in text for text in warnings)


@pytest.mark.parametrize("robot", STATE_ROBOTS, ids=lambda robot: robot.name)
def test_each_robot_is_known_by_the_names_of_its_joints(tmp_path, robot):
    slots = [i for i, name in enumerate(robot.joints) if name]
    write_humble(
        tmp_path / "bag",
        "/lowstate",
        robot.type_names[0],
        states(robot.type_names[0], slots, 30),
    )
    names = [robot.joints[slot] for slot in slots]
    model = chain(names[::-1])
    log, _ = read(tmp_path / "bag", model, "pelvis")
    np.testing.assert_allclose(
        log.position, values(30, max(slots) + 1)[:, slots[::-1], 0], atol=1e-6
    )


def test_motors_of_a_g1_are_the_joints_of_the_public_urdf():
    model, _ = load_robot("g1")
    g1 = next(robot for robot in STATE_ROBOTS if robot.name == "G1")
    assert set(g1.joints) == set(model.joint_names)


def test_an_h1_has_its_imu_in_the_torso(tmp_path):
    h1 = next(robot for robot in STATE_ROBOTS if robot.name == "H1")
    names = [name for name in h1.joints if name]
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(20), 30))
    _, warnings = read(tmp_path / "bag", chain(names), "pelvis")
    assert any("torso_link" in text and "pelvis" in text for text in warnings)


def test_motors_in_place_of_joints_are_refused(tmp_path):
    write_humble(
        tmp_path / "bag", "/lowstate", HG, states(HG, range(29), 30, mode_pr=1)
    )
    model, _ = load_robot("g1")
    with pytest.raises(TopicError, match="mode_pr"):
        read(tmp_path / "bag", model, "pelvis")


def test_joints_of_another_robot_are_refused(tmp_path, pair):
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(12), 30))
    with pytest.raises(TopicError, match=r"Go2.*H1.*is it the URDF of this robot"):
        read(tmp_path / "bag", pair, "imu")


def test_legs_alone_do_not_tell_a_g1_from_an_h1_2(tmp_path):
    g1, h1_2 = (
        next(r for r in STATE_ROBOTS if r.name == name) for name in ("G1", "H1-2")
    )
    legs = list(g1.joints[:12])
    assert set(legs) == set(h1_2.joints[:12])
    write_humble(tmp_path / "bag", "/lowstate", HG, states(HG, range(12), 30))
    with pytest.raises(TopicError, match="G1, H1-2"):
        read(tmp_path / "bag", chain(legs), "pelvis")
    # a waist that is fixed still has its link
    assert state_robot(HG, [*legs, "waist_yaw_link"], "/lowstate") is g1
    assert state_robot(HG, [*legs, "torso_joint"], "/lowstate") is h1_2


def test_a_restart_of_the_robot_is_a_later_run(tmp_path):
    first, second = (
        states(GO, range(12), 100, tick=90_000),
        states(GO, range(12), 100, tick=30),
    )
    later = [(time + 60 * 1_000_000_000, data) for time, data in second]
    write_humble(tmp_path / "bag", "/lowstate", GO, first + later)
    model, _ = load_robot("go2")
    log, _ = read(tmp_path / "bag", model, "imu")
    expected = 0.002 * np.arange(100)
    np.testing.assert_allclose(log.time[:100], expected, atol=1e-9)
    np.testing.assert_allclose(log.time[100:], 60.0 + expected, atol=1e-9)


def test_a_bag_lists_its_topics_as_they_are(tmp_path):
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(12), 30))
    with Bag(tmp_path / "bag") as bag:
        assert [(topic.name, topic.type_name) for topic in bag.topics()] == [
            ("/lowstate", GO)
        ]


def test_a_slow_copy_of_the_topic_is_not_taken(tmp_path):
    """A bag of all topics has /lf/lowstate, too, as the robots publish it."""
    fast, slow = states(GO, range(12), 300), states(GO, range(12), 300)[::25]
    write_humble(tmp_path / "bag", "/lowstate", GO, fast)
    with sqlite3.connect(tmp_path / "bag" / "bag_0.db3") as database:
        row = (
            "INSERT INTO topics SELECT 2, '/lf/lowstate', type, serialization_format, "
        )
        database.execute(row + "offered_qos_profiles FROM topics WHERE id = 1")
        values = [(time + 1000, data) for time, data in slow]
        database.executemany(
            "INSERT INTO messages(topic_id, timestamp, data) VALUES(2, ?, ?)", values
        )
    model, _ = load_robot("go2")
    log, _ = read(tmp_path / "bag", model, "imu")
    assert len(log.time) == 300


def test_a_newer_firmware_may_append_fields(tmp_path):
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(12), 30, extra=24))
    model, _ = load_robot("go2")
    log, _ = read(tmp_path / "bag", model, "imu")
    assert len(log.time) == 30


def test_a_clock_that_stands_gives_way_to_the_times_of_recording(tmp_path):
    write_humble(tmp_path / "bag", "/lowstate", GO, states(GO, range(12), 31, tick=0))
    model, _ = load_robot("go2")
    log, warnings = read(tmp_path / "bag", model, "imu")
    assert log.time[-1] - log.time[0] == pytest.approx(0.060)
    assert any("31 messages without stamp" in text for text in warnings)


def test_messages_that_end_early_are_counted(tmp_path):
    whole = states(GO, range(12), 30)
    whole[7] = whole[7][0], whole[7][1][:200]
    write_humble(tmp_path / "bag", "/lowstate", GO, whole)
    model, _ = load_robot("go2")
    log, warnings = read(tmp_path / "bag", model, "imu")
    assert len(log.time) == 29
    assert any("1 messages cannot be decoded" in text for text in warnings)


# --- the layout of any message, against rosbags ---------------------------------------------------
DEFINITION = """std_msgs/Header header
bool flag
string label
float64 x
int8[3] small
Part[] parts
float32[] rest
"""


@pytest.fixture(scope="module")
def store():
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(DEFINITION, "own/msg/State"))
    store.register(get_types_from_msg("uint8 mode\nfloat64 q\nint16 t", "own/msg/Part"))
    return store


def own(store, label, parts, rest, x):
    types = store.types
    header = types["std_msgs/msg/Header"](
        types["builtin_interfaces/msg/Time"](7, 8), "base"
    )
    made = [types["own/msg/Part"](i, 0.5 * i + x, -i) for i in range(parts)]
    small = np.array([1, -2, 3], np.int8)
    return types["own/msg/State"](
        header, True, label, x, small, made, np.arange(rest, dtype=np.float32) + x
    )


@pytest.mark.parametrize("little", [True, False])
def test_fields_of_any_message(store, little):
    made = [own(store, "a" * (k % 3), 3, 4, float(k)) for k in range(20)]
    payloads = [
        store.serialize_cdr(each, "own/msg/State", little_endian=little)
        for each in made
    ]
    paths = {
        "x": "x",
        "q": "parts[0:3].q",
        "t": "parts[2,0].t",
        "rest": "rest",
        "small": "small",
        "stamp": "header.stamp.sec",
    }
    found, problems = NumberReader(store.fielddefs, "own/msg/State", paths).read(
        payloads
    )
    assert not problems
    assert sorted(np.concatenate([rows for rows, _, _ in found])) == list(range(20))
    for rows, numbers, _ in found:
        k = rows.astype(float)[:, None]
        np.testing.assert_array_equal(numbers["x"], k)
        np.testing.assert_array_equal(numbers["q"], k + np.array([0.0, 0.5, 1.0]))
        np.testing.assert_array_equal(numbers["t"], np.tile([-2, 0], (len(rows), 1)))
        np.testing.assert_array_equal(numbers["rest"], k + np.arange(4))
        np.testing.assert_array_equal(
            numbers["small"], np.tile([1, -2, 3], (len(rows), 1))
        )
        np.testing.assert_array_equal(numbers["stamp"], np.full((len(rows), 1), 7))


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("parts[0:3].qq", "parts.q"),
        ("y", "no number y"),
        ("parts[a:b].q", "no choice of entries"),
        ("parts[5,6].q", "no number parts"),
    ],
)
def test_paths_that_name_nothing(store, path, named):
    payload = store.serialize_cdr(own(store, "a", 3, 4, 1.0), "own/msg/State")
    layout = MessageLayout(store.fielddefs, "own/msg/State", bytes(payload))
    with pytest.raises(DefinitionError) as error:
        layout.slices(path)
    assert named in str(error.value)


def test_damaged_lengths_cost_no_memory(store):
    payload = bytearray(
        store.serialize_cdr(own(store, "a", 3, 4, 1.0), "own/msg/State")
    )
    rng = np.random.default_rng(1)
    for _ in range(300):
        damaged = bytearray(payload)
        at = int(rng.integers(4, len(payload)))
        damaged[at : at + 4] = rng.bytes(4)
        cut = bytes(damaged[: int(rng.integers(1, len(payload) + 4))])
        NumberReader(store.fielddefs, "own/msg/State", {"x": "x"}).read([cut])


def test_every_message_that_ends_early_has_its_reason(store):
    payload = bytes(store.serialize_cdr(own(store, "a", 3, 4, 1.0), "own/msg/State"))
    reader = NumberReader(store.fielddefs, "own/msg/State", {"x": "x"})
    found, problems = reader.read([payload[:60]] * 100 + [payload])
    assert [rows.tolist() for rows, _, _ in found] == [[100]]
    assert len(problems) == 100
    assert all("ends after 60 bytes" in problem for problem in problems)


def test_a_bag_with_its_own_definition(tmp_path):
    store = get_typestore(Stores.ROS2_JAZZY)
    fields = "uint32 tick\nIMUState imu_state\nMotorState[12] motor_state"
    imu = "float32[4] quaternion\nfloat32[3] gyroscope\nfloat32[3] accelerometer"
    store.register(get_types_from_msg(fields, GO))
    store.register(get_types_from_msg(imu, "unitree_go/msg/IMUState"))
    store.register(
        get_types_from_msg(
            "float64 q\nfloat64 dq\nfloat64 tau_est", "unitree_go/msg/MotorState"
        )
    )
    make, table = store.types, values(40, 12)
    with Writer(
        tmp_path / "bag", version=9, storage_plugin=StoragePlugin.MCAP
    ) as writer:
        connection = writer.add_connection("/robot/lowstate", GO, typestore=store)
        for k in range(40):
            motors = [
                make["unitree_go/msg/MotorState"](*row) for row in table[k].tolist()
            ]
            one, zero = np.array([1, 0, 0, 0], np.float32), np.zeros(3, np.float32)
            state = make[GO](
                10 + 2 * k, make["unitree_go/msg/IMUState"](one, zero, zero), motors
            )
            writer.write(connection, START + k, store.serialize_cdr(state, GO))
    model, _ = load_robot("go2")
    log, warnings = read(tmp_path / "bag", model, "imu")
    assert len(log.time) == 40
    assert not any("no definition" in text for text in warnings)


STYLES = {
    # time, field of a motor, field of the IMU, others
    "PlotJuggler": (
        "__time",
        "/lowstate/motor_state[{}]/{}",
        "/lowstate/imu_state/{}[{}]",
        "/lowstate/{}",
    ),
    "pandas": ("stamp", "motor_state.{}.{}", "imu_state.{}.{}", "{}"),
    "by hand": ("time", "motorState_{}_{}", "imuState_{}_{}", "{}"),
    "Go1": ("time_ms", "motorState[{}].{}", "imu.{}[{}]", "{}"),
}


def state_csv(path, style, motors, rows=200, **further):
    """A table of state messages, every other row of another topic; the positions by motor."""
    time, motor, imu, field = STYLES[style]
    table = values(rows, motors)
    data = {time: (1e3 if time == "time_ms" else 1.0) * 0.002 * np.arange(rows)}
    for i in range(motors):
        tau = "tauEst" if "motorState" in motor else "tau_est"
        for k, name in enumerate(("q", "dq", tau)):
            data[motor.format(i, name)] = table[:, i, k]
        data[motor.format(i, "q_raw")] = 7.0 + 0 * table[:, i, 0]
    for name, numbers in (
        ("quaternion", (HALF, 0.0, HALF, 0.0)),
        ("gyroscope", (0.1, 0.2, 0.3)),
        ("accelerometer", (9.81, 0.0, 0.0)),
    ):
        data |= {
            imu.format(name, i): 0.0 * data[time] + n for i, n in enumerate(numbers)
        }
    data |= {field.format(k): 0.0 * data[time] + v for k, v in further.items()}
    own = pandas.DataFrame(data)
    step = 0.5 * (own[time][1] - own[time][0])
    other = pandas.DataFrame({time: own[time] + step, "other/q": 1.0})
    pandas.concat([own, other]).sort_values(time).to_csv(path, index=False)
    return table


@pytest.mark.parametrize("style", STYLES)
def test_a_table_of_state_messages_needs_no_mapping(tmp_path, style):
    go2, model = STATE_ROBOTS[0], load_robot("go2")[0]
    table = state_csv(tmp_path / "log.csv", style, 12)
    order = [go2.joints.index(name) for name in model.joint_names]
    log, _ = read(tmp_path / "log.csv", model, "imu")
    np.testing.assert_allclose(
        log.time - log.time[0], 0.002 * np.arange(200), atol=1e-9
    )
    np.testing.assert_allclose(log.position, table[:, order, 0], atol=1e-9)
    np.testing.assert_allclose(log.effort, table[:, order, 2], atol=1e-9)
    np.testing.assert_allclose(log.angular_velocity[0], [0.1, 0.2, 0.3], atol=1e-9)
    np.testing.assert_allclose(log.up[0], [-1.0, 0.0, 0.0], atol=1e-9)
    with Bag(tmp_path / "log.csv", LogFormat.of(model, ())) as bag:
        velocities = bag.conversions[0].fields["velocity"]
    motor = STYLES[style][1]
    assert [each.path for each in velocities] == [
        motor.format(i, "dq") for i in range(12)
    ]


def test_a_table_of_state_messages_has_the_robots_clock(tmp_path):
    """Its ticks are even; times of receipt are not."""
    state_csv(tmp_path / "log.csv", "PlotJuggler", 12, tick=1000 + 4 * np.arange(200))
    log, _ = read(tmp_path / "log.csv", load_robot("go2")[0], "imu")
    np.testing.assert_allclose(np.diff(log.time), 0.004, atol=1e-9)


def test_rows_of_other_topics_may_repeat_the_state(tmp_path):
    """As programs do that fill gaps with the last value; the ticks tell the copies."""
    state_csv(tmp_path / "gaps.csv", "PlotJuggler", 12, tick=1000 + 2 * np.arange(200))
    frame = pandas.read_csv(tmp_path / "gaps.csv").ffill()
    frame.to_csv(tmp_path / "log.csv", index=False)
    log, _ = read(tmp_path / "log.csv", load_robot("go2")[0], "imu")
    np.testing.assert_allclose(
        log.time - log.time[0], 0.002 * np.arange(200), atol=1e-9
    )


def test_a_table_of_motors_in_place_of_joints_is_refused(tmp_path):
    state_csv(tmp_path / "log.csv", "PlotJuggler", 29, mode_pr=1)
    with pytest.raises(TopicError, match="mode_pr"):
        read(tmp_path / "log.csv", load_robot("g1")[0], "pelvis")


def test_a_table_of_another_robot_is_refused_by_name(tmp_path, pair):
    state_csv(tmp_path / "log.csv", "pandas", 12)
    with pytest.raises(TopicError, match="is it the URDF of this robot"):
        read(tmp_path / "log.csv", pair, "imu")
