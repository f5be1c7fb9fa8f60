"""A person's model: its size, markers, force plates of C3D files, and the truth found."""

import numpy as np
import pytest
import yaml

from com_bags import TableError, UnitError
from com_identification.commands.human import main
from com_identification.exceptions import PostureError
from com_identification.human import (
    MarkerFit,
    MarkerTrial,
    check_plates,
    human_posture,
    human_urdf,
    read_c3d,
    read_trial,
    trial_postures,
)
from com_identification.regression.postures import wrench_transform
from com_identification.store.results import corrected_inertials
from com_model import RobotModel, Sesc, link_poses
from com_model.arrays import Array
from com_model.exceptions import ConfigError
from com_model.geometry.rotations import rotations_about
from com_model.urdf.editing import edit_inertials

pytestmark = pytest.mark.slow

G = 9.80665


@pytest.fixture(scope="module")
def person() -> RobotModel:
    return RobotModel.from_urdf(human_urdf(1.75, 68.0, "f"))


def test_the_person_is_symmetric_and_has_the_mass(person):
    assert person.mass == pytest.approx(68.0)
    com = Sesc(person).com(np.zeros(person.n_joints))
    assert abs(com[1]) < 1e-9
    assert 0.0 < com[2] < 0.15, "above the hips"
    for mass, height, sex in ((0.0, 1.7, "f"), (70.0, 17.0, "m"), (70.0, 1.7, "x")):
        with pytest.raises(ConfigError, match=r"expected 0\.5 to 2\.6 m"):
            human_urdf(height, mass, sex)


def test_lengths_scale_by_the_height_and_masses_by_the_mass(person):
    long, light = (
        RobotModel.from_urdf(human_urdf(*size, "f")) for size in ((2.1, 68), (1.75, 34))
    )
    q = np.full(person.n_joints, 0.3)
    np.testing.assert_allclose(
        link_poses(long, q)[1], 1.2 * link_poses(person, q)[1], atol=1e-8
    )
    np.testing.assert_allclose(long.link_coms, 1.2 * person.link_coms, atol=1e-8)
    np.testing.assert_allclose(
        long.link_inertias, 1.44 * person.link_inertias, atol=1e-8
    )
    np.testing.assert_allclose(2.0 * light.link_masses, person.link_masses, atol=1e-7)
    np.testing.assert_allclose(
        2.0 * light.link_inertias, person.link_inertias, atol=1e-8
    )
    # of the table
    thigh, rod = person.link_index("l_thigh"), 0.3 * 1.75 * 368.5 / 1735.0
    assert person.link_masses[thigh] == pytest.approx(68.0 * 0.1478, rel=2e-4)
    assert person.link_inertias[thigh][0, 0] == pytest.approx(
        68.0 * 0.1478 * rod**2, rel=2e-4
    )


def markers_of(model) -> dict[str, tuple[str, Array]]:
    spread = np.array([[0.06, 0.04, 0.0], [-0.05, 0.05, -0.1], [0.03, -0.06, -0.2]])
    heavy = zip(model.link_names, model.link_masses, strict=True)
    links = [name for name, mass in heavy if mass > 0.0]
    return {f"{link}{k}": (link, at) for link in links for k, at in enumerate(spread)}


def pose_of(rng, n):
    turn = rotations_about(np.array([[0.6, 0.0, 0.8]]), rng.normal(0.0, 0.3, 1))[0]
    return rng.normal(0.0, 0.4, n), turn, rng.normal(0.0, 0.3, 3)


def test_markers_give_the_posture(person):
    rng = np.random.default_rng(0)
    fit = MarkerFit(person, markers_of(person))
    for _ in range(3):
        q, R, p = pose_of(rng, person.n_joints)
        seen = fit.place(q[None], R[None], p[None])[0]
        seen[4] = np.nan  # hidden
        found_q, found_R, found_p = fit.solve(seen)
        np.testing.assert_allclose(found_R, R, atol=1e-3)
        np.testing.assert_allclose(found_p, p, atol=1e-3)
        np.testing.assert_allclose(found_q, q, atol=5e-3)


def write_c3d(path, names, markers, wrench):
    """A trial with one plate of type 2 in mm and N mm, two readings a frame."""
    ezc3d = pytest.importorskip("ezc3d")
    c3d, frames = ezc3d.c3d(), len(markers)
    p = c3d["parameters"]
    p["POINT"]["RATE"]["value"], p["POINT"]["UNITS"]["value"] = [10], ["mm"]
    p["POINT"]["LABELS"]["value"] = tuple(names)
    p["ANALOG"]["RATE"]["value"] = [20]
    p["ANALOG"]["LABELS"]["value"] = ("Fx", "Fy", "Fz", "Mx", "My", "Mz")
    p["ANALOG"]["UNITS"]["value"] = ("N", "N", "N", "Nmm", "Nmm", "Nmm")
    p["ANALOG"]["SCALE"]["value"], p["ANALOG"]["OFFSET"]["value"] = [1.0] * 6, [0] * 6
    points = np.ones((4, len(names), frames))
    points[:3] = 1e3 * markers.transpose(2, 1, 0)
    c3d["data"]["points"] = points
    # the plate is turned about a vertical line and its transducer is 40 mm below, z points down
    corners = np.array(
        [[600, 400, 0], [600, 0, 0], [0, 0, 0], [0, 400, 0]], dtype=float
    )
    offset = np.array([3.0, -5.0, -40.0])
    R = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    force, moment = -wrench[:, :3], -wrench[:, 3:]  # of the person on the plate
    moment = 1e3 * moment - np.cross(corners.mean(axis=0), force)
    force, moment = force @ R, moment @ R
    raw = np.hstack((force, moment + np.cross(offset, force)))
    c3d["data"]["analogs"] = np.repeat(raw, 2, axis=0).T[None]
    plates = {"USED": [1], "TYPE": [2], "CHANNEL": np.arange(1, 7).reshape(6, 1)}
    plates |= {"CORNERS": corners.T.reshape(3, 4, 1), "ORIGIN": offset.reshape(3, 1)}
    for name, value in plates.items():
        c3d.add_parameter("FORCE_PLATFORM", name, np.array(value, dtype=float))
        whole = name in ("USED", "TYPE", "CHANNEL")
        # integer, float
        c3d["parameters"]["FORCE_PLATFORM"][name]["type"] = 2 if whole else 4
        c3d["parameters"]["FORCE_PLATFORM"][name]["value"] = np.array(value)
    c3d.write(str(path))


def write_opensim(path, names, markers, wrench, hide=True):
    """A trc in mm, y up, one cell hidden, and a mot with two plates at ten times its rate."""
    to_file = np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]])
    cells = 1e3 * markers @ to_file.T
    head = ["DataRate", "CameraRate", "NumFrames", "NumMarkers", "Units"]
    lines = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "\t".join(head)]
    lines += [f"10\t10\t{len(cells)}\t{len(names)}\tmm"]
    lines += ["Frame#\tTime\t" + "\t\t\t".join(names)]
    lines += [
        "\t\t" + "\t".join(f"{a}{k + 1}" for k in range(len(names)) for a in "XYZ")
    ]
    for k, frame in enumerate(cells):
        text = [f"{value:.5f}" for value in frame.ravel()]
        text[:3] = [""] * 3 if hide and k == 0 else text[:3]
        lines.append("\t".join([str(k + 1), f"{k / 10.0:.3f}", *text]) + "\t")
    path.write_text("\n".join(lines) + "\n")
    points = np.array([[0.1, 0.2, 0.0], [-0.2, 0.1, 0.05]])
    columns = {"time": np.arange(10 * len(wrench)) / 100.0}
    left = wrench[:, 3:].copy()
    for k, part in enumerate((0.6, 0.4)):
        left -= np.cross(points[k], part * wrench[:, :3])
    for k, part in enumerate((0.6, 0.4)):
        force, torque = part * wrench[:, :3], left * (k == 0)
        where = np.tile(points[k], (len(wrench), 1))
        for word, values in (
            ("force_v", force),
            ("force_p", where),
            ("torque_", torque),
        ):
            turned = np.repeat(values @ to_file.T, 10, axis=0)
            for axis, column in zip("xyz", turned.T, strict=True):
                columns[f"{'1_' * k}ground_{word}{axis}"] = column
    rows = np.column_stack(list(columns.values()))
    lines = [
        "grf",
        "version=1",
        f"nRows={len(rows)}",
        f"nColumns={len(columns)}",
        "endheader",
    ]
    lines += ["\t".join(columns), *("\t".join(f"{v:.6f}" for v in row) for row in rows)]
    path.with_suffix(".mot").write_text("\n".join(lines) + "\n")


WRITERS = {".c3d": write_c3d, ".trc": write_opensim}


@pytest.mark.parametrize("end", list(WRITERS))
def test_the_command_finds_a_persons_own_centre_of_mass(end, person, tmp_path, capsys):
    rng, bodies = np.random.default_rng(1), person.bodies
    com = np.zeros((bodies.count, 3))
    heavy = bodies.mass > 0.0
    com[heavy] = bodies.first_moment[heavy] / bodies.mass[heavy, None]
    com[heavy] += rng.normal(0.0, 0.015, (int(heavy.sum()), 3))
    xml = edit_inertials(person.xml, corrected_inertials(person, bodies.mass, com))
    truth = Sesc(RobotModel.from_urdf(xml))
    where = markers_of(person)
    fit, seen, wrench = MarkerFit(person, where), [], []
    for _ in range(12):
        q, R, p = pose_of(rng, person.n_joints)
        placed = fit.place(q[None], R[None], p[None])[0] + rng.normal(
            0.0, 1e-3, (len(where), 3)
        )
        force = np.array([0.0, 0.0, G * person.mass])
        true = np.concatenate((force, np.cross(p + R @ truth.com(q), force)))
        seen += [placed] * 5
        wrench += [true + rng.normal(0.0, 0.5, 6)] * 5
    path = tmp_path / f"trial{end}"
    WRITERS[end](
        path, [f"Ann:{name}" for name in where], np.array(seen), np.array(wrench)
    )
    plates = path.with_suffix(".mot") if end == ".trc" else None
    trial = read_trial(path, plates)
    assert (trial.rate, trial.names) == (pytest.approx(10.0), tuple(where))
    np.testing.assert_allclose(trial.wrench, wrench, atol=0.1)
    hidden = np.isnan(trial.markers)
    assert int(hidden.sum()) == (3 if plates else 0)
    np.testing.assert_allclose(
        trial.markers[~hidden], np.array(seen)[~hidden], atol=1e-5
    )
    lines = {
        name: {"link": link, "at": at.tolist()} for name, (link, at) in where.items()
    }
    (tmp_path / "markers.yaml").write_text(yaml.safe_dump(lines))
    words = ["--height", "1.75", "--mass", "68", "--sex", "f", "--marker-std", "1"]
    words += ["--output", str(tmp_path / "person.urdf"), "--trial", str(path)]
    words += ["--plates", str(plates)] if plates else []
    assert main([*words, "--markers", str(tmp_path / "markers.yaml")]) == 0
    assert f"trial{end}: 12 postures; used 6.0 s" in capsys.readouterr().out
    found = Sesc(RobotModel.from_file(tmp_path / "person.urdf"))
    errors = []
    for _ in range(20):
        q, R, _ = pose_of(rng, person.n_joints)
        across = np.eye(3) - np.outer(R[2], R[2])
        errors.append(
            [
                np.linalg.norm(across @ (s.com(q) - truth.com(q)))
                for s in (Sesc(person), found)
            ]
        )
    table, own = np.sqrt(np.mean(np.square(errors), axis=0))
    assert own < 0.7 * table
    with pytest.raises(TableError, match="has none of the markers"):
        trial_postures(person, trial, {"X": ("head", np.zeros(3))}, 1e-3)


def test_the_errors_of_the_marker_fit_are_those_that_it_states(person):
    rng, fit = np.random.default_rng(3), MarkerFit(person, markers_of(person))
    q, R, p = pose_of(rng, person.n_joints)
    seen = fit.place(q[None], R[None], p[None])[0]
    root = fit.errors(seen, q, R, p, 1e-3)
    squares = []
    for _ in range(25):
        found_q, found_R, found_p = fit.solve(
            seen + rng.normal(0.0, 1e-3, seen.shape), q
        )
        turn = R.T @ found_R - np.eye(
            3
        )  # of a small rotation vector, but for its square
        error = np.concatenate((found_q - q, turn[[2, 0, 1], [1, 2, 0]], found_p - p))
        squares.append(np.sum(np.linalg.solve(root, error) ** 2) / len(error))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.2)


def test_noise_of_a_horizontal_force_has_no_lever(person):
    """The moment about the root has it, over the root's height, but so has the force."""
    q, R, _ = pose_of(np.random.default_rng(4), person.n_joints)
    p = np.array([0.1, 0.2, 0.9])
    wrench = np.array([0.0, 0.0, G * person.mass, 12.0, -20.0, 0.0])
    noise = human_posture(person, q, R, p, wrench, (2.0, 1.0)).noise
    back = wrench_transform(R, p)
    np.testing.assert_allclose(
        back @ noise[:6], np.diag([2.0] * 3 + [1.0] * 3), atol=1e-9
    )
    np.testing.assert_array_equal(noise[6:], 0.0)


def test_broken_trials_are_one_kind_of_error(tmp_path):
    path = tmp_path / "bad.c3d"
    for data in (b"", b"\x02\x50" + bytes(600), np.random.default_rng(0).bytes(3000)):
        path.write_bytes(data)
        with pytest.raises(TableError, match="cannot be read"):
            read_c3d(path)


def small_trial(tmp_path, person):
    where = markers_of(person)
    markers = np.tile(np.arange(3.0 * len(where)).reshape(1, -1, 3), (20, 1, 1)) / 100.0
    wrench = np.tile([0.0, 0.0, 600.0, 30.0, -12.0, 1.0], (20, 1))
    write_opensim(tmp_path / "a.trc", where, markers, wrench, hide=False)
    return tmp_path / "a.trc", tmp_path / "a.mot"


CHANGES = [  # file, old, new, message
    ("trc", "Units", "Unit", r"is no trc: expected Units mm, cm, m in its third line"),
    ("trc", "\tmm", "\tinch", r"is no trc: expected Units"),
    ("trc", "Frame#\tTime", "Bild\tZeit", r"Frame# and Time in its fourth"),
    ("mot", "endheader", "end", r"has no line endheader with names below it"),
    ("mot", "time\t", "clock\t", r"expected a column `time` in s that rises"),
    ("mot", "1_ground_force_px", "px", r"has no column of numbers 1_ground_force_px"),
    ("mot", "1_ground_torque_z", "tz", r"has no column of numbers 1_ground_torque_z"),
    ("mot", "_vx", "_ux", r"the plates' mean force is .* expected z to be up"),
    ("mot", "\n0.010000\t", "\n-0.010000\t", r"`time` in s that rises"),
]


@pytest.mark.parametrize(("end", "old", "new", "message"), CHANGES)
def test_opensim_files_that_are_wrong_say_where(
    end, old, new, message, person, tmp_path
):
    files = dict(zip(("trc", "mot"), small_trial(tmp_path, person), strict=True))
    read_trial(*files.values())
    text = files[end].read_text()
    assert old in text
    files[end].write_text(text.replace(old, new))
    with pytest.raises(TableError, match=message):
        read_trial(*files.values())


def test_damaged_opensim_files_raise_one_kind_of_error(person, tmp_path):
    rng, files = np.random.default_rng(5), small_trial(tmp_path, person)
    good = [file.read_bytes() for file in files]
    refused = 0
    for k in range(60):
        file, data = files[k % 2], bytearray(good[k % 2])
        place, size = int(rng.integers(len(data))), int(rng.integers(1, 200))
        data[place : place + size] = rng.bytes(size) if k % 4 < 2 else b""
        file.write_bytes(bytes(data))
        try:
            assert np.isfinite(read_trial(*files).wrench).all()
        except TableError:
            refused += 1
        file.write_bytes(good[k % 2])
    assert refused > 5


def test_forces_at_other_times_and_missing_files_are_refused(person, tmp_path):
    trc, mot = small_trial(tmp_path, person)
    lines = mot.read_text().splitlines()
    late = [
        f"{float(a) + 1e3:.3f}\t{b}"
        for a, b in (line.split("\t", 1) for line in lines[6:])
    ]
    mot.write_text("\n".join([*lines[:6], *late]))
    with pytest.raises(
        TableError, match=r"no markers NAME.x at times at which the plates' forces"
    ):
        read_trial(trc, mot)
    with pytest.raises(TableError, match="does not exist"):
        read_trial(trc, tmp_path / "none.mot")


def test_padded_cells_of_a_trc_are_read(tmp_path, person):
    trc, mot = small_trial(tmp_path, person)
    lines = trc.read_text().splitlines()
    sound = read_trial(trc, mot)
    lines[2] = lines[2].replace("\t", "\t\t ")
    trc.write_text("\n".join(lines) + "\n")
    np.testing.assert_array_equal(read_trial(trc, mot).markers, sound.markers)


@pytest.mark.parametrize(
    ("force", "point", "error", "words"),
    [
        (1.0, 1.0, None, ""),
        (1.0 / 4.4482216, 1.0, UnitError, "they are in lbf"),
        (1.0 / 9.80665, 1.0, UnitError, "they are in kgf"),
        (1.0, 1000.0, UnitError, "are in mm. Expected m"),
        (1.0, 0.0, PostureError, "points of application and torques are all 0"),
        (0.001, 1.0, UnitError, "they are in kN"),
        (0.0, 1.0, PostureError, "expected the person to stand on them"),
    ],
)
def test_plates_that_do_not_fit_the_person_are_refused(force, point, error, words):
    """Of a person of 70 kg who stands at x = 0.6, y = 0.3 m."""
    vertical = force * 70.0 * 9.80665
    wrench = np.array(
        [0.0, 0.0, vertical, 0.3 * point * vertical, -0.6 * point * vertical, 0.0]
    )
    markers = np.array([[0.6, 0.3, 1.0], [0.65, 0.25, 0.2]])
    frames = np.ones((50, 1))
    trial = MarkerTrial(100.0, ("a", "b"), markers * frames[:, None], wrench * frames)
    if error is None:
        check_plates(trial, 70.0)
        return
    with pytest.raises(error, match=words):
        check_plates(trial, 70.0)


def test_each_trial_has_its_plates(capsys):
    words = ["--height", "1.75", "--mass", "68", "--sex", "f", "--output", "x.urdf"]
    words += ["--markers", "m.yaml", "--trial", "a.trc", "b.trc", "--plates", "a.mot"]
    with pytest.raises(SystemExit):
        main(words)
    assert "--plates: give one file for each trial" in capsys.readouterr().err
