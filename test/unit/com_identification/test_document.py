"""The result as YAML: deterministic, exact enough, read by any parser, written whole."""

import os
import subprocess
import sys

import numpy as np
import pytest
import yaml

from com_identification.exceptions import OutputError
from com_identification.regression.identify import identify
from com_identification.settings import IdentificationSettings, SensorNoise
from com_identification.store.results import plain, to_document, write_yaml
from com_model.strict_yaml import read_yaml

pytestmark = pytest.mark.slow

NOISE = SensorNoise()


@pytest.fixture(scope="module")
def result(hoap2, perturbed, random_q):
    rng = np.random.default_rng(0)
    robot, _, _ = perturbed(rng, 0.005)
    postures = [
        robot.posture(random_q(rng), [1.0, 0.0], NOISE, rng, 100) for _ in range(12)
    ]
    settings = IdentificationSettings.from_dict(
        {"fit": {"folds": 0}, "sensors": {"force_bias": 0.01}}
    )
    found = identify(*hoap2, postures, settings)
    return found, hoap2[0], settings, postures


def test_all_that_matters_is_in_it(result, tmp_path):
    found, model, settings, postures = result
    path = write_yaml(
        tmp_path / "result.yaml",
        to_document(*result, {"bag": {"path": "x", "gap_s": np.nan}}),
    )
    data = read_yaml(path)
    assert data["format"] == 1
    assert data["robot"]["joints"] == list(model.joint_names)
    assert data["bag"] == {"path": "x", "gap_s": None}
    assert data["settings"] == plain(settings.to_dict())
    again = IdentificationSettings.from_dict(data["settings"])
    assert plain(again.to_dict()) == plain(settings.to_dict())
    assert len(data["bodies"]) == int(np.sum(found.prior_mass > 0.0))
    for body in data["bodies"]:
        b = found.bodies.index(body["link"])
        np.testing.assert_allclose(body["com"], found.com[b], rtol=1e-11)
        np.testing.assert_allclose(body["com_std"], found.com_std[b], rtol=1e-11)
        np.testing.assert_allclose(body["prior_com"], found.prior_com[b], rtol=1e-11)
    assert data["fit"]["held_out"] == {
        "mean": None,
        "rms": None,
        "maximum": None,
        "count": 0,
    }
    assert data["identifiability"]["lost"] == list(found.identifiability.lost)
    assert len(data["postures"]) == len(postures)
    bias = data["sensors"]["force_bias"]["l_sole z"]
    assert bias["value"] == pytest.approx(
        found.sensor_errors["force_bias"]["l_sole z"], rel=1e-11
    )


def test_same_input_same_bytes(result, tmp_path):
    paths = [write_yaml(tmp_path / name, to_document(*result)) for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    backwards = dict(reversed(list(to_document(*result).items())))
    assert write_yaml(tmp_path / "c", backwards).read_bytes() == paths[0].read_bytes()
    code = (
        "import sys, yaml\n"
        "from com_identification.store.results import write_yaml\n"
        "write_yaml(sys.argv[2], yaml.safe_load(open(sys.argv[1])))\n"
    )
    other = tmp_path / "d"
    subprocess.run(
        [sys.executable, "-c", code, paths[0], other],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "LC_ALL": "C"},
    )
    assert other.read_bytes() == paths[0].read_bytes()


def test_numbers_are_numbers_for_every_parser(tmp_path):
    values = [
        1e-7,
        1e22,
        -0.0,
        1 / 3,
        5e-324,
        1.0,
        float("nan"),
        float("inf"),
        np.float64(2.5e-9),
    ]
    path = write_yaml(
        tmp_path / "x", {"v": values, "t": ["no", "1e5", "null"], "n": np.int64(3)}
    )
    data = yaml.safe_load(path.read_text())
    assert data["v"][:6] == pytest.approx(
        [1e-7, 1e22, 0.0, 1 / 3, 5e-324, 1.0], rel=1e-11
    )
    assert data["v"][6:8] == [None, None]
    assert all(isinstance(value, float) for value in data["v"][:6])
    assert (data["t"], data["n"]) == (["no", "1e5", "null"], 3)
    assert "-0.0" not in path.read_text()
    assert plain((np.True_, {"a": np.arange(2.0)})) == [True, {"a": [0.0, 1.0]}]


def test_a_file_is_written_whole_or_not_at_all(result, tmp_path):
    document = to_document(*result)
    path = write_yaml(tmp_path / "r", {"a": 1})
    with pytest.raises(OutputError, match="exists already: give another name"):
        write_yaml(path, document, overwrite=False)
    assert path.read_text() == "{a: 1}\n"
    with pytest.raises(
        OutputError, match="cannot be written: No such file or directory"
    ):
        write_yaml(tmp_path / "none" / "r", document)
    with pytest.raises(OutputError, match="give a directory that can be written to"):
        write_yaml("/proc/r", document)
    assert os.listdir(tmp_path) == ["r"]
