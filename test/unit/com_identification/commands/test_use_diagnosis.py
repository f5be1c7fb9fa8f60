"""identify --use-diagnosis: what was known while the robot walked is in the same recordings."""

from pathlib import Path

import numpy as np
import pytest
import yaml
from rosbags.interfaces import Nodetype
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from com_bags import BagError
from com_identification.commands.bag_inputs import walk_evidence
from com_identification.commands.identify_arguments import parser
from com_identification.commands.robot_inputs import load_robot
from com_model import Sesc

pytestmark = pytest.mark.slow

MESSAGES = Path(__file__).parents[4] / "src/com_msgs/msg"
KINDS = {
    "gait/state": "com_msgs/msg/WalkState",
    "diagnosis": "com_msgs/msg/CentroidalDiagnosis",
}
STABILISER, DIAGNOSIS = (
    f"CoM of the {name} while walking" for name in ("stabiliser", "diagnosis")
)


@pytest.fixture(scope="module")
def store():
    """Types of the suite's messages, read from their files."""
    store, types = get_typestore(Stores.ROS2_JAZZY), {}
    for path in MESSAGES.glob("*.msg"):
        types |= get_types_from_msg(path.read_text(), f"com_msgs/msg/{path.stem}")
    store.register(types)
    return store


def blank(store, kind):
    """A message with NaN in its arrays and 0 for other numbers."""
    values = {}
    for name, (what, detail) in store.fielddefs[kind][1]:
        if what == Nodetype.NAME:
            values[name] = blank(store, detail)
        elif what == Nodetype.BASE:
            values[name] = {"string": "", "bool": False}.get(detail[0], 0)
        elif what == Nodetype.ARRAY:
            values[name] = np.full(detail[1], np.nan)
        else:
            values[name] = []
    return store.types[kind](**values)


def known_bag(path, store, **messages):
    """A bag of messages of walking, by topic."""
    with Writer(path, version=9) as writer:
        for topic, rows in messages.items():
            kind = KINDS[topic]
            connection = writer.add_connection(f"/{topic}", kind, typestore=store)
            for k, changes in enumerate(rows):
                message = blank(store, kind)
                for name, value in changes.items():
                    setattr(message, name, value)
                payload = store.serialize_cdr(message, kind)
                writer.write(connection, 10**18 + k * 10**7, payload)
    return path


def states(*offsets):
    return [
        {"com_offset": np.array(b), "com_offset_std": np.array(s)} for b, s in offsets
    ]


def read(robot, *bags):
    arguments = parser().parse_args([*map(str, bags), *robot, "--use-diagnosis"])
    (posture,) = walk_evidence(load_robot(arguments), arguments)
    return posture


def test_the_newest_offset_that_is_known_counts(tmp_path, store, robot, biped):
    unknown = ([0.0, 0.0], [np.inf, np.inf])
    rows = states(
        unknown, ([0.1, 0.1], [1e-3, 1e-3]), ([0.004, -0.003], [1e-3, 2e-3]), unknown
    )
    bag = known_bag(tmp_path / "walk", store, **{"gait/state": rows})
    posture = read(robot, bag)
    assert posture.label == STABILISER
    com = Sesc(biped.model).com(posture.q)
    found = [limit.offset - limit.normal @ com for limit in posture.constraints]
    np.testing.assert_allclose(found, [0.004, -0.003], atol=1e-12)
    np.testing.assert_allclose(
        [limit.std for limit in posture.constraints], [1e-3, 2e-3]
    )


def test_a_diagnosis_counts_in_its_place(tmp_path, store, robot):
    rows = states(([0.004, -0.003], [1e-3, 2e-3]))
    covariance = np.diag([1e-6, 1e-6, 1e-4]).ravel()
    vector = store.types["geometry_msgs/msg/Vector3"](0.001, 0.002, 0.003)
    both = {
        "gait/state": rows,
        "diagnosis": [{"com_correction": vector, "covariance": covariance}],
    }
    posture = read(robot, known_bag(tmp_path / "both", store, **both))
    assert posture.label == DIAGNOSIS
    assert len(posture.constraints) == 3
    frozen = {"gait/state": rows, "diagnosis": [{"covariance": np.full(9, np.nan)}]}
    assert (
        read(robot, known_bag(tmp_path / "frozen", store, **frozen)).label == STABILISER
    )


def test_a_recording_without_either_is_refused(tmp_path, recording, robot, run):
    status, _, error = run(
        recording("biped"), *robot, "--use-diagnosis", "--output", tmp_path / "out"
    )
    assert status == 2
    assert (
        "no com_msgs/msg/CentroidalDiagnosis with a CoM, and no com_msgs/msg/WalkState"
        in error
    )
    assert "leave out --use-diagnosis" in error
    assert not (tmp_path / "out").exists()


def test_an_absurd_offset_is_refused(tmp_path, store, robot):
    rows = states(([0.9, 0.0], [1e-3, 2e-3]))
    with pytest.raises(BagError, match="half a metre or more off"):
        read(robot, known_bag(tmp_path / "walk", store, **{"gait/state": rows}))


def test_it_is_a_posture_of_the_report(tmp_path, bags, biped, store, robot, run):
    """Few postures and the true offset at rest; the bag has both."""
    bag, out = tmp_path / "bag", tmp_path / "out"
    rest = biped.config.nominal_posture(biped.model)
    true = Sesc(type(biped.model).from_urdf(biped.xml)).com(rest) - Sesc(
        biped.model
    ).com(rest)
    with bags.BagWriter(bag, biped) as writer:
        kind = KINDS["gait/state"]
        connection = writer._writer.add_connection("/gait/state", kind, typestore=store)
        for block in bags.samples(
            biped, biped.postures(8), bags.Tour(rate=100.0, still=2.0)
        ):
            writer.write(block)
        message = blank(store, kind)
        message.com_offset, message.com_offset_std = true[:2], np.full(2, 1e-4)
        writer._writer.write(connection, 10**18, store.serialize_cdr(message, kind))
    status, _, error = run(bag, *robot, "--use-diagnosis", "--output", out)
    assert status == 0, error
    postures = yaml.safe_load((out / "result.yaml").read_text())["postures"]
    assert [each["label"] for each in postures].count(STABILISER) == 1
    assert len(postures) == 9
    own = next(each for each in postures if each["label"] == STABILISER)
    assert own["weight"] > 0.5  # it agrees with the readings
    assert STABILISER in (out / "report.html").read_text()
