"""The page with which a demo ends."""

import base64
import json
import re

import pytest

from com_demos.demonstration import finish
from com_demos.exceptions import RunError

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
def figures(tmp_path):
    (tmp_path / "plot.png").write_bytes(PNG)
    return {
        "robot": "a<b",
        "error_mm": 1.5,
        "late_s": None,
        "plot": str(tmp_path / "plot.png"),
    }


def test_a_page_with_verdict_picture_and_figures(tmp_path, figures, capsys):
    finish(
        figures,
        tmp_path / "run.json",
        lambda: None,
        "It is {error_mm} mm off.",
        "Go on.",
        "Run",
    )
    html = (tmp_path / "run.html").read_text()
    assert re.search(r"<h1>Run</h1>\s*<p>It is 1.5 mm off.</p>", html)
    (image,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    assert base64.b64decode(image) == PNG
    assert "img-src data:" in html
    assert not re.search(r"https?://", html)
    assert "a&lt;b" in html
    assert "<td>late</td><td>–</td>" in html
    assert "<p>Go on.</p>" in html
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last == json.loads((tmp_path / "run.json").read_text())
    assert (last["report"], last["error_mm"]) == (str(tmp_path / "run.html"), 1.5)


def test_a_failed_run_says_so_first(tmp_path, figures, capsys):
    def fail():
        raise RunError("the robot fell")

    with pytest.raises(RunError, match="the robot fell"):
        finish(
            figures, tmp_path / "run.json", fail, "It is {missing}.", "Go on.", "Run"
        )
    html = (tmp_path / "run.html").read_text()
    assert '<p class="warning">Failed: the robot fell.</p>' in html
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["robot"] == "a<b"
