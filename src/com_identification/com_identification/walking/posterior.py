"""What is known of a robot after a walk, in a file; robots drawn from it, for simulators."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from com_identification.exceptions import IdentificationError
from com_identification.walking.identify import WalkResult
from com_identification.walking.inertia import PARAMETERS, corrected_urdf, split, to_theta
from com_model import RobotModel
from com_model.arrays import Array

FORMAT = 1
_NUISANCES = {"armature": "armature", "coulomb": "frictionloss", "viscous": "damping"}
"""The first of unknowns.KINDS, and their names in MJCF."""


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is known of a robot after a walk: a normal distribution, in a file (npz).

    mean and covariance are of (log-Cholesky parameters of the K bodies (10 K), armature (n)
    kg m^2, Coulomb friction (n) N m, viscous friction (n) N m s/rad).
    """

    names: Array  # (K,) first link of each body with mass
    joints: Array  # (n,) names
    mean: Array
    covariance: Array

    @classmethod
    def of(cls, result: WalkResult) -> "Posterior":
        """That of a result."""
        bodies, joints = result.unknowns.bodies, np.array(result.model.joint_names)
        count = PARAMETERS * int(bodies.sum()) + len(_NUISANCES) * len(joints)
        names = np.array(result.model.bodies.names)[bodies]
        return cls(names, joints, result.z[:count], result.covariance[:count, :count])

    def to_bytes(self) -> bytes:
        """The file."""
        return _npz({"format": np.array(FORMAT), **vars(self)})

    @classmethod
    def from_file(cls, path: str | Path) -> "Posterior":
        """Reads the file.

        Raises:
            IdentificationError: It is none.
        """
        try:
            with np.load(path) as data:
                if int(data["format"]) != FORMAT:
                    raise ValueError(f"format {data['format']}, expected {FORMAT}")
                return cls(*(data[key] for key in ("names", "joints", "mean", "covariance")))
        except (OSError, ValueError, KeyError) as error:
            raise IdentificationError(
                f"{path} is no posterior of identify: {error}. Give its posterior.npz"
            ) from error

    def draw(self, count: int, seed: int) -> "Draws":
        """Draws robots, every one of which can exist."""
        values, axes = np.linalg.eigh(self.covariance)
        normal = np.random.default_rng(seed).standard_normal((count, len(values)))
        change = (normal * np.sqrt(np.maximum(values, 0.0))) @ axes.T
        z, inertial = self.mean + change, PARAMETERS * len(self.names)
        eta = z[:, :inertial].reshape(count, -1, PARAMETERS)
        # masses are e^(2a): their sum, which is known well, is to vary as its linear part does
        mass = np.exp(2.0 * self.mean[:inertial:PARAMETERS])
        total = mass.sum() + change[:, :inertial:PARAMETERS] @ (2.0 * mass)
        eta[:, :, 0] += 0.5 * np.log(total / np.exp(2.0 * eta[:, :, 0]).sum(axis=1))[:, None]
        joints = np.maximum(z[:, inertial:].reshape(count, len(_NUISANCES), -1), 0.0)
        return Draws(self, eta, joints)


@dataclass(frozen=True, eq=False)
class Draws:
    """S robots drawn from a posterior."""

    posterior: Posterior
    eta: Array  # (S, K, 10) log-Cholesky parameters
    joints: Array  # (S, 3, n) armature, Coulomb and viscous friction

    def table_file(self, suffix: str) -> bytes:
        """Arrays by name as .npz or .json.

        mass (S, K), com (S, K, 3), inertia about it (S, K, 3, 3); the joints' (S, n).
        """
        parts = [[split(theta) for theta in to_theta(eta)] for eta in self.eta]
        table = {"bodies": self.posterior.names, "joints": self.posterior.joints}
        for i, name in enumerate(("mass", "com", "inertia")):
            table[name] = np.array([[part[i] for part in robot] for robot in parts])
        table |= {name: self.joints[:, i] for i, name in enumerate(_NUISANCES)}
        if suffix == ".json":
            return json.dumps({key: value.tolist() for key, value in table.items()}).encode()
        return _npz(table)

    def urdf(self, model: RobotModel, s: int) -> str:
        """Robot s as a URDF."""
        self._check(np.array(model.bodies.names)[model.bodies.mass > 0.0], "URDF")
        return corrected_urdf(model, self.eta[s])

    def mjcf(self, xml: str, s: int) -> str:
        """Robot s as an MJCF whose bodies and joints have the URDF's names.

        Raises:
            IdentificationError: It has not all bodies.
        """
        root = ElementTree.fromstring(xml)  # noqa: S314 (the user's own file)
        bodies = {body.get("name", ""): body for body in root.iter("body")}
        self._check([name for name in self.posterior.names if name in bodies], "MJCF")
        for name, theta in zip(self.posterior.names, to_theta(self.eta[s]), strict=True):
            mass, com, inertia = split(theta)
            for old in bodies[name].findall("inertial"):
                bodies[name].remove(old)
            full = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
            numbers = {"pos": com, "mass": np.array([mass]), "fullinertia": full}
            text = {key: " ".join(f"{v:.12g}" for v in value) for key, value in numbers.items()}
            bodies[name].insert(0, ElementTree.Element("inertial", text))
        for joint in root.iter("joint"):
            for j in np.flatnonzero(self.posterior.joints == joint.get("name", "")):
                for key, value in zip(_NUISANCES.values(), self.joints[s, :, j], strict=True):
                    joint.set(key, f"{value:.12g}")
        return ElementTree.tostring(root, encoding="unicode")

    def _check(self, names: Sequence[str] | Array, what: str) -> None:
        if list(names) != list(self.posterior.names):
            raise IdentificationError(
                f"the {what} has the bodies {', '.join(names)}: expected those of the posterior, "
                f"{', '.join(self.posterior.names)}"
            )


def _npz(arrays: dict[str, Array]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()
