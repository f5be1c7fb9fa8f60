"""The notebooks run from top to bottom, and what they show is right."""

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples" / "notebooks"


@pytest.fixture
def run(monkeypatch):
    """run(name): the variables at the end of a notebook."""
    mpl.use("Agg")
    plt = pytest.importorskip("matplotlib.pyplot")

    def run(name):
        book = json.loads((FOLDER / name).read_text())
        assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
        names = {"__name__": "__main__"}
        for number, cell in enumerate(book["cells"]):
            assert cell["cell_type"] in ("code", "markdown")
            if cell["cell_type"] == "code":
                assert not cell["outputs"], "clear the outputs before you commit"
                exec(
                    compile("".join(cell["source"]), f"{name}[{number}]", "exec"), names
                )
        return names

    yield run
    plt.close("all")


def test_all_are_listed_and_tested():
    listed = (FOLDER.parent / "README.md").read_text()
    tests = Path(__file__).read_text()
    for path in FOLDER.iterdir():
        assert f"notebooks/{path.name}" in listed
        assert f'run("{path.name}")' in tests


def test_chain(run):
    names = run("sesc.ipynb")
    assert names["gap"] < 1e-12
    if "bent" in names:
        assert np.linalg.norm(names["bent"] - names["standing"]) > 0.005


def test_identification(run):
    names = run("identification.ipynb")
    rms = [float(np.sqrt(np.mean(names[what] ** 2))) for what in ("before", "after")]
    assert rms[1] < 0.3 * rms[0]
    assert names["inside"] > 0.8


@pytest.mark.exhaustive
def test_trot(run):
    names = run("trot.ipynb")
    error, sigmas = names["error"], names["sigmas"]
    assert np.linalg.norm(error[:2]) < 0.003
    assert (np.abs(error) < 4.0 * sigmas).all()
