"""The page: what is in it, that nothing from outside is taken for HTML, that it does not vary."""

import re
from dataclasses import replace

import numpy as np
import pytest
from html_page import Page, assert_report

from com_identification.capture.detector import StationaryInterval
from com_identification.capture.streams import DroppedReadings
from com_identification.regression.priors import ERRORS
from com_identification.report.comparison import body_labels
from com_identification.report.report import (
    Contents,
    TopicLine,
    report_page,
    residual_plot,
    sole_plot,
    timeline_plot,
)
from com_model.html import Raw, bar, coordinates, element, number, plus_minus, table

pytestmark = pytest.mark.slow

EVIL = '"><script>alert(1)</script>\x1b[31m'
S = 1_000_000_000


@pytest.fixture
def contents(scene, postures, found, fits):
    """A report with a text of evil wherever one comes from outside."""
    intervals = [
        StationaryInterval(i * 2 * S, (i * 2 + 1) * S, posture, label=EVIL)
        for i, posture in enumerate(postures)
    ]
    intervals.insert(
        1, StationaryInterval(S, S + 1, None, ("the foot <b>hung</b>",), EVIL)
    )
    return Contents(
        robot=EVIL,
        inputs={"bag": EVIL, "robot": EVIL},
        topics=[TopicLine("joint states", EVIL, EVIL, 7)],
        seconds=80.0,
        first_ns=0,
        notes=[EVIL],
        dropped=DroppedReadings(1, 2, 3, 4),
        tally={EVIL: 1.0, "at rest": 30.0},
        intervals=intervals,
        issues=[EVIL],
        model=scene.model,
        feet=scene.feet,
        found=replace(
            found,
            sensor_errors={EVIL: {EVIL: 1.0}},
            sensor_stds={EVIL: {EVIL: 1.0}},
            sensor_prior_stds={EVIL: {EVIL: 2.0}},
        ),
        total=None,
        fits=[replace(fit, label=EVIL) for fit in fits],
        changed=[EVIL],
        kept=[EVIL],
    )


def test_the_page_is_whole_and_has_everything(contents):
    page = assert_report(report_page(contents))
    assert page.paragraphs[0].startswith("In such postures the CoM is accurate to ")
    text = page.text
    for words in (
        "CoM of the robot",
        "Total CoM before and after",
        "Centres of mass of the links",
        "BODY_JOINT1",
        "Identifiability",
        "slides along the axis of",
        "Stationary, but not postures:",
        "the foot <b>hung</b>",
        "l_sole, r_sole",
        "1 older than the one before, 2 repeated, 3 not finite or unusable; time jumped back 4",
    ):
        assert words in text, words
    labels = body_labels(contents.model, contents.found.bodies)
    assert all(label in text for label in labels)


def test_no_text_from_outside_becomes_html(contents):
    written = report_page(contents)
    page = Page(written)
    assert page.tags.count("script") == 1, "the page's own"
    assert "\x1b" not in written
    assert written.count("&lt;script&gt;alert(1)&lt;/script&gt;") > 40


def test_the_same_contents_give_the_same_bytes(contents):
    assert report_page(contents) == report_page(contents)


def test_numbers_have_units_and_what_is_taken_as_known_is_said(contents, scene):
    name = scene.model.joint_names[0]
    errors = {
        "force_bias": {"l_sole x": 2.0},
        "joint_offset": {name: 0.01},
        "compliance": {name: 0.001},
    }
    before = {
        kind: {of: 2.0 * v for of, v in each.items()} for kind, each in errors.items()
    }
    found = replace(
        contents.found,
        sensor_errors=errors,
        sensor_stds=errors,
        sensor_prior_stds=before,
    )
    page = report_page(replace(contents, found=found))
    for kind, of, unit in (
        ("force_bias", "l_sole x", "N"),
        ("joint_offset", name, "rad"),
        ("compliance", name, "rad/(N m)"),
    ):
        row = re.search(
            f"<tr><td[^>]*>{ERRORS[kind][0]}</td><td[^>]*>{of}</td>.*?</tr>", page
        )[0]
        assert f">{unit}</td>" in row
    assert "Masses are taken as known" in page
    assert "± 0.000" not in page


def test_nothing_that_warns_is_folded(contents):
    page = report_page(replace(contents, issues=["a sign is wrong"], notes=["late"]))
    top, *folded = page.split("<details>")
    assert "a sign is wrong" in top
    assert "late</li>" in top
    assert folded
    assert not any('class="warning"' in part for part in folded)


def test_the_summary_leaves_outliers_out_and_says_so(contents):
    good = replace(contents.found.residual, rms=0.00123)
    found = replace(
        contents.found,
        outliers=(0,),
        residual=replace(good, rms=0.0756),
        without_outliers=replace(contents.found.without_outliers, residual=good),
    )
    summary = report_page(replace(contents, found=found)).split("<details>")[0]
    assert "<b>39 of 40</b>postures in the fit" in summary
    assert "1.23 mm" in summary
    assert "75.60 mm" not in summary


def test_plots_hold_no_date_and_no_version(scene, fits):
    for plot in (
        sole_plot(fits, scene.feet),
        residual_plot(fits),
        timeline_plot([(0.0, 1.0, True), (2.0, 3.0, False)], 10.0),
    ):
        assert "svg" in Page(plot).tags
        assert "dc:date" not in plot
        assert "Matplotlib v" not in plot
    assert sole_plot(fits, scene.feet) == sole_plot(fits, scene.feet)


def test_plots_of_nothing_known(scene, fits):
    unknown = np.full(2, np.nan)
    blind = [
        replace(
            fit,
            sole=-1,
            measured=unknown,
            before=unknown,
            after=unknown,
            error_before=np.nan,
        )
        for fit in fits[:3]
    ]
    for plot in (
        sole_plot(blind, scene.feet),
        residual_plot(blind),
        timeline_plot([], 0.0),
    ):
        Page(plot)


def test_many_postures_still_make_a_page_of_bounded_size(contents):
    many = 100
    longer = replace(
        contents,
        intervals=list(contents.intervals) * many,
        fits=list(contents.fits) * many,
    )
    page = report_page(longer)
    assert "and 3800 more" in page
    assert len(page) < 2e6


def test_numbers_and_tables():
    assert number(-0.0123, 2, 1000.0) == "−12.30"
    assert number(-1e-9) == "0.00"
    assert number(float("nan")) == "–"
    assert plus_minus(1.0, 0.25, 1) == "1.0 ± 0.2"
    assert plus_minus(1.0, float("nan"), 1) == plus_minus(1.0, 0.0, 1) == "1.0"
    assert coordinates([1e-3, -2e-3, 0.0], "mm", [1e-4] * 3, 1e3) == (
        "x 1.0 ± 0.1, y −2.0 ± 0.1, z 0.0 ± 0.1 mm"
    )
    assert element("p", "a < b", Raw("<b>c</b>")) == "<p>a &lt; b<b>c</b></p>"
    assert table(("x",), [("&",)]) == (
        "<table><tr><th>x</th></tr><tr><td>&amp;</td></tr></table>"
    )


def test_bars_show_change_and_uncertainty_and_stay_in_their_box():
    drawn = bar(0.01, 0.005, 0.02)
    assert 'x1="65.0" x2="75.0"' in drawn  # 20 pixels are one std of the prior
    assert 'cx="70.0"' in drawn
    assert 'cx="120.0"' in bar(9.0, 0.005, 0.02)
    assert bar(0.01, 0.005, 0.0) == ""
    assert bar(float("nan"), 0.1, 0.1) == ""
