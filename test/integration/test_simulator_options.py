"""What the simulator's parameters change: the robot, its sensors, hoist, floor and time."""

import time

import mujoco
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from simulator_bench import ARM, HOAP2, by_stamp
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger

from com_model import ConfigError, RobotModel, Sesc, UrdfError
from com_msgs.msg import Culprit
from com_ros import qos
from com_ros.conversions import (
    imu_to_rotation,
    point_to_numpy,
    stamp_to_ns,
    vector3_to_numpy,
)
from com_ros.exceptions import ParameterError
from com_simulation.exceptions import DivergedError, WorldError
from com_simulation.nodes.simulator import LATCHED_EVENTS


def test_robot_from_the_topic_and_no_second_one(simulator_bench, warnings):
    bench = simulator_bench(publish_rate_hz=100.0)
    bench.until(lambda: warnings, "warning")
    assert "no robot_description yet: waiting for a latched message" in warnings[0]
    latched = bench.node.create_publisher(String, "robot_description", qos.LATCHED)
    latched.publish(String(data="<robot name='broken'>"))
    latched.publish(String(data=ARM))
    joints = bench.wait_for("joint_states")
    assert list(joints[0].name) == ["a", "b"]
    latched.publish(String(data=HOAP2["robot_description"]))
    bench.spin(0.3)
    assert len(bench.received["joint_states"][-1].name) == 2


def test_file_and_robot_description_on_the_topic(simulator_bench, tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    bench = simulator_bench(
        urdf_file=str(file), publish_robot_description=True, frame_prefix="r1/"
    )
    received = []
    bench.node.create_subscription(
        String, "robot_description", received.append, qos.LATCHED
    )
    bench.until(lambda: received, "robot_description")
    assert received[0].data == ARM
    assert bench.wait_for("/tf")[0].transforms[0].child_frame_id == "r1/base"


def test_the_truth_about_the_trunk(simulator_bench):
    """A CoM that is not the URDF's, and a payload that drops at 0.3 s."""
    model = RobotModel.from_urdf(HOAP2["robot_description"])
    mass, place, offset = 0.5, np.array([0.02, 0.03, 0.1]), np.array([0.01, -0.02, 0.0])
    bench = simulator_bench(
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
    received = bench.received["ground_truth/trunk_com"]
    bench.until(
        lambda: received and stamp_to_ns(received[-1].header.stamp) >= last, "trunk"
    )
    before = [msg for msg in received if stamp_to_ns(msg.header.stamp) < 30 * 10**7]
    after = [msg for msg in received if stamp_to_ns(msg.header.stamp) >= 30 * 10**7]
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
    total = {
        stamp_to_ns(msg.header.stamp): msg.mass
        for msg in bench.received["ground_truth/com"]
    }
    for stamp, robot_mass in total.items():
        expected = model.mass + (mass if stamp >= 30 * 10**7 else 0.0)
        assert robot_mass == pytest.approx(expected)


@pytest.mark.parametrize("mass", [0.5, 0.0])
def test_a_payload_on_demand(simulator_bench, mass):
    bench = simulator_bench(**HOAP2, **{"payload.mass": mass, "payload.time": 1e6})
    trunk = bench.wait_for("ground_truth/trunk_com")[0].mass
    client = bench.node.create_client(SetBool, "simulator/payload")
    received = bench.received["ground_truth/trunk_com"]
    for on in (True, False):
        answer = client.call_async(SetBool.Request(data=on))
        bench.until(answer.done, "answer")
        assert answer.result().success is bool(mass)
        if not mass:
            assert answer.result().message == "there is no payload: give payload.mass"
            return
        assert answer.result().message == f"0.5 kg {'on' if on else 'off'} the trunk"
        expected = pytest.approx(trunk + on * mass)
        bench.until(lambda expected=expected: received[-1].mass == expected, "new mass")


def test_errors_of_real_sensors(simulator_bench):
    bench = simulator_bench(
        **HOAP2,
        **{
            "noise.preset": "trot",
            "noise.position_step": 0.25,
            "publish_rate_hz": 100.0,
        },
    )
    positions = np.array([msg.position for msg in bench.wait_for("joint_states", 5)])
    np.testing.assert_allclose(positions / 0.25, np.round(positions / 0.25), atol=1e-9)
    imu = bench.wait_for("imu")[0]
    spread = np.deg2rad(0.2) ** 2 + np.deg2rad(0.1) ** 2
    np.testing.assert_allclose(imu.orientation_covariance, (spread * np.eye(3)).ravel())
    gyro = [vector3_to_numpy(msg.angular_velocity) for msg in bench.wait_for("imu", 40)]
    assert 0.001 < np.std(gyro) < 0.1


def test_physics_for_exact_readings(simulator_bench):
    bench = simulator_bench(
        robot_description=ARM,
        integrator="euler",
        physics_step=1e-4,
        publish_rate_hz=1000.0,
        joint_friction=0.2,
        viscous_friction=0.1,
        load_friction=0.15,
        max_acceleration=100.0,
        backlash=0.01,
    )
    bench.wait_for("joint_states", 20)
    world = bench.simulator._simulation.world
    assert world.mj.joint("backlash1").range == pytest.approx([-0.005, 0.005])
    assert bench.simulator._drive.excess() == {}
    assert world.mj.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert world.mj.dof_frictionloss.max() == pytest.approx(0.2)
    assert world.mj.dof_damping[world.joint_dof] == pytest.approx([0.1, 0.1])
    assert world.load_friction == pytest.approx([0.15, 0.15])


def test_the_true_robot_is_not_the_published_one(simulator_bench, tmp_path):
    file = tmp_path / "true.urdf"
    bench = simulator_bench(
        **HOAP2,
        **{
            "true_errors.com": 0.005,
            "true_errors.seed": 3,
            "true_urdf_output": str(file),
            "publish_robot_description": True,
            "publish_rate_hz": 50.0,
        },
    )
    received = []
    bench.node.create_subscription(
        String, "robot_description", received.append, qos.LATCHED
    )
    bench.until(lambda: received, "robot_description")
    assert received[0].data == HOAP2["robot_description"]
    true, believed = RobotModel.from_file(file), RobotModel.from_urdf(received[0].data)
    truth = bench.wait_for("ground_truth/com")[-1]
    stamp = stamp_to_ns(truth.header.stamp)
    bench.until(
        lambda: stamp in by_stamp(bench.received["joint_states"]), "joint_states"
    )
    joints = by_stamp(bench.received["joint_states"])[stamp]
    places = dict(zip(joints.name, joints.position, strict=True))
    q = np.array([places[name] for name in true.joint_names])
    com = point_to_numpy(truth.position)
    np.testing.assert_allclose(Sesc(true).com(q), com, atol=1e-6)
    assert np.linalg.norm(Sesc(believed).com(q) - com) > 1e-4


def test_the_hoist_lifts_and_lowers(simulator_bench):
    bench = simulator_bench(**HOAP2, publish_rate_hz=100.0, real_time_factor=4.0)
    service = bench.node.create_client(SetBool, "/simulator/hoist")
    bench.until(service.service_is_ready, "hoist")

    def lift():
        return sum(
            bench.received[f"{side}_sole/wrench"][-1].wrench.force.z for side in "lr"
        )

    bench.wait_for("r_sole/wrench", 20)
    weight = bench.simulator._simulation.world.robot.mass * 9.81
    for up in (True, False):
        call = service.call_async(SetBool.Request(data=up))
        bench.until(call.done, "hoist")
        assert call.result().success
        assert call.result().message == f"goes {'up' if up else 'down'} in 1.5 s"
        bench.until(
            lambda up=up: abs(lift() - (0.0 if up else weight)) < 0.01 * weight, "lift"
        )


def test_a_floor_that_tilts_and_goes_back(simulator_bench):
    tilt = {
        "tilt.angle_deg": 3.0,
        "tilt.direction_deg": 90.0,
        "tilt.start": 0.2,
        "tilt.hold": 1.0,
    }
    bench = simulator_bench(
        **HOAP2, **tilt, publish_rate_hz=100.0, real_time_factor=2.0
    )

    def leaning():
        """Angle (deg) by which what stands on the floor leans to the right."""
        return np.degrees(imu_to_rotation(bench.received["imu"][-1])[2, 1])

    bench.wait_for("imu", 10)
    bench.until(lambda: leaning() > 2.8, "the floor tilts")
    bench.until(lambda: leaning() < 0.2, "the floor goes back")


@pytest.mark.parametrize("angle", [3.0, 0.0])
def test_a_floor_that_tilts_on_demand(simulator_bench, angle):
    tilt = {"tilt.angle_deg": angle, "tilt.start": 1e6, "tilt.hold": 1e6}
    bench = simulator_bench(
        **HOAP2, **tilt, publish_rate_hz=100.0, real_time_factor=2.0
    )

    def pitch():
        """Of the trunk, deg."""
        return np.degrees(imu_to_rotation(bench.received["imu"][-1])[2, 0])

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


def test_it_waits_for_nodes_that_answer(simulator_bench):
    waits = {
        "lockstep.nodes": ["gait"],
        "lockstep.timeout": 1.0,
        "lockstep.start_timeout": 60.0,
    }
    bench = simulator_bench(
        **HOAP2,
        **waits,
        publish_clock=True,
        publish_rate_hz=100.0,
        real_time_factor=0.0,
    )
    joints = bench.received["joint_states"]
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
        found = [
            status for msg in bench.received["/diagnostics"] for status in msg.status
        ]
        return [
            status.message for status in found if status.level == DiagnosticStatus.WARN
        ]

    late = "goes on without gait, which did not answer"
    bench.until(lambda: late in warnings(), "a warning")


def test_what_was_commanded_before_an_answer_counts_first(simulator_bench):
    bench = simulator_bench(
        **HOAP2, **{"lockstep.nodes": ["gait"], "lockstep.start_timeout": 60.0}
    )
    simulator = bench.simulator
    bench.until(bench.commands.get_subscription_count, "subscription")
    done = []
    simulator.destroy_subscription(simulator._command_inputs[1])
    simulator._command_inputs = (
        simulator.create_subscription(
            Float64MultiArray, "joint_commands", done.append, 10
        ),
    )
    bench.until(lambda: bench.commands.get_subscription_count() == 1, "its end")
    bench.spin(0.2)
    for _ in range(2):
        bench.commands.publish(Float64MultiArray())
    time.sleep(0.2)
    assert not done  # the executor has not looked
    simulator._on_answer(Header(frame_id="gait"))
    assert len(done) == 2


def test_a_fixed_robot_has_no_hoist(simulator_bench):
    bench = simulator_bench(robot_description=ARM)
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
            WorldError,
            "both a true URDF and true_errors are given: give one of them",
        ),
        (
            {"base": "flying"},
            ParameterError,
            "'base' is 'flying': give one of auto, floating",
        ),
        ({"physics_step": 1.0}, ParameterError, "give a value from 1e-05 to 0.02"),
        (
            {"noise.gyro": -1.0},
            ParameterError,
            "'noise.gyro' is -1.0: give a value from 0",
        ),
        (
            {"noise.preset": "loud"},
            ParameterError,
            "'noise.preset' is 'loud': give one of none, tr",
        ),
        (
            {"integrator": "rk4"},
            ParameterError,
            "'integrator' is 'rk4': give one of auto, euler",
        ),
        (
            {"trunk_com_offset": [0.1]},
            ParameterError,
            r"'trunk_com_offset' is \[0.1\]: give three numbers: x, y, z",
        ),
        (
            {"payload.position": [0.1, 0.2]},
            ParameterError,
            "'payload.position' is .*: give three",
        ),
        (
            {"publish_rate_hz": 2000.0},
            ParameterError,
            "give at most 1000, or a physics_step of at most 0.0005",
        ),
        (
            {"urdf_file": "/nowhere.urdf", "robot_description": ""},
            UrdfError,
            "does not exist",
        ),
        ({"robot_config": "/nowhere.yaml"}, ConfigError, "nowhere.yaml"),
        (
            {"robot_config": HOAP2["robot_config"]},
            ConfigError,
            "the URDF's root is 'base', not",
        ),
    ],
)
def test_bad_parameters_end_with_the_mend(simulator_bench, parameters, error, message):
    with pytest.raises(error, match=message):
        simulator_bench(**{"robot_description": ARM, **parameters})


def test_a_diverged_simulation_ends_the_node(simulator_bench):
    bench = simulator_bench(robot_description=ARM, publish_rate_hz=100.0)
    bench.wait_for("joint_states")
    bench.simulator._error = DivergedError(1.5, 0.001)
    with pytest.raises(
        DivergedError, match=r"diverged at 1\.500 s: take a physics step below"
    ):
        bench.spin(3.0)
    bench.simulator._error = None
    levels = [msg.status[0].level for msg in bench.wait_for("/diagnostics")]
    assert DiagnosticStatus.ERROR in levels


def test_a_slow_machine_is_reported(simulator_bench, warnings, monkeypatch):
    monkeypatch.setattr("com_simulation.nodes.simulator.LATE", -1.0)
    bench = simulator_bench(robot_description=ARM, publish_rate_hz=100.0)
    status = bench.wait_for("/diagnostics")[-1].status[0]
    assert status.level == DiagnosticStatus.WARN
    assert (
        "lower publish_rate_hz, raise physics_step, or set publish_clock here"
        in status.message
    )
    assert not warnings  # once is a hiccup
    bench.until(lambda: warnings, "warning")
    assert "the machine is too slow" in warnings[0]


def test_a_slow_clock_is_no_fault(simulator_bench, monkeypatch):
    monkeypatch.setattr("com_simulation.nodes.simulator.LATE", -1.0)
    bench = simulator_bench(
        robot_description=ARM, publish_rate_hz=100.0, publish_clock=True
    )
    status = bench.wait_for("/diagnostics")[-1].status[0]
    assert (status.level, status.message) == (DiagnosticStatus.OK, "simulating")


def test_the_same_seed_gives_the_same_messages(simulator_bench):
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
        one = simulator_bench(**parameters)
        messages = by_stamp(one.wait_for("joint_states", 100))
        runs.append({stamp: tuple(msg.position) for stamp, msg in messages.items()})
    common = set(runs[0]) & set(runs[1])
    assert len(common) > 10
    assert all(runs[0][stamp] == runs[1][stamp] for stamp in common)
    assert len({runs[0][stamp] for stamp in common}) > 10


def test_a_world_by_name_and_a_push_on_demand(simulator_bench):
    """Sensors are late, keep their stamps, and one of them shows the push."""
    bench = simulator_bench(
        **HOAP2,
        world="soft+friction_0.8+delay_20ms",
        event="forwards_0.15",
        publish_clock=True,
        publish_rate_hz=100.0,
        real_time_factor=2.0,
    )
    bench.wait_for("imu", 200)  # it has settled
    stamps = [stamp_to_ns(msg.header.stamp) for msg in bench.received["imu"]]
    assert np.diff(stamps).tolist() == [10_000_000] * (len(stamps) - 1)

    def pitch():
        return imu_to_rotation(bench.received["imu"][-1])[2, 0]

    before = pitch()
    client = bench.node.create_client(Trigger, "/simulator/push")
    bench.until(client.service_is_ready, "the service")
    answer = client.call_async(Trigger.Request())
    bench.until(answer.done, "answer")
    assert answer.result().success
    bench.until(lambda: abs(pitch() - before) > 0.01, "it sways")


def test_events_are_told_also_to_who_comes_later(simulator_bench):
    event = "payload_0.3kg@0.2-0.4+fz_1N_r_sole@0.3-inf+left_0.1N"
    bench = simulator_bench(
        **HOAP2, event=event, publish_clock=True, publish_rate_hz=100.0
    )
    bench.until(
        lambda: stamp_to_ns(bench.wait_for("imu")[-1].header.stamp) > 5 * 10**8, "0.5 s"
    )
    told = []
    bench.node.create_subscription(
        Culprit, "ground_truth/events", told.append, LATCHED_EVENTS
    )
    bench.until(lambda: len(told) >= 3, "events")
    found = [(msg.kind, msg.named, msg.lasting, stamp_to_ns(msg.onset)) for msg in told]
    payload, zero = Culprit.PAYLOAD, Culprit.WRENCH_ZERO
    begin, end = 2 * 10**8, 3 * 10**8
    assert found == [
        (payload, True, False, begin), (zero, True, True, end), (payload, False, False, begin)
    ]  # fmt: skip
    assert [list(msg.parts) for msg in told[:2]] == [["base_link"], ["r_sole"]]
    assert told[0].parameters[0] == 0.3
    assert list(told[1].parameters) == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    client = bench.node.create_client(Trigger, "/simulator/push")
    bench.until(client.service_is_ready, "the service")
    client.call_async(Trigger.Request())
    bench.until(lambda: len(told) >= 5, "the push")
    assert [(msg.kind, msg.named) for msg in told[3:]] == [(0, True), (0, False)]
    assert told[4].onset == told[3].onset


@pytest.mark.parametrize(
    ("options", "text"),
    [({"world": "mud"}, "world 'mud': give"), ({"event": "up"}, "event 'up'")],
)
def test_a_world_or_push_of_no_such_name(simulator_bench, options, text):
    with pytest.raises(WorldError, match=text):
        simulator_bench(**HOAP2, **options)


def test_without_a_push_the_service_says_so(simulator_bench):
    bench = simulator_bench(**HOAP2, publish_rate_hz=100.0)
    client = bench.node.create_client(Trigger, "/simulator/push")
    bench.until(client.service_is_ready, "the service")
    answer = client.call_async(Trigger.Request())
    bench.until(answer.done, "answer")
    assert answer.result().message == "no event is without a time: give event"
