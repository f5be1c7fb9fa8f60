"""The viewer in a real browser: what is seen, what is pressed, and that nothing leaves the machine.

Skipped where there is no Chromium (Debian: apt-get install chromium).
"""

import re
from contextlib import closing
from itertools import count
from urllib.parse import urlparse

import numpy as np
import pytest
from browser import Browser, find_browser
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from com_estimation.whole_body.com_state import ComObserver
from com_model import audit, load_robot
from com_model.checks.audit_page import audit_page
from com_model.robots import find_robot

pytest.importorskip("viser", reason="viser is not installed")

import viser

from com_viewer.bag_run import BagRun
from com_viewer.commands import view
from com_viewer.page import Page
from com_viewer.panel import JOINTS, PLOTS, joint_groups

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not find_browser(), reason="no Chromium: apt-get install chromium"
    ),
]
HOAP2 = find_robot("hoap2").urdf
TEXTS = (
    "[...document.querySelectorAll('label')].map(e => e.textContent.trim()).join('|')"
)
BUTTON = (
    "[...document.querySelectorAll('button')].find(e => e.innerText.trim() == '{}')"
)
LABEL = "[...document.querySelectorAll('label')].find(e => e.innerText.trim() == '{}')"


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


@pytest.fixture
def browser(window):
    window.requests, window.errors = [], []
    yield window
    hosts = {urlparse(address).hostname for address in window.requests}
    assert hosts <= {"127.0.0.1", "", None}, window.requests
    assert window.errors == []
    window.open("about:blank")


@pytest.fixture
def hoap2():
    return load_robot("hoap2")


# each page at a port of its own: a connection that the browser opened in advance, and that has not
# noticed the end of the server before, would be used for the next one
PORTS = count(8300, 10)


@pytest.fixture
def page():
    page = Page(port=next(PORTS))
    yield page
    page.close()


def settled(browser):
    """The picture when it no longer changes."""
    before = browser.pixels()

    def same():
        nonlocal before
        last, before = before, browser.pixels()
        return changed(last, before) < 20

    browser.wait_for(same, "the picture settles")
    return before


def changed(one, other):
    """How many pixels differ, to the left of the panel."""
    return int(
        (np.abs(one[:, :460].astype(int) - other[:, :460]).max(axis=2) > 12).sum()
    )


def differs(browser, before, count):
    """Wait until more than so many pixels differ from a picture; how many do."""
    return browser.wait_for(
        lambda: (n := changed(before, browser.pixels())) > count and n,
        f"{count} pixels change",
    )


def nearest(browser, label, selector):
    """x, y, width of the element beside a label."""
    browser.wait_for(
        lambda: browser.js(f"!!{LABEL.format(label)}"), f"{label} is there"
    )
    _, y, _, _ = browser.place(LABEL.format(label))
    boxes = browser.js(
        f"[...document.querySelectorAll('{selector}')].map(e => {{ const b ="
        " e.getBoundingClientRect(); return [b.x, b.y + b.height / 2, b.width]; })"
    )
    return min(boxes, key=lambda box: abs(box[1] - y))


def open_tab(browser, name):
    """Open a tab of the panel."""
    tab = f"[...document.querySelectorAll('[role=tab]')].find(e => e.innerText.trim() == '{name}')"
    browser.wait_for(lambda: browser.js(f"!!{tab}"), f"{name} is there")
    browser.click(*browser.place(tab)[:2])


def tick(browser, layer):
    """Press the checkbox of a layer."""
    x, y, width = nearest(browser, layer, "input[type=checkbox]")
    browser.click(x + width / 2, y)


def test_the_robot_is_seen_a_slider_moves_it_and_layers_hide(browser, page, hoap2):
    model, config = hoap2
    page.tab(JOINTS)
    groups, nominal = joint_groups(model, config, None), config.nominal_posture(model)
    view.add_sliders(view.ShownRobot(page, model, config, HOAP2), groups, nominal)
    browser.open(page.address)
    browser.wait_for_text("hoap2, 7.120 kg, 85 of 85 shapes")
    browser.wait_for_text("margin")
    open_tab(browser, "Layers")
    everything = settled(browser)
    tick(browser, "robot")
    robot = differs(browser, everything, 1000)
    tick(browser, "robot")
    browser.wait_for(
        lambda: changed(everything, browser.pixels()) < 200, "the robot shows again"
    )
    tick(browser, "chain")
    assert differs(browser, everything, 20) < 0.5 * robot
    tick(browser, "chain")

    labels = browser.js(TEXTS).split("|")
    assert {"robot", "com", "chain", "support", "link CoMs"} <= {*labels}
    assert not {"forces", "marks", "footsteps", "compared"} & {*labels}, (
        "they cannot appear"
    )

    open_tab(browser, "Joints (°)")
    x, y, width = nearest(browser, model.joint_names[0], ".mantine-Slider-track")
    before = page._rows["CoM, root link"]
    browser.click(x + 0.9 * width, y)
    browser.wait_for(lambda: page._rows["CoM, root link"] != before, "the CoM moves")
    q = np.array(config.nominal_posture(model))
    q[0] = model.lower[0] + 0.9 * (model.upper[0] - model.lower[0])
    assert {*model.joint_names} <= {*browser.js(TEXTS).split("|")}, "a slider per joint"
    expected = ComObserver(model, config.feet).update(q, 0 * q).position
    shown = [float(word) for word in page._rows["CoM, root link"].split()[:3]]
    assert shown == pytest.approx(expected, abs=1e-3)
    browser.wait_for_text(page._rows["CoM, root link"])
    browser.click(*browser.place(BUTTON.format("nominal"))[:2])
    browser.wait_for(
        lambda: page._rows["CoM, root link"] == before, "the posture is reset"
    )


def test_a_link_that_is_clicked_has_a_mass(browser, page, hoap2):
    model, config = hoap2
    shown = view.ShownRobot(page, model, config, HOAP2)
    q = config.nominal_posture(model)
    shown.show(shown.scene.place(q, shown.observer.update(q, 0 * q)), {})
    browser.open(page.address)
    browser.wait_for_text("hoap2, 7.120 kg, 85 of 85 shapes")
    settled(browser)
    browser.click(400, 230)  # the trunk is in the middle, above the hips
    browser.wait_for_text("kg, CoM ")
    assert " mm in its frame" in page._rows["clicked"]


def test_a_recording_is_paused_and_scrubbed(browser, page, hoap2):
    model, config = hoap2
    times = np.arange(0.0, 10.0, 0.05)
    Q = np.tile(config.nominal_posture(model), (len(times), 1))
    Q[:, 0] += 0.05 * times  # rad
    nothing = np.full((len(times), 3), np.nan)
    run = BagRun(times, Q, nothing, np.empty((len(times), 0, 3)), ())
    page.tab(PLOTS)
    step = view._play(view.ShownRobot(page, model, config, HOAP2), run, record=False)
    browser.open(page.address)
    browser.wait_for_text("0.00 of 9.95 s")
    step(1.0)
    browser.wait_for_text("1.00 of 9.95 s")
    browser.click(*browser.place(BUTTON.format("pause"))[:2])
    browser.wait_for_text("play")
    step(1.0)
    assert page._rows["time"].startswith("1.00")
    x, y, width = nearest(browser, "time (s)", ".mantine-Slider-track")
    browser.click(x + 0.5 * width, y)
    browser.wait_for(
        lambda: float(page._rows["time"].split()[0]) > 4.0, "it is scrubbed"
    )
    at = float(page._rows["time"].split()[0])
    assert at == pytest.approx(5.0, abs=0.3)
    q = Q[np.searchsorted(times, at, side="right") - 1]
    expected = ComObserver(model, config.feet).update(q, 0 * q).position
    shown = [float(word) for word in page._rows["CoM, root link"].split()[:3]]
    assert shown == pytest.approx(expected, abs=1e-4)


def test_a_html_file_opens_without_a_server(browser, tmp_path):
    path = tmp_path / "hoap2.html"
    assert view.main(["hoap2", "--record", str(path), "--port", "8310"]) == 0
    browser.open(path.as_uri())
    browser.wait_for_text("hoap2, 7.120 kg, 85 of 85 shapes")
    browser.wait_for(
        lambda: browser.js("document.querySelectorAll('canvas').length"), "a canvas"
    )
    browser.wait_for(
        lambda: colours(browser) > 200, "a shaded robot is seen, no blank page"
    )


def write_joints(path, names, Q):
    """A bag of joint states (T, n) at 20 Hz; return its path."""
    store = get_typestore(Stores.ROS2_JAZZY)
    kind, types = "sensor_msgs/msg/JointState", store.types
    with Writer(path, version=9) as bag:
        topic = bag.add_connection("/joint_states", kind, typestore=store)
        for i, q in enumerate(Q):
            stamp = types["builtin_interfaces/msg/Time"](*divmod(i * 50_000_000, 10**9))
            header = types["std_msgs/msg/Header"](stamp, "")
            message = types[kind](header, list(names), q, np.empty(0), np.empty(0))
            bag.write(topic, i * 50_000_000, store.serialize_cdr(message, kind))
    return str(path)


def test_a_film_of_a_bag_plays(browser, hoap2, tmp_path):
    """Each one raised TypeError: the times between its frames were NumPy's."""
    model, config = hoap2
    Q = np.tile(config.nominal_posture(model), (60, 1))
    Q[:, 0] = 0.02 * np.arange(60)
    path, bag = (
        tmp_path / "walk.html",
        write_joints(tmp_path / "bag", model.joint_names, Q),
    )
    words = ["bag", bag, "--robot", "hoap2", "--record", str(path)]
    assert view.main([*words, "--port", "8320"]) == 0
    browser.open(path.as_uri())
    browser.wait_for_text("2.95 s")
    browser.wait_for(
        lambda: colours(browser) > 200, "a shaded robot is seen, no blank page"
    )
    x, y = browser.place("document.querySelector('.tabler-icon-player-pause-filled')")[
        :2
    ]
    covered = f"!document.elementFromPoint({x}, {y}).closest('[class*=ActionIcon]')"
    assert not browser.js(covered), "the table covers the button"
    browser.click(x, y)
    playing = "!!document.querySelector('.tabler-icon-player-play-filled')"
    browser.wait_for(lambda: browser.js(playing), "it is paused")


def test_a_report_is_readable_in_the_dark_and_on_paper(browser, tmp_path):
    path = tmp_path / "report.html"
    urdf = str(find_robot("hoap2").urdf)
    path.write_text(audit_page(audit(urdf), urdf))
    ratios = {}
    for scheme, media in (("light", "screen"), ("dark", "screen"), ("dark", "print")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", media=media, features=features)
        browser.open(path.as_uri())
        browser.wait_for_text("What next")
        assert (
            browser.js("document.querySelector('svg').getBoundingClientRect().width")
            > 400
        )
        texts = [browser.js(f"getComputedStyle(document.querySelector('{tag}')).color")
                 for tag in ("td", "th", "p", "h1")]  # fmt: skip
        ground = browser.js("getComputedStyle(document.body).backgroundColor")
        paper = 1.0 if "0, 0, 0, 0" in ground else brightness(ground)
        ratios[scheme, media] = min(contrast(brightness(text), paper) for text in texts)
        assert (paper < 0.1) == ((scheme, media) == ("dark", "screen"))
    browser.call("Emulation.setEmulatedMedia", media="", features=[])
    assert min(ratios.values()) > 7.0, ratios  # WCAG, level AAA


def brightness(color):
    """Relative luminance of "rgb(...)"; WCAG 2."""
    parts = np.array([float(word) for word in re.findall(r"[\d.]+", color)[:3]]) / 255.0
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first, second):
    """Ratio of two luminances."""
    low, high = sorted((first, second))
    return (high + 0.05) / (low + 0.05)


def colours(browser):
    """How many colours there are in the middle of the picture."""
    middle = browser.pixels()[200:600, 350:650].reshape(-1, 3)
    return len(np.unique(middle, axis=0))


def press(browser, text):
    """Press a button as soon as it is there and stays where it is."""
    button = BUTTON.format(text)
    browser.wait_for(lambda: browser.js(f"!!{button}"), f"{text} is there")
    settled(browser)
    browser.click(*browser.place(button)[:2])


def test_a_button_asks_before_it_does_anything(browser, page):
    pressed = []
    page.set_actions(["gait/start"], pressed.append)
    browser.open(page.address)
    open_tab(browser, "Services")
    press(browser, "gait/start")
    press(browser, "cancel")
    press(browser, "gait/start")
    browser.wait_for_text("yes: gait/start")
    assert pressed == []
    press(browser, "yes: gait/start")
    browser.wait_for(lambda: pressed, "the service is called")
    assert pressed == ["gait/start"]


def test_another_origin_sees_nothing(window, page):
    """A page of another site, open in the browser that has the viewer's cookie."""
    window.open(page.address)
    window.wait_for(lambda: page.server.get_clients(), "the page is open")
    socket = page.address.replace("http", "ws", 1).partition("?")[0]
    with closing(Page(port=next(PORTS))) as other:  # another origin: another port
        window.open(other.address)
        window.wait_for(lambda: other.server.get_clients(), "the other page is open")
        protocol = f"viser-v{viser.__version__}"
        window.js(
            f"window.seen = ''; window.tried = new WebSocket('{socket}', '{protocol}');"
            " tried.onopen = () => window.seen = 'open';"
            " tried.onerror = () => window.seen = 'refused'; 1"
        )
        window.wait_for(lambda: window.js("window.seen"), "the socket is answered")
        assert window.js("window.seen") == "refused"
        window.open("about:blank")
    window.requests, window.errors = [], []
