"""A person as a robot: a URDF by height, mass and sex; postures from markers and force plates.

Segments: P. de Leva, Adjustments to Zatsiorsky-Seluyanov's segment inertia parameters, J.
Biomechanics 29 (1996), Table 4; the assumptions are in data/README.md of robot_descriptions.
"""

import importlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from com_bags import Table, TableError, UnitError, read_table
from com_bags.tables import LENGTHS
from com_bags.unit_checks import PLATES
from com_identification.exceptions import PostureError
from com_identification.regression.postures import (
    Posture,
    make_posture,
    wrench_transform,
)
from com_identification.regression.statics import Statics
from com_identification.settings import IdentificationSettings, SensorPriors
from com_model import Foot, RobotModel
from com_model.arrays import Array, FrozenArrays
from com_model.contact import SUPPORT_LOAD
from com_model.dynamics import GRAVITY
from com_model.exceptions import ConfigError, listing, pip_install
from com_model.geometry.rotations import skew
from com_model.strict_yaml import Section

SEXES = ("f", "m")
ROOT = "lower_trunk"
# N and N m of a reading
_PLATES = (2.0, 1.0)
_SCALED = re.compile(r'(origin xyz|mass value|i[xyz]{2})="([^"]*)"')


def human_urdf(height: float, mass: float, sex: str) -> str:
    """Returns the URDF of a standing person: x forward, y left, z up, the root between the hips.

    Args:
        height: m, of the person.
        mass: kg.
        sex: "f" or "m": whose table.

    Raises:
        ConfigError: a value is not a person's.
    """
    if sex not in SEXES or not (0.5 <= height <= 2.6 and 5.0 <= mass <= 400.0):
        raise ConfigError(
            f"expected 0.5 to 2.6 m, 5 to 400 kg and sex f or m; got {height}, {mass}, {sex}",
            "com_human",
        )
    units = {"origin xyz": height, "mass value": mass}

    def scaled(match: re.Match[str]) -> str:
        unit = units.get(match[1], mass * height**2)  # that of an inertia
        return f'{match[1]}="{" ".join(f"{unit * float(x):.9g}" for x in match[2].split())}"'

    file = Path(__file__).with_name(f"person_{sex}.urdf")
    return _SCALED.sub(scaled, file.read_text(encoding="utf-8"))


def plate_foot() -> Foot:
    """Returns the plates' wrench as a force sensor of the root, for the `feet` of identify()."""
    return Foot(ROOT, wrench_frame=ROOT)


def human_settings(
    model: RobotModel, registration: float = 0.002
) -> IdentificationSettings:
    """Returns settings for a person, whose masses differ from the table by 10 %, CoMs by 20 mm.

    An error in a segment's frame that is the same in all postures, such as that of a marker's
    place, is part of that segment's centre of mass, not an error of its own. The noise of a
    posture's readings is that of human_posture().

    Args:
        model: the person's.
        registration: m, standard deviation of the constant error of the root's position in the
            plates' axes, along each axis.
    """
    heavy = [
        name
        for name, mass in zip(model.link_names, model.link_masses, strict=True)
        if mass
    ]
    # of the table: 10 % of a mass, 20 mm of a CoM, 1/sqrt(3) of that along each axis
    sections = {
        "noise": dict.fromkeys(("force", "moment", "position", "tilt"), 0.0),
        "sensors": asdict(SensorPriors.calibrated(sensor_position=registration)),
        "prior": {"mass_std_fraction": 0.1, "bounded": False},
        "links": {name: {"com_std": 0.02 / 3**0.5} for name in heavy},
        "fit": {"use_imu": True},
    }
    return IdentificationSettings.from_dict(sections)


def human_posture(
    model: RobotModel,
    q: Array,
    R: Array,
    p: Array,
    wrench: Array,
    plates: tuple[float, float],
    errors: Array | None = None,
) -> Posture:
    """Makes a posture of a person on force plates.

    About the root, whose pose has the errors dp and phi (R exp(phi)), the plates' wrench (F, M)
    is

      F_r = R^T F,   M_r = R^T (M - p x F),   dM_r = -(R^T dp + phi x CoM) x F_r

    so the noise of a horizontal force, known to be 0, is that of the moment over the root's
    height.

    Args:
        model: of human_urdf().
        q: (n,) rad.
        R: (3, 3) R_plates_root, plates' z up.
        p: (3,) m, position of the root in the plates' axes.
        wrench: (6,) N and N m, of the plates on the person about their common origin.
        plates: N and N m, its standard deviations.
        errors: (n + 6, k) of q, phi and p; see MarkerFit.errors. None: none.
    """
    n, turn = model.n_joints, wrench_transform(R.T, -R.T @ p)
    read, statics = turn @ wrench, Statics(model)
    errors = np.zeros((n + 6, 0)) if errors is None else errors
    com = statics.com(statics.poses(q[None]), statics.parameters)[0]
    arm = R.T @ errors[n + 3 :] - skew(com) @ errors[n : n + 3]
    noise = np.zeros((6 + n, 6 + errors.shape[1]))
    noise[:6, :6] = turn * np.repeat(plates, 3)
    noise[3:6, 6:], noise[6:, 6:] = skew(read[:3]) @ arm, errors[:n]
    return make_posture(
        model, q, read[None], up=R.T[:, 2] / np.linalg.norm(R[2]), noise=noise
    )


class MarkerFit:
    """Joint positions and the root's pose from markers, by least squares.

      minimise  sum |p + R x_k(q) - y_k|^2 + (w q)^2

    Args:
        model: Of human_urdf().
        markers: (3,) m in the frame of a link, by the marker's name: (link, position).
        stiffness: m/rad, w: what no marker determines stays where the person stands upright.
    """

    def __init__(
        self,
        model: RobotModel,
        markers: Mapping[str, tuple[str, Array]],
        stiffness: float = 1e-3,
    ) -> None:
        self._n, self._statics, self._w = model.n_joints, Statics(model), stiffness
        self._links = [model.link_index(link) for link, _ in markers.values()]
        self._at = np.array([position for _, position in markers.values()])

    def place(self, Q: Array, R: Array, p: Array) -> Array:
        """Returns the positions of the M markers in N configurations, (N, M, 3) m.

        Args:
            Q: (N, n) rad or m.
            R: (N, 3, 3) orientation of the root.
            p: (N, 3) m, position of the root.
        """
        frames, origins = self._statics.link_frames(self._statics.poses(Q), self._links)
        points = origins + np.einsum("nmij,mj->nmi", frames, self._at)
        return np.asarray(np.einsum("nij,nmj->nmi", R, points) + p[:, None])

    def _gaps(self, seen: Array, q: Array, R: Array, p: Array, X: Array) -> Array:
        """What is minimised, (N, 3 M + n), at the steps X (N, n + 6) of q, root axes and p."""
        n, visible = self._n, np.isfinite(seen).all(axis=1)
        turn = R @ Rotation.from_rotvec(X[:, n : n + 3]).as_matrix()
        gap = (self.place(q + X[:, :n], turn, p + X[:, n + 3 :]) - seen)[:, visible]
        return np.hstack((gap.reshape(len(X), -1), self._w * (q + X[:, :n])))

    def _slope(self, seen: Array, q: Array, R: Array, p: Array, x: Array) -> Array:
        here, steps = self._gaps(seen, q, R, p, x[None]), x + 1e-6 * np.eye(len(x))
        return np.asarray(1e6 * (self._gaps(seen, q, R, p, steps) - here).T)

    def solve(
        self, seen: Array, start: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Fits joint positions and the root's pose to the markers of one frame.

        Args:
            seen: (M, 3) m, in the order of the markers; NaN where hidden.
            start: (n,) rad or m; None: 0.

        Returns:
            q (n,) rad or m, R (3, 3) and p (3,) m of the root.
        """
        n, visible = self._n, np.isfinite(seen).all(axis=1)
        q = np.zeros(n) if start is None else start
        placed = self.place(q[None], np.eye(3)[None], np.zeros((1, 3)))[0][visible]
        there, own = seen[visible].mean(axis=0), placed.mean(axis=0)
        turn, _ = Rotation.align_vectors(seen[visible] - there, placed - own)
        first = seen, q, turn.as_matrix(), there - turn.apply(own)
        # x_scale: SciPy 1.16 changed its default.
        scaled = {"method": "lm", "x_scale": "jac", "xtol": 1e-6}
        gaps, slope = partial(self._gaps, *first), partial(self._slope, *first)
        x = least_squares(
            lambda x: gaps(x[None])[0], np.zeros(n + 6), slope, **scaled
        ).x
        R = (turn * Rotation.from_rotvec(x[n : n + 3])).as_matrix()
        return q + x[:n], R, first[3] + x[n + 3 :]

    def errors(self, seen: Array, q: Array, R: Array, p: Array, std: float) -> Array:
        """Returns the errors of solve()'s result that errors of the markers cause.

        Args:
            seen: (M, 3) m, NaN where hidden.
            q: (n,) rad or m, by solve().
            R: (3, 3) orientation of the root, by solve().
            p: (3,) m, position of the root, by solve().
            std: m, standard deviation of a marker along each axis.

        Returns:
            (n + 6, n + 6) of q, of the root's attitude (R exp(phi), rad) and of p (m): their
            covariance is this times its transpose, std^2 (J^T J)^-1 with the Jacobian J of the
            residuals.
        """
        J = self._slope(seen, q, R, p, np.zeros(self._n + 6))
        return np.asarray(std * np.linalg.inv(np.linalg.qr(J, mode="r")))


@dataclass(frozen=True, eq=False)
class MarkerTrial(FrozenArrays):
    """N frames of a motion capture with force plates; laboratory axes, z up.

    Attributes:
        rate: Hz.
        names: of the M markers.
        markers: (N, M, 3) m, NaN where hidden.
        wrench: (N, 6) N and N m, of all plates on the person, about the origin.
    """

    rate: float
    names: tuple[str, ...]
    markers: Array
    wrench: Array


def read_c3d(path: str | Path) -> MarkerTrial:
    """Reads markers and force plates of a C3D file, with the plates' corners and calibrations.

    Args:
        path: of the file.

    Raises:
        TableError: it cannot be read, z is not up, or ezc3d is not installed; says how to fix
            it.
    """
    file = str(path)
    most = 2**29  # bytes
    try:
        if Path(path).stat().st_size > most:
            raise TableError(f"is larger than {most >> 20} MiB", file)
        content = importlib.import_module("ezc3d").c3d(
            file, extract_forceplat_data=True
        )
        point = content["parameters"]["POINT"]
        rate = float(point["RATE"]["value"][0])
        meter = LENGTHS[point["UNITS"]["value"][0].strip().lower()]
        markers = meter * content["data"]["points"][:3].transpose(2, 1, 0)
        labels = point["LABELS"]["value"][: markers.shape[1]]
        names = tuple(
            label.strip().rpartition(":")[2] for label in labels
        )  # SUBJECT:NAME
        count, total = len(markers), np.zeros((len(markers), 6))
        for plate in content["data"]["platform"]:
            force, center = plate["force"].T, meter * plate["corners"].mean(axis=1)
            unit = 1e-3 if plate["unit_moment"].endswith("mm") else 1.0
            wrench = np.hstack(
                (force, unit * plate["moment"].T + np.cross(center, force))
            )
            each = len(wrench) // count
            total += wrench[: count * each].reshape(count, each, 6).mean(axis=1)
    except TableError:
        raise
    except ImportError as error:
        raise TableError(f"needs ezc3d: {pip_install('ezc3d')}", file) from error
    except Exception as error:  # whatever a library makes of a damaged file
        raise TableError(
            f"cannot be read: {type(error).__name__}: {error}", file
        ) from error
    return _upright(MarkerTrial(rate, names, markers, total), file)


def _upright(trial: MarkerTrial, file: str) -> MarkerTrial:
    """The same with the force of the plates on the person; TableError where z is not up."""
    mean = trial.wrench[:, :3].mean(axis=0)
    if not abs(mean[2]) > 0.9 * np.linalg.norm(mean) > 0.0:
        raise TableError(
            f"the plates' mean force is {mean.round(1)} N: expected z to be up", file
        )
    return replace(trial, wrench=trial.wrench * np.sign(mean[2]))


def read_trial(path: str | Path, plates: str | Path | None = None) -> MarkerTrial:
    """Reads a motion capture with force plates from a C3D file, or from tables.

    A table of markers has NAME.x, .y, .z in m (OpenSim's trc). Of each plate a table of `plates`,
    by default the same one, has ground_force_vx (N), ground_force_px (m) and ground_torque_x (N
    m), and the same for y and z, as OpenSim's mot; further words in the names distinguish plates.
    Both have `time` in s and the same axes, z up, or y up.

    Args:
        path: of a C3D file, or of a table of markers.
        plates: table of the force plates; None: the same file.

    Raises:
        TableError: as read_c3d.
    """
    if Path(path).suffix.lower() == ".c3d":
        return read_c3d(path)
    table, forces = read_table(path), read_table(path if plates is None else plates)
    heads = tuple(name[:-2] for name in table.columns if name.endswith(".x"))
    names = tuple(head.rpartition(":")[2] for head in heads)  # SUBJECT:NAME
    at, known = _times(table), _times(forces)
    markers = np.array([_three(table, f"{head}.*") for head in heads]).reshape(
        -1, len(at), 3
    )
    total = np.zeros((len(known), 6))
    for head, tail in re.findall(
        r"^(.*)force(.*)_vx$", "\n".join(forces.columns), re.MULTILINE
    ):
        force, point = (
            np.nan_to_num(_three(forces, f"{head}force{tail}_{c}*")) for c in "vp"
        )
        torque = np.nan_to_num(_three(forces, f"{head}torque{tail}_*"))
        total += np.hstack((force, torque + np.cross(point, force)))
    inside = (at >= known[0]) & (at <= known[-1])
    if not (inside.sum() > 1 and names):
        raise TableError(
            "has no markers NAME.x at times at which the plates' forces are known",
            table.source,
        )
    rate = float(1.0 / np.median(np.diff(at)))
    wrench = np.column_stack([np.interp(at, known, column) for column in total.T])
    mean = np.abs(wrench[inside, :3].mean(axis=0))
    turn = (
        np.eye(3)
        if mean[2] > mean[1]
        else np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]])
    )
    wrench = (wrench.reshape(-1, 2, 3) @ turn.T).reshape(-1, 6)
    seen = markers.transpose(1, 0, 2)[inside] @ turn.T
    return _upright(MarkerTrial(rate, names, seen, wrench[inside]), forces.source)


def check_plates(trial: MarkerTrial, mass: float) -> None:
    """Checks that the plates carry the person, below the markers.

    Args:
        trial: Of the person, who stands on the plates.
        mass: kg, of the person.

    Raises:
        UnitError: The forces are in another unit than N, or the points than m; names it.
        PostureError: Nobody stands on the plates, or they have other axes than the markers.
    """
    vertical = trial.wrench[:, 2]
    on = vertical >= 0.5 * np.quantile(vertical, 0.9)  # it may step onto them first
    ratio = float(vertical[on].mean()) / (mass * GRAVITY)
    if error := PLATES.problem(np.array([ratio]), ["the person"], mass):
        raise error
    if ratio < SUPPORT_LOAD:
        raise PostureError(
            f"the force plates carry {ratio:.2g} times the weight ({mass:.1f} kg): expected the "
            "person to stand on them; give the plates of this trial (--plates), in N"
        )
    if not trial.wrench[on][:, 3:].any():
        raise PostureError(
            "the force plates' points of application and torques are all 0: export them, too"
        )
    x, y, z = (float(v) for v in np.median(trial.wrench[on][:, [4, 3, 2]], axis=0))
    center = np.array([-x, y]) / z
    person = np.nanmedian(trial.markers[on][..., :2], axis=(0, 1))
    for unit, meter in sorted(LENGTHS.items(), key=lambda item: -item[1]):
        # m, from the centre of pressure to the middle of the markers at most
        if np.linalg.norm(meter * center - person) > 0.5:
            continue
        if meter == 1.0:
            return
        raise UnitError(
            f"by the force plates the person stands {np.linalg.norm(center - person):.3g} m from "
            f"the markers: the points or the torques are in {unit}. Expected m and N m",
            unit,
        )
    raise PostureError(
        f"by the force plates the person stands {np.linalg.norm(center - person):.3g} m from the "
        "markers: expected both in the same axes, with the same origin"
    )


def _times(table: Table) -> Array:
    """(N,) s, rising."""
    column = next(
        (c for name, c in table.columns.items() if name.lower() == "time"), None
    )
    if column is None or len(column) < 2 or not (np.diff(column) > 0.0).all():
        raise TableError("expected a column `time` in s that rises", table.source)
    return column


def _three(table: Table, pattern: str) -> Array:
    """Columns (N, 3), x, y and z in place of the pattern's *."""
    names = [pattern.replace("*", axis) for axis in "xyz"]
    if lost := [name for name in names if name not in table.columns]:
        raise TableError(f"has no column of numbers {listing(lost)}", table.source)
    return np.column_stack([table.columns[name] for name in names])


def read_markers(section: Section) -> dict[str, tuple[str, Array]]:
    """Reads the places of markers: NAME: {link: thigh, at: [x, y, z]} in m, in the link's frame.

    Args:
        section: of a YAML file.

    Returns:
        Link and place (3,) m by the marker's name.
    """
    found = {}
    for name in section.entries():
        own = section.section(name)
        found[name] = own.text("link", ""), np.array(own.vector("at", (0.0, 0.0, 0.0)))
        own.finish()
    return found


def marker_fit(
    model: RobotModel, trial: MarkerTrial, markers: Mapping[str, tuple[str, Array]]
) -> tuple[MarkerFit, list[int]]:
    """Prepares the fit to those markers that a trial has, and their places in it.

    Args:
        model: The person's.
        trial: With the markers.
        markers: By name, the link and the place (3,) m in its frame.

    Raises:
        TableError: It has fewer than three.
    """
    own = {name: where for name, where in markers.items() if name in trial.names}
    if len(own) < 3:
        raise TableError(
            f"has none of the markers {listing(markers, 5)}; it has {listing(trial.names, 10)}",
            "the trial",
        )
    return MarkerFit(model, own), [trial.names.index(name) for name in own]


def trial_postures(
    model: RobotModel,
    trial: MarkerTrial,
    markers: Mapping[str, tuple[str, Array]],
    std: float,
) -> tuple[list[Posture], dict[str, float]]:
    """Makes postures of the windows in which the person hardly moves.

    Args:
        model: the person's.
        trial: with markers and force plates.
        markers: by name, the link and the place (3,) m in its frame.
        std: m, standard deviation of the mean of a marker in a window, along each axis.

    Returns:
        The postures, and seconds of the trial by what became of them: used, moved or redundant.

    Raises:
        TableError: the trial has fewer than three of the markers.
    """
    fit, columns = marker_fit(model, trial, markers)
    length = 0.5  # s
    size = max(2, round(length * trial.rate))
    seconds = {"used": 0.0, "moved": 0.0, "redundant": 0.0}
    postures, q = list[Posture](), np.zeros(model.n_joints)
    for start in range(0, len(trial.markers) - size + 1, size):
        seen = trial.markers[start : start + size, columns]
        wrench = trial.wrench[start : start + size]
        visible = np.isfinite(seen).all(axis=(0, 2))
        travel = np.ptp(seen[:, visible], axis=0).max(initial=0.0)
        # still: a marker moves by less than 15 mm, the force varies by less than 5 %
        if (
            travel > 0.015
            or visible.sum() < 3
            or np.ptp(wrench[:, 2]) > 0.05 * wrench[0, 2]
        ):
            seconds["moved"] += length
            continue
        mean = seen.mean(axis=0)
        q, R, p = fit.solve(mean, q)
        # postures of which no joint differs by 0.03 rad are redundant
        if (
            any(np.abs(q - each.q).max() < 0.03 for each in postures)
            or len(postures) >= 200
        ):
            seconds["redundant"] += length
            continue
        seconds["used"] += length
        errors, force = fit.errors(mean, q, R, p, std), wrench.mean(axis=0)
        # m, centre of pressure less CoM of a person who stands still
        plates = (
            _PLATES[0] / size**0.5,
            float(np.hypot(_PLATES[1] / size**0.5, 0.002 * force[2])),
        )
        postures.append(human_posture(model, q, R, p, force, plates, errors))
    return postures, seconds
