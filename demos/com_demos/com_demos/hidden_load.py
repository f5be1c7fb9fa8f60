"""Robots that are not as their URDFs say, and what an identification found of them.

A load on the back is as heavy, and hangs as far behind, as makes the error matter: while the robot
believes its CoM to be at the margin of its soles, the true CoM is beyond their edge. A battery is
mounted elsewhere in the trunk than the URDF has it, which a scale does not show.
"""

from dataclasses import dataclass

import numpy as np

from com_model import RobotConfig, RobotModel, Sesc, link_poses
from com_model.arrays import Array
from com_model.urdf.editing import Inertial, edit_inertials
from com_simulation.physics.true_errors import TrueErrors, loaded, with_true_errors

MASS_FRACTION = 0.14
"""Mass of the load over that of the robot: 1 kg for HOAP-2's 7 kg, a battery or a backpack."""

MARGIN_FRACTION = 0.2
"""Margin that the balancing robot keeps, over the distance of its CoM to the heels' edge."""

SHIFT_FRACTION = 0.36
"""Shift of the true CoM over the same distance.

The robot leans until REACHED (0.9) of the way to the margin, so the true CoM is beyond the edge
from 0.28 on; below 0.5 the robot still stands well in its nominal posture.
"""


@dataclass(frozen=True, eq=False)
class HiddenLoad:
    """A point mass that a robot carries and its URDF does not have.

    Attributes:
        link: name of the link that carries it.
        mass: kg.
        position: (3,) m, in the frame of that link.
        shift: (3,) m, of the robot's CoM by it, in the root link's frame, nominal posture.
        margin: m, that a balancing robot should keep to the edge of its soles.
        reach: m, from the believed CoM to the heels' edge, nominal posture.
    """

    link: str
    mass: float
    position: Array
    shift: Array
    margin: float
    reach: float


BATTERY_FRACTION = 0.07
"""Mass of the battery over that of the robot: 0.5 kg for HOAP-2."""

BATTERY_SHIFT = 0.1
"""Shift of the robot's CoM by it, over the distance of its CoM to the heels' edge."""


def flat_feet(config: RobotConfig) -> bool:
    """Whether a robot has two feet with soles, on which it can balance."""
    return len(config.feet) == 2 and all(len(foot.corners) > 2 for foot in config.feet)


def forward_and_up(
    model: RobotModel, config: RobotConfig, q: Array
) -> tuple[Array, Array]:
    """Return the directions (3,) forwards and up by the soles at q (n,), root link's frame."""
    R, _ = link_poses(model, q)
    soles = R[[model.link_index(foot.frame) for foot in config.feet]]
    forward, up = soles[:, :, 0].sum(axis=0), soles[:, :, 2].sum(axis=0)
    return forward / np.linalg.norm(forward), up / np.linalg.norm(up)


def hide_load(model: RobotModel, config: RobotConfig) -> tuple[RobotModel, HiddenLoad]:
    """Hang a load on the heaviest link that is no part of a leg; return the true robot and it.

    Args:
        model: the robot as its URDF has it, with the sole frames of config attached.
        config: with two feet that have soles (flat_feet).
    """
    q = config.nominal_posture(model)
    R, p = link_poses(model, q)
    forward, _ = forward_and_up(model, config, q)
    com = Sesc(model).com(q)
    reach = _reach(model, config, q)
    mass = round(MASS_FRACTION * model.mass, 1 if model.mass > 5 else 2)
    shift = -SHIFT_FRACTION * reach * forward
    trunk = _trunk(model, config, q)
    k = model.link_index(trunk)
    height = R[k] @ model.link_coms[k] + p[k]
    place = (
        height
        + (com - height).dot(forward) * forward
        + shift * (model.mass + mass) / mass
    )
    position = np.round(R[k].T @ (place - p[k]), 4)
    bare = Inertial(model.link_masses[k], model.link_coms[k], model.link_inertias[k])
    xml = edit_inertials(model.xml, {trunk: loaded(bare, mass, position)})
    true = RobotModel.from_urdf(xml, model.frames)
    moved = np.asarray(Sesc(true).com(q) - com)
    return true, HiddenLoad(
        trunk, mass, position, moved, MARGIN_FRACTION * reach, reach
    )


def displace_battery(
    model: RobotModel, config: RobotConfig, com_error: float, seed: int
) -> tuple[RobotModel, str]:
    """Mount a battery elsewhere in the trunk, and links' CoMs off; return the true robot, and what.

    Args:
        model: the robot as its URDF has it, with the sole frames of config attached.
        config: with feet.
        com_error: m, standard deviation of each link's CoM from the URDF's along each axis.
        seed: of these errors.
    """
    q = config.nominal_posture(model)
    forward, up = forward_and_up(model, config, q)
    trunk = _trunk(model, config, q)
    k = model.link_index(trunk)
    mass = BATTERY_FRACTION * model.mass
    way = BATTERY_SHIFT * _reach(model, config, q) / BATTERY_FRACTION
    # Backwards, to the right and down: no axis is spared.
    shift = way * (
        np.array([-0.8, -0.5, -0.3]) @ np.array([forward, np.cross(up, forward), up])
    )
    drawn = with_true_errors(model, TrueErrors(com=com_error, seed=seed))
    moved = link_poses(model, q)[0][k].T @ shift
    com = drawn.link_coms[k] + mass / model.link_masses[k] * moved
    battery = Inertial(model.link_masses[k], np.round(com, 7), drawn.link_inertias[k])
    true = RobotModel.from_urdf(
        edit_inertials(drawn.xml, {trunk: battery}), model.frames
    )
    text = (
        f"a battery of {mass:.2g} kg is mounted {100 * way:.0f} cm from where the URDF has it "
        f"({trunk}), and each link's CoM is about {1000 * com_error:g} mm off"
    )
    return true, text


def _reach(model: RobotModel, config: RobotConfig, q: Array) -> float:
    """Return the distance of the CoM to the edge of the heels, m."""
    R, p = link_poses(model, q)
    forward, _ = forward_and_up(model, config, q)
    corners = [
        R[i] @ np.append(corner, 0.0)[:3] + p[i]
        for foot in config.feet
        for i in [model.link_index(foot.frame)]
        for corner in np.asarray(foot.corners)
    ]
    return float((Sesc(model).com(q) - np.array(corners)).dot(forward).max())


def _trunk(model: RobotModel, config: RobotConfig, q: Array) -> str:
    """Return the heaviest link that moving the joints of the legs does not move."""
    still = np.ones(model.n_links, dtype=np.bool_)
    R, p = link_poses(model, q)
    soles = [model.link_index(foot.frame) for foot in config.feet]
    for j in range(model.n_joints):
        step = q.copy()
        step[j] += 0.1
        R_step, p_step = link_poses(model, step)
        change = np.abs(R_step - R).max(axis=(1, 2)) + np.abs(p_step - p).max(axis=1)
        moved = change > 1e-9
        if moved[soles].any():
            still &= ~moved
    return model.link_names[int(np.argmax(np.where(still, model.link_masses, -1.0)))]


@dataclass(frozen=True)
class FoundLoad:
    """What a corrected model has more than the one before it.

    Attributes:
        mass: kg.
        behind: m, from the CoM of the model before, nominal posture; NaN where mass is hardly any.
        left: m, to the left of it.
    """

    mass: float
    behind: float
    left: float

    def text(self) -> str:
        """Return it in words, with the place in cm."""
        side = "left" if self.left > 0.0 else "right"
        return (
            f"{self.mass:.2f} kg that the URDF does not have, {100 * self.behind:.0f} cm behind "
            f"its CoM and {100 * abs(self.left):.1f} cm to the {side}"
        )


def find_load(before: RobotModel, after: RobotModel, config: RobotConfig) -> FoundLoad:
    """Return the mass that makes one model the other: (m' c' - m c)/(m' - m), nominal posture."""
    q = config.nominal_posture(before)
    forward, up = forward_and_up(before, config, q)
    mass = after.mass - before.mass
    com = Sesc(before).com(q)
    moment = after.mass * (Sesc(after).com(q) - com)
    place = moment / mass if abs(mass) > 1e-3 * before.mass else np.full(3, np.nan)
    return FoundLoad(
        mass, -float(place @ forward), float(place @ np.cross(up, forward))
    )
