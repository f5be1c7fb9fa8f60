"""Masses and inertias that no body of a link's size has, and what they have in common."""

import json
import re

import numpy as np
import pytest

from com_model import RobotModel, audit, load_robot
from com_model.commands.audit import main

BOXES = {  # parent, origin in the parent, kg, size (m), centre (m)
    "pelvis": ("", (0, 0, 0), 8.0, (0.15, 0.25, 0.35), (0, 0, 0.15)),
    "head": ("pelvis", (0, 0, 0.35), 0.8, (0.12, 0.14, 0.12), (0, 0, 0.06)),
}
for side, y in (("left", 0.1), ("right", -0.1)):
    BOXES |= {
        f"{side}_hip": (
            "pelvis",
            (0, y, 0),
            0.4,
            (0.06, 0.06, 0.06),
            (0, 0, 0),
        ),
        f"{side}_thigh": (
            f"{side}_hip",
            (0, 0, 0),
            1.6,
            (0.08, 0.08, 0.28),
            (0, 0, -0.14),
        ),
        f"{side}_shank": (
            f"{side}_thigh",
            (0, 0, -0.3),
            1.2,
            (0.07, 0.07, 0.26),
            (0, 0, -0.13),
        ),
        f"{side}_foot": (
            f"{side}_shank",
            (0, 0, -0.28),
            0.6,
            (0.18, 0.09, 0.03),
            (0.03, 0, -0.01),
        ),
    }
FIXED = ("head", "cover", "imu_frame", "camera_frame", "lidar_frame", "core")


def robot(masses=1.0, inertias=1.0, degrees=False, changes=None, more=""):
    """A humanoid of boxes of even density; changes: link -> factors of mass and inertia."""
    text = []
    for name, (parent, at, mass, size, centre) in BOXES.items():
        factor, spread = (changes or {}).get(name, (1.0, 1.0))
        kg = mass * masses * factor
        square = np.square(size)
        moments = mass * factor * spread * inertias * (square.sum() - square) / 12.0
        text.append(link(name, kg, moments, centre, size))
        if parent:
            text.append(joint(name, parent, at, degrees))
    return f'<robot name="mini">{"".join(text)}{more}</robot>'


def link(name, mass, moments=(0, 0, 0), centre=(0, 0, 0), size=None):
    at = " ".join(map(str, centre))
    shape = size and (
        f'<collision><origin xyz="{at}"/><geometry><box size="{" ".join(map(str, size))}"/>'
        "</geometry></collision>"
    )
    terms = " ".join(
        f'{n}="{v}"' for n, v in zip(("ixx", "iyy", "izz"), moments, strict=True)
    )
    return (
        f'<link name="{name}"><inertial><origin xyz="{at}"/><mass value="{mass}"/>'
        f'<inertia {terms} ixy="0" ixz="0" iyz="0"/></inertial>{shape or ""}</link>'
    )


def joint(name, parent, at=(0, 0, 0), degrees=False):
    kind = "fixed" if name in FIXED else "revolute"
    most = 120 if degrees else 2.1
    return (
        f'<joint name="{name}_joint" type="{kind}"><parent link="{parent}"/>'
        f'<child link="{name}"/><origin xyz="{" ".join(map(str, at))}"/><axis xyz="0 1 0"/>'
        f'<limit lower="{-most}" upper="{most}" effort="50" velocity="9"/></joint>'
    )


def said(xml):
    return [(i.severity, f"{i.element} {i.message} {i.fix}") for i in audit(xml).issues]


def test_a_sound_robot_has_no_finding():
    assert said(robot()) == []


def test_a_plane_is_no_body():
    """A sheet without thickness marks the place of a link of 2 kg."""
    flat = link("plate", 2.0, (0.01, 0.01, 0.02), (0, 0, 0), (0.2, 0.2, 1e-5))
    joined = joint("plate", "pelvis", (0, 0, 0.1))
    assert not any("plate" in text for _, text in said(robot(more=flat + joined)))


def frames(mass):
    names = FIXED[2:5]
    return "".join(link(n, mass, (1, 1, 1)) + joint(n, "pelvis") for n in names)


def repeated():
    _, _, mass, size, centre = BOXES["left_thigh"]
    square = np.square(size)
    moments = mass * (square.sum() - square) / 12.0
    return link("cover", mass, moments, centre, size) + joint("cover", "left_thigh")


@pytest.mark.parametrize(
    ("xml", "severity", "words"),
    [
        (robot(changes={"head": (125.0, 1.0)}), "error", ("'head'", "100 kg", "steel")),
        (robot(changes={"head": (12.0, 1.0)}), "warning", ("'head'", "kg/m^3")),
        (robot(masses=1e3), "error", ("masses are in g",)),
        (robot(inertias=1e6), "error", ("inertias are in kg mm^2",)),
        (robot(inertias=1e9), "error", ("inertias are in g mm^2",)),
        (
            robot(changes={"right_thigh": (1.0, 10.0)}),
            "warning",
            ("'left_thigh'", "'right_thigh'", "mirroring"),
        ),
        (
            robot(changes={"head": (1.0, 6.0)}),
            "warning",
            ("'head'", "inertia", "ends at"),
        ),
        (
            robot(changes={"head": (1.0, 0.02)}),
            "warning",
            ("'head'", "ball of steel"),
        ),
        (
            robot(changes={"pelvis": (0.0, 0.0)}),
            "error",
            ("'pelvis'", "shape but no mass"),
        ),
        (robot(degrees=True), "error", ("degrees",)),
        (robot(more=frames(1.0)), "warning", ("imu_frame", "placeholder")),
        (robot(more=repeated()), "warning", ("'cover'", "'left_thigh'", "twice")),
        (
            robot(more=link("core", 18.0, (0.2, 0.2, 0.1)) + joint("core", "pelvis")),
            "warning",
            ("'core'", "no shape"),
        ),
    ],
)
def test_what_is_wrong_is_named(xml, severity, words):
    found = said(xml)
    assert any(s == severity and all(w in text for w in words) for s, text in found), (
        found
    )


def test_one_mass_for_all_links_is_a_placeholder():
    same = {name: (1.0 / mass, 1.0) for name, (_, _, mass, _, _) in BOXES.items()}
    assert any(
        "exactly 1 kg" in text and "placeholders" in text
        for _, text in said(robot(changes=same))
    )


def test_one_inertia_for_all_links_is_a_placeholder_and_no_unit():
    text = re.sub(
        r"<inertia [^>]*>",
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="0"/>',
        robot(),
    )
    errors = [i for i in audit(text).issues if i.severity == "error"]
    assert len(errors) == 1
    assert (
        "10 of 10 links have exactly the same inertia (0, 1, 1 kg m^2)"
        in errors[0].message
    )


def test_one_unit_is_one_finding():
    assert len(said(robot(masses=1e3))) == 1
    assert len(said(robot(inertias=1e6))) == 1


@pytest.mark.parametrize("name", ["biped3", "hoap3", "itu_biped", "scalf2"])
def test_robots_of_the_suite_pass(name):
    model, _ = load_robot(name)
    assert [i for i in audit(model).issues if i.severity != "info"] == []


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        (robot(masses=1e3), "multiplied all masses by 0.001"),
        (robot(inertias=1e6), "multiplied all inertias by 1e-06"),
        (robot(degrees=True), "multiplied all limits by 0.0174533"),
        (robot(more=frames(1.0)), "deleted the <inertial> of imu_frame, camera_frame"),
        (robot(more=repeated()), "deleted the <inertial> of cover"),
    ],
    ids=["g", "kg mm2", "degrees", "frames", "copy"],
)
def test_what_is_beyond_doubt_is_corrected_into_a_new_file(
    tmp_path, capsys, xml, words
):
    old, new = tmp_path / "old.urdf", tmp_path / "new.urdf"
    old.write_text(xml)
    assert main([str(old), "--fix", str(new)]) == 0
    out = capsys.readouterr().out
    assert words in out
    assert f"wrote {new}" in out
    assert old.read_text() == xml
    assert not audit(new).issues
    fixed, sound = RobotModel.from_file(new), RobotModel.from_urdf(robot())
    np.testing.assert_allclose(fixed.bodies.mass, sound.bodies.mass, rtol=1e-9)
    limit = np.radians(120.0) if "limits" in words else 2.1
    np.testing.assert_allclose(fixed.upper, limit, rtol=1e-8)
    with pytest.raises(SystemExit):  # it overwrites nothing
        main([str(old), "--fix", str(new)])


def test_what_is_not_beyond_doubt_stays(tmp_path):
    old, new = tmp_path / "old.urdf", tmp_path / "new.urdf"
    old.write_text(robot(changes={"head": (100.0, 1.0)}))
    assert main([str(old), "--fix", str(new)]) == 1
    assert new.read_text() == old.read_text()


def test_json_of_several_files(tmp_path, capsys):
    sound, wrong = tmp_path / "sound.urdf", tmp_path / "wrong.urdf"
    sound.write_text(robot())
    wrong.write_text(robot(masses=1e3))
    assert main([str(sound), str(wrong), "--json"]) == 1
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["file"], first["issues"]) == (str(sound), [])
    (issue,) = second["issues"]
    assert (issue["severity"], issue["element"]) == ("error", "all links")
    assert issue["correction"] == {"what": "masses", "factor": 0.001, "links": []}
    with pytest.raises(SystemExit):
        main([str(sound), str(wrong), "--fix", str(tmp_path / "new.urdf")])
