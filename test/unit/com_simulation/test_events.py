"""Events by name: what each does to the robot, its loads and its sensors, and when."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from shipped_robot import shipped_robot

from com_model.dynamics import GRAVITY
from com_simulation.exceptions import WorldError
from com_simulation.physics.events import GROWTH, find_events
from com_simulation.physics.sensors import NoiseLevels
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.true_errors import Payload
from com_simulation.physics.world_builder import build_world

PERIOD = 0.01
CONFIG, MODEL, POSTURE, _ = shipped_robot("hoap2")
FOOT = CONFIG.feet[0].frame
JOINT = CONFIG.joint_groups["left_arm"][0]


@pytest.fixture(scope="module")
def standing():
    return build_world(MODEL, CONFIG)


def run(world, names, seconds, **options):
    events = find_events(names, world, CONFIG)
    simulation = Simulation(world, PERIOD, events=events, **options)
    return simulation, [simulation.advance() for _ in range(round(seconds / PERIOD))]


def column(readings, name):
    return np.array([getattr(reading, name) for reading in readings])


def test_a_payload_is_taken_and_dropped(standing):
    """By its link: the weight on the feet, the true masses and the CoM."""
    name = "payload_0.5kg_left_hand@0.5-1"
    simulation, readings = run(standing, name, 1.5)
    mass, com = column(readings, "mass"), column(readings, "com")
    np.testing.assert_allclose(mass[:50], MODEL.mass)
    np.testing.assert_allclose(mass[50:100], MODEL.mass + 0.5)
    np.testing.assert_allclose(mass[100:], MODEL.mass)
    assert not simulation.acting
    body = MODEL.bodies.joint_names.index(CONFIG.joint_groups["left_arm"][-1])
    (event,) = find_events(name, standing, CONFIG)
    assert (event.kind, event.part) == ("PAYLOAD", MODEL.bodies.names[body])
    carried = run(standing, "", 1.0, payload=Payload(0.5, time=0.5, link=event.part))[1]
    np.testing.assert_array_equal(column(carried, "com"), com[:100])
    assert np.linalg.norm(com[99] - com[49]) > 0.005
    weight = column(readings, "wrenches")[:, :, 2].sum(axis=1)
    assert weight[90:100].mean() - weight[40:50].mean() == pytest.approx(
        0.5 * GRAVITY, rel=0.1
    )


def test_two_payloads_at_once(standing):
    _, readings = run(
        standing, "payload_0.2kg@0.1-0.3+payload_0.1kg_right_hand@0.2", 0.4
    )
    extra = column(readings, "mass") - MODEL.mass
    np.testing.assert_allclose(extra[[5, 15, 25, 35]], [0.0, 0.2, 0.3, 0.1], atol=1e-9)


@pytest.mark.parametrize(
    ("name", "force", "kind", "begin", "duration"),
    [
        ("left_0.15@6", [0.0, 0.15 * MODEL.mass / 0.1, 0.0], "UNKNOWN", 6.0, 0.1),
        ("backwards_100N", [-100.0, 0.0, 0.0], "UNKNOWN", np.inf, 0.2),
        ("right_2N@6-9.5", [0.0, -2.0, 0.0], "PULL", 6.0, 3.5),
        ("forwards_-2N@6-inf", [-2.0, 0.0, 0.0], "PULL", 6.0, np.inf),
    ],
)
def test_pushes_and_pulls(standing, name, force, kind, begin, duration):
    (event,) = find_events(name, standing)
    np.testing.assert_allclose(event.vector, force)
    assert (event.kind, event.begin, event.duration) == (kind, begin, duration)
    assert (event.index, event.part) == (0, MODEL.root_link)


def test_a_pull_is_borne_by_the_feet_until_it_ends(standing):
    def sideways(names):
        readings = run(standing, names, 4.0)[1]
        R = Rotation.from_quat(column(readings, "root_orientation"))
        return R.apply(column(readings, "foot_forces").sum(axis=1))[:, 1]

    off = sideways("left_0.5N@1-3") - sideways("")
    np.testing.assert_array_equal(off[:100], 0.0)
    assert off[200:300].mean() == pytest.approx(-0.5, rel=0.1)
    assert abs(off[350:].mean()) < 0.05


def test_a_push_takes_the_root_and_adds_to_the_one_of_a_program():
    world = build_world(MODEL, CONFIG, base="fixed")
    simulation = Simulation(world, PERIOD, events=find_events("left_3N@0.05-1", world))
    simulation.push([1.0, 0.0, 0.0])
    for _ in range(5):
        simulation.advance()
    np.testing.assert_array_equal(simulation._data.xfrc_applied[1, :3], [1.0, 0.0, 0.0])
    simulation.advance()
    np.testing.assert_array_equal(simulation._data.xfrc_applied[1, :3], [1.0, 3.0, 0.0])
    simulation.push([0.0, 0.0, 0.0])
    np.testing.assert_array_equal(simulation._data.xfrc_applied[1, :3], [0.0, 3.0, 0.0])


def test_a_pull_at_a_hand(standing):
    (event,) = find_events("left_2N_left_hand@1-2", standing, CONFIG)
    assert MODEL.bodies.names[event.index] == event.part != MODEL.root_link


def test_zeros_of_a_force_sensor_grow_and_fade(standing):
    names = f"fx_2N_{FOOT}@0.5+tz_-0.3Nm_{FOOT}@0.5-1"
    _, readings = run(standing, names, 1.5)
    plain = run(standing, "", 1.5)[1]
    off = column(readings, "wrenches") - column(plain, "wrenches")
    time = column(readings, "time")
    grown = np.clip((time - 0.5) / GROWTH, 0.0, 1.0)
    np.testing.assert_allclose(off[:, 0, 0], 2.0 * grown, atol=1e-4)
    fades = np.clip((time - 1.0) / GROWTH, 0.0, 1.0)
    np.testing.assert_allclose(off[:, 0, 5], -0.3 * (grown - fades), atol=1e-4)
    np.testing.assert_allclose(off[:, 0, 1:5], 0.0, atol=1e-12)
    np.testing.assert_allclose(off[:, 1], 0.0, atol=1e-12)


def test_a_tilt_of_the_imu(standing):
    _, readings = run(standing, "tilt_y_0.7deg@0.1", 1.0)
    plain = run(standing, "", 1.0)[1]
    q, true = (
        Rotation.from_quat(column(r, "imu_orientation")) for r in (readings, plain)
    )
    turn = (true.inv() * q).as_rotvec()
    np.testing.assert_allclose(turn[:10], 0.0, atol=1e-9)
    np.testing.assert_allclose(turn[-1], [0.0, np.radians(0.7), 0.0], atol=1e-9)


def test_a_servo_goes_with_its_encoder():
    """The encoder reads what it is sent to, the joint is off."""
    world = build_world(MODEL, CONFIG, base="fixed")
    simulation, readings = run(world, f"encoder_1deg_{JOINT}@0.5-2", 1.8)
    j = MODEL.joint_index(JOINT)
    off = column(readings, "position")[:, j] - POSTURE[j]
    assert np.abs(off[-10:] - off[40]).max() < 1e-4
    true = simulation._data.qpos[world.joint_qpos[j]] - POSTURE[j]
    assert true - off[40] == pytest.approx(np.radians(-1.0), rel=0.01)
    for _ in range(100):
        last = simulation.advance()
    true = simulation._data.qpos[world.joint_qpos[j]] - POSTURE[j]
    assert last.position[j] - POSTURE[j] == pytest.approx(true, abs=1e-6)
    assert true == pytest.approx(off[40], abs=1e-5)


def test_events_add_to_constant_errors(standing):
    noise = NoiseLevels(force_bias=2.0, position_bias=0.01)
    simulation, readings = run(standing, f"fx_2N_{FOOT}@0.1", 0.5, noise=noise, seed=3)
    plain = run(standing, "", 0.5, noise=noise, seed=3)[1]
    off = readings[-1].wrenches - plain[-1].wrenches
    np.testing.assert_allclose(off[0, 0], 2.0, atol=1e-9)
    simulation.reset()
    again = [simulation.advance() for _ in range(50)]
    np.testing.assert_array_equal(
        column(again, "wrenches"), column(readings, "wrenches")
    )


def test_without_a_time_it_waits(standing):
    simulation, _ = run(standing, "left_0.5N+payload_0.2kg@0.1", 0.5)
    assert [event.kind for event in simulation.acting] == ["PAYLOAD"]
    simulation.begin()
    begin = simulation.time
    acting = []
    for _ in range(30):
        time = simulation.advance().time
        acting += [time - begin] * any(
            event.kind == "UNKNOWN" for event in simulation.acting
        )
    np.testing.assert_allclose([acting[0], acting[-1]], [PERIOD, 0.19])
    simulation.begin()
    assert simulation.advance().time > 0.0
    assert [event.kind for event in simulation.acting] == ["PAYLOAD"]  # once


def test_joints_that_give(standing):
    """An encoder on the motor's side reads q + k tau, and its rate."""
    k = 1e-3
    _, readings = run(
        standing, "left_1N@0.3-0.5", 0.8, noise=NoiseLevels(flexibility=k)
    )
    plain = run(standing, "left_1N@0.3-0.5", 0.8)[1]
    twist = column(readings, "position") - column(plain, "position")
    np.testing.assert_allclose(twist, k * column(plain, "effort"), atol=1e-12)
    assert np.abs(twist).max() > 1e-4
    rate = (column(readings, "velocity") - column(plain, "velocity"))[1:]
    np.testing.assert_allclose(rate, np.diff(twist, axis=0) / PERIOD, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "up_3",
        "left",
        "left_x",
        "left_3kN",
        "payload_4",
        "tilt_0.3deg",
        "fx_3Nm_sole",
        "mud",
    ],
)
def test_no_event_of_that_name(standing, name):
    if not name:
        assert find_events(name, standing) == ()
        return
    with pytest.raises(
        WorldError, match="give forwards, backwards, left, right and m/s or N"
    ):
        find_events(f"left_0.1@3+{name}", standing)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("payload_4kg_left_hand", "left_hand is none of body"),
        ("fz_4N_nowhere@3", f"nowhere is none of {FOOT}"),
        ("encoder_1deg@3", "body is none of"),
        ("left_3N@5-4", "it ends before it begins"),
        ("payload_-3kg", "payload.mass is -3"),
    ],
)
def test_no_such_part_or_time(standing, name, text):
    with pytest.raises(WorldError, match=text.replace("body", MODEL.root_link)):
        find_events(name, standing)
