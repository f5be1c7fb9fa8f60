"""What the console understands, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

from com_control.exceptions import MotionError
from com_control.motion.console import HELP, TOPICS, Console, Move, Quit, Reply, Save, Stop
from com_control.motion.csv_file import read_motion, write_posture
from com_control.motion.layout import MotionLayout, default_layout
from com_model import RobotModel

DATA = Path(__file__).resolve().parents[3] / "data"


@pytest.fixture(scope="module")
def joints(config):
    """All joints of HOAP-2 that have limits."""
    return default_layout(RobotModel.from_file(config.urdf), config)


@pytest.fixture
def console(joints):
    return Console(joints, exists=lambda path: path.name == "old.csv")


@pytest.fixture
def feed(console, joints):
    """feed(line): its only effect, with all joints at 0.1 rad."""

    def feed(line, measured=0.1):
        (effect,) = console.feed(line, np.full(len(joints.joints), measured))
        return effect

    return feed


@pytest.fixture
def refused(feed):
    def refused(line, *more):
        effect = feed(line, *more)
        assert isinstance(effect, Reply)
        assert effect.refused
        return effect.text

    return refused


def targets(joints, move):
    assert isinstance(move, Move)
    return {
        name: float(value)
        for name, value in zip(joints.joints, move.targets, strict=True)
        if np.isfinite(value)
    }


@pytest.mark.parametrize(
    ("line", "rad"),
    [
        ("set LLEG_JOINT4 0.3", 0.3),
        ("lleg_joint4 .3", 0.3),
        ("set LLEG_JOINT4 30deg", np.radians(30)),
        ("set LLEG_JOINT4 +3e1 deg  # bend", np.radians(30)),
        ("LLEG_JOINT4 -6270 pulse", np.radians(30)),
        ("LLEG_JOINT4 -6270pulses", np.radians(30)),
        ("by LLEG_JOINT4 0.2", 0.3),
        ("by LLEG_JOINT4 -1deg", 0.1 - np.radians(1)),
        ("reset LLEG_JOINT4", 0.0),
    ],
)
def test_joints_are_set_in_three_units(feed, joints, line, rad):
    move = feed(line)
    assert targets(joints, move) == {"LLEG_JOINT4": pytest.approx(rad)}
    assert move.fraction == 0.1
    assert not move.targets.flags.writeable


def test_joints_by_number_and_several_at_once(feed, joints):
    first, last = joints.joints[0], joints.joints[-1]
    assert targets(joints, feed(f"01 0.2 {len(joints.joints)} 5deg")) == {
        first: pytest.approx(0.2),
        last: pytest.approx(np.radians(5)),
    }


def test_reset_all_goes_to_zero_or_the_nearest_position(config):
    arm = default_layout(RobotModel.from_file(config.urdf), config)
    console = Console(arm)
    (move,) = console.feed("reset all", np.zeros(len(arm.joints)))
    np.testing.assert_array_equal(move.targets, np.clip(0.0, arm.lower, arm.upper))


def test_default_unit_and_speed(feed, joints):
    assert feed("unit deg").text == "numbers without a unit are in deg"
    assert feed("unit").text.endswith("deg")
    assert targets(joints, feed("4 3")) == {joints.joints[3]: pytest.approx(np.radians(3))}
    assert feed("speed 50%").text == "speed 50 % of what the joints can"
    assert feed("BODY_JOINT1 10").fraction == 0.5


def test_positions_beyond_the_range_are_refused_whole(refused):
    text = refused("set LLEG_JOINT3 0.1 LLEG_JOINT4 140deg")
    assert text == (
        "LLEG_JOINT4: 2.443 rad (140.00 deg) is beyond its range, -0.01745 to 2.269 rad "
        "(-1.00 to 130.00 deg). Nothing moves"
    )
    assert "beyond its range" in refused("by LLEG_JOINT4 -0.2")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dance", "unknown command 'dance' Write help for those there are"),
        ("shwo", "unknown command 'shwo'; did you mean show?"),
        ("set LLEG_JOINT9 1", "unknown joint 'LLEG_JOINT9'; did you mean LLEG_JOINT"),
        ("set 99 1", "joint 99: the joints are 1 to 25; write show"),
        ("set 0 1", "joint 0: the joints are 1 to 25"),
        ("set LLEG_JOINT4", "LLEG_JOINT4: a number must follow"),
        ("set LLEG_JOINT4 nan", "'nan' is no number: write set JOINT NUMBER [UNIT]"),
        ("set LLEG_JOINT4 1e999", "LLEG_JOINT4: inf rad"),
        ("set LLEG_JOINT4 0.1 LLEG_JOINT4 0.2", "LLEG_JOINT4 is there twice"),
        ("set LLEG_JOINT4 3miles", "unknown unit 'miles': give rad, deg or pulse"),
        ("set LLEG_JOINT4 0.3m", "LLEG_JOINT4 rotates: give rad, deg or pulse, not m"),
        ("set HEAD_JOINT1 100 pulse", "the pulses of HEAD_JOINT1 are not known: give rad or deg"),
        ("set", "set: write set JOINT NUMBER [UNIT] ..."),
        ("reset", "reset: name joints, or write reset all"),
        ("speed 0", "speed: give 1 to 100 (percent), got '0'"),
        ("speed fast", "speed: give 1 to 100 (percent), got 'fast'"),
        ("unit mile", "unit: give rad, deg or pulse, got 'mile'"),
        ("save", "save: give one file, as in save squat.csv"),
        ("help dance", "no help on 'dance'; there is on show, set"),
        ("set 'LLEG", "No closing quotation"),
    ],
)
def test_what_cannot_be_done_is_said(refused, line, message):
    assert message in refused(line)


def test_what_needs_the_robot_waits_for_it(refused):
    assert "where LLEG_JOINT4 stands is not known" in refused("by LLEG_JOINT4 0.1", np.nan)
    assert "is not known: wait for joint_states" in refused("save new.csv", np.nan)


def test_show_says_where_the_joints_are(feed, joints):
    lines = feed("show").text.splitlines()
    assert len(lines) == 1 + len(joints.joints)
    (knee,) = feed("where LLEG_JOINT4").text.splitlines()[1:]
    assert knee.split() == [
        str(joints.joints.index("LLEG_JOINT4") + 1),
        *("LLEG_JOINT4", "0.1000", "5.73", "-1197", "-0.017", "to", "2.269"),
    ]
    (head,) = feed("show HEAD_JOINT1").text.splitlines()[1:]
    assert head.split()[2:5] == ["0.1000", "5.73", "-1.047"]  # no pulses
    assert "nan" in feed("show 1", np.nan).text


def test_saving_asks_before_it_overwrites(console, feed, joints):
    assert feed("save new.csv") == Save(Path("new.csv"))
    for answer, effect in [
        ("yes", Save(Path("old.csv"))),
        ("Y", Save(Path("old.csv"))),
        ("no", Reply("old.csv is left as it is", refused=True)),
        ("set 1 0.1", Reply("old.csv is left as it is", refused=True)),
    ]:
        assert feed("save old.csv").text == "old.csv is there already. Overwrite it? yes or no"
        assert console.asking
        assert feed(answer) == effect
        assert not console.asking


def test_help_teaches_every_command(feed, console):
    assert feed("help").text == HELP
    for name in console._commands:
        assert name in HELP
        if name != "help":
            assert feed(f"help {name}").text == TOPICS[name]
    assert isinstance(feed("stop"), Stop)
    assert isinstance(feed("exit"), Quit)
    assert console.feed("   # nothing", np.zeros(25)) == []


def test_nothing_that_is_written_raises(console):
    rng = np.random.default_rng(0)
    alphabet = list("setby LLEG_JOINT4 0123456789.-+e'\"\\#degpulse\0\n\té")
    for _ in range(3000):
        line = "".join(rng.choice(alphabet, rng.integers(1, 40)))
        for effect in console.feed(line, np.zeros(25)):
            assert isinstance(effect, Reply | Move | Save | Stop | Quit)


def test_other_robots_without_counts_and_with_joints_on_rails():
    model = RobotModel.from_file(DATA / "slider.urdf")
    layout = default_layout(model)
    straight = [
        n
        for n, kind in zip(model.joint_names, model.joint_types, strict=True)
        if kind == "prismatic" and n in layout.joints
    ]
    console = Console(layout, tuple(straight))
    where = np.zeros(len(layout.joints))
    (text,) = console.feed(f"set {straight[0]} 3deg", where)
    assert "moves along a line: give m, not deg" in text.text
    (move,) = console.feed(f"set {straight[0]} 0.5m", where)
    assert targets(layout, move) == {straight[0]: 0.5}
    (move,) = console.feed(f"reset {straight[0]}", where)
    assert targets(layout, move) == {straight[0]: pytest.approx(layout.lower[0])}


def test_a_posture_is_a_motion_file_of_one_row(joints, layout, tmp_path):
    posture = np.clip(np.full(len(joints.joints), 0.2), joints.lower, joints.upper)
    posture[joints.joints.index("LLEG_JOINT4")] = -0.018  # measured, a little over its limit
    path = tmp_path / "posture.csv"
    write_posture(path, joints.joints, posture, layout)
    back = read_motion(path, layout)
    assert len(back.times) == 1
    assert back.driven == layout.joints
    knee = layout.joints.index("LLEG_JOINT4")
    assert back.positions[0, knee] == pytest.approx(layout.lower[knee], abs=1e-4)
    assert back.positions[0, layout.joints.index("BODY_JOINT1")] == pytest.approx(0.2, abs=1e-4)
    write_posture(path, joints.joints, posture, joints, "radians")
    assert read_motion(path, joints, "radians").positions.shape == (1, 25)
    with pytest.raises(MotionError, match="none of the joints has a column"):
        write_posture(path, ["x"], [0.0], layout)
    with pytest.raises(MotionError, match="cannot be written"):
        write_posture(tmp_path / "no" / "x.csv", joints.joints, posture, layout)


def test_robots_without_limits_are_refused(joints):
    class Wheel:
        name = "wheel"
        lower, upper = np.array([-np.inf]), np.array([np.inf])

    with pytest.raises(MotionError, match="wheel has no joint with limits"):
        default_layout(Wheel())
    assert isinstance(joints, MotionLayout)
    assert np.isnan(joints.counts_per_rad).sum() == 4
