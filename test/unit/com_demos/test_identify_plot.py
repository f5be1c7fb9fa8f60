"""The picture of an identification shows what the data determine, and by how much it is better."""

import numpy as np
import pytest

from com_demos.compare_urdfs import Comparison
from com_demos.identify_demo import identification_figure
from com_model.plotting import save_png

PRIOR = 0.02


@pytest.fixture
def comparison():
    rng = np.random.default_rng(0)
    bodies = tuple(f"link{k}" for k in range(4))
    before, after = rng.uniform(0.0, 0.004, 50), rng.uniform(0.0, 0.0005, 50)
    errors = rng.normal(0.0, 5e-3, (4, 3)), rng.normal(0.0, 1e-3, (4, 3))
    return Comparison(bodies, before, after, *errors)


def test_what_the_data_do_not_tell_is_left_out(comparison):
    stds = np.full((4, 3), PRIOR)
    stds[1, 2], stds[3, 0] = 0.002, 0.001
    whole, bodies = identification_figure(comparison, stds, PRIOR, "box").axes
    names = [label.get_text() for label in bodies.get_xticklabels()]
    assert names == ["link3 x", "link1 z"]  # the surest first
    crosses, dots = (line.get_ydata() for line in bodies.lines[:2])
    np.testing.assert_allclose(
        crosses, 1000.0 * comparison.bodies_before[[3, 1], [0, 2]]
    )
    np.testing.assert_allclose(dots, 1000.0 * comparison.bodies_after[[3, 1], [0, 2]])
    labels = [text.get_text() for text in whole.get_legend().get_texts()]
    rms = 1000.0 * np.sqrt(np.mean(comparison.before**2))
    assert labels[0] == f"URDF as believed: {rms:.2f} mm RMS"
    np.testing.assert_allclose(
        whole.lines[1].get_ydata(), 1000.0 * np.sort(comparison.after)
    )


def test_it_becomes_a_small_file(comparison, tmp_path):
    path = tmp_path / "new" / "plot.png"
    save_png(
        identification_figure(comparison, np.full((4, 3), 0.001), PRIOR, "box"), path
    )
    assert 10_000 < path.stat().st_size < 200_000
