"""The URDFs of a woman and a man: sums of the table, and what the script writes of it."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from com_model import RobotModel, audit

PACKAGE = Path(__file__).resolve().parents[3] / "src" / "robot_descriptions"
SCRIPT = PACKAGE.parents[1] / "tools" / "robots" / "make_human_urdf.py"
PEOPLE = PACKAGE.with_name("com_identification") / "com_identification"
PAIRED = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
TRUNK = ("upper_trunk", "middle_trunk", "lower_trunk")
# Of the table's other columns and rows, percent of the length: sagittal radii of gyration of the
# trunk's three parts and of all of it, and the upper part's centre of mass from the cervicale.
RADII = {"f": (74.6, 43.3, 43.3, 35.7), "m": (71.6, 48.2, 61.5, 37.2)}
FROM_CERVICALE = {"f": 50.50, "m": 50.66}


def read_table(name, sex, *columns):
    """Numbers of columns by the name in the first."""
    with open(PACKAGE / "data" / name, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    places = [rows[0].index(column.format(sex)) for column in columns]
    return {row[0]: [float(row[k]) for k in places] for row in rows[1:]}


@pytest.fixture(params=["f", "m"])
def tables(request):
    """Sex, parameters, and of each segment mass in %, CoM in % and length in mm."""
    sex = request.param
    columns = "mass_{}_percent", "com_{}_percent", "length_{}_mm"
    segments = read_table("human_segments.csv", sex, *columns)
    return sex, read_table("human_parameters.csv", sex, "{}"), segments


def test_the_masses_of_the_table_sum_to_the_body(tables):
    _, parameters, segments = tables
    whole = sum((2 if name in PAIRED else 1) * row[0] for name, row in segments.items())
    assert whole == pytest.approx(100.0, abs=0.011)
    (stature,), (neck,) = parameters["stature"], parameters["neck"]
    down = segments["thigh"][2] + segments["shank"][2] + 0.039 * stature
    trunk = segments["lower_trunk"][2] + segments["middle_trunk"][2] + neck
    assert down + trunk + segments["head"][2] == pytest.approx(stature, rel=0.03)


def test_the_parts_of_the_trunk_make_the_whole(tables):
    """Lengths that were copied wrong would contradict numbers that the model does not use."""
    sex, parameters, segments = tables
    mass, com, length = np.array([segments[name] for name in TRUNK]).T
    own, whole = (
        np.array(RADII[sex][:3]) / 100.0 * length,
        RADII[sex][3] / 100.0 * length.sum(),
    )
    center = np.cumsum(length) - length + com / 100.0 * length
    spread = center - np.average(center, weights=mass)
    radius = np.sqrt(np.average(own**2 + spread**2, weights=mass))
    assert radius == pytest.approx(whole, abs=0.0005 * length.sum())
    by_neck = parameters["neck"][0] * (1.0 - FROM_CERVICALE[sex] / 100.0)
    assert length[0] * (1.0 - com[0] / 100.0) == pytest.approx(by_neck, abs=0.1)


def test_the_urdf_has_the_segments_of_the_table(tables):
    sex, parameters, segments = tables
    model = RobotModel.from_file(PEOPLE / f"person_{sex}.urdf")
    assert model.mass == pytest.approx(1.0)
    assert model.n_joints == 35
    assert not [f for f in audit(model).issues if f.severity == "error"]
    (stature,) = parameters["stature"]
    for name, (mass, com, length) in segments.items():
        along = com / 100.0 * length / stature
        for link in [f"{side}_{name}" for side in "lr"] if name in PAIRED else [name]:
            i = model.link_index(link)
            assert model.link_masses[i] == pytest.approx(mass / 100.0, rel=2e-4)
            if name == "foot":
                expected = [along - 0.25 * length / stature, 0.0, -0.0195]
            else:
                expected = [
                    0.0,
                    0.0,
                    -along if name in PAIRED else length / stature - along,
                ]
            np.testing.assert_allclose(
                model.link_coms[i], expected, atol=1e-9, err_msg=link
            )


def test_committed_urdfs_are_what_the_script_writes():
    command = [sys.executable, str(SCRIPT), "--check"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.count("agrees")) == (0, 2), done.stderr
