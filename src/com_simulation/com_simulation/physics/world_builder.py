"""Makes worlds: a robot in its nominal posture, on the ground or hanging above it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model import Foot, RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.geometry.rotations import minimal_rotation, rotation_from_rpy
from com_model.text import listing
from com_simulation.exceptions import WorldError
from com_simulation.physics import contacts, spec
from com_simulation.physics.servo import Servos, joint_loads, make_servos
from com_simulation.physics.true_errors import offset

BASES = ("auto", "floating", "fixed")
DEFAULT_STEP = 0.001  # s
# "auto" is stable with stiff servos on light joints at the default step; "euler" needs a step of
# about 0.0001 s for that. Newton holds between the readings of both to rounding.
INTEGRATORS = ("auto", "euler")


@dataclass(frozen=True, eq=False)
class World:
    """A robot on the ground, ready to be simulated.

    Attributes:
        robot: the model that it was made from.
        mj: the MuJoCo model; body b of the robot is number b + 1.
        floating: the root is free; else it is fixed to the world.
        posture: (n,) nominal joint positions, rad or m.
        qpos: (nq,) MuJoCo's positions at the start.
        joint_qpos: (n,) indices of the positions of the n independent joints in qpos.
        joint_dof: (n,) indices of their velocities in qvel.
        servos: the servos, in the order of the joints.
        load_friction: (n,) friction of the joints over the torque of their servos.
        feet: the feet, with their sensors.
        imu_link: the link whose frame the IMU measures in.
        normal: (3,) unit normal of the ground, world axes.
        notes: one line each on what was left out of the URDF or added to it.
    """

    robot: RobotModel
    mj: mujoco.MjModel
    floating: bool
    posture: Array
    qpos: Array
    joint_qpos: NDArray[np.int64]
    joint_dof: NDArray[np.int64]
    servos: Servos
    load_friction: Array
    feet: tuple[Foot, ...]
    imu_link: str
    normal: Array
    notes: tuple[str, ...]


def build_world(
    robot: RobotModel,
    config: RobotConfig | None = None,
    *,
    base: str = "auto",
    ground_slope: float = 0.0,
    step: float = DEFAULT_STEP,
    urdf_path: str | os.PathLike[str] | None = None,
    integrator: str = "auto",
    trunk_com_offset: ArrayLike = (0.0, 0.0, 0.0),
    joint_friction: ArrayLike = 0.0,
    viscous_friction: ArrayLike = 0.0,
    load_friction: ArrayLike = 0.0,
    contact: str = "stiff",
    sole_balls: float = 0.0,
    edit: Callable[[mujoco.MjSpec], None] | None = None,
) -> World:
    """Builds the MuJoCo model of a robot in its nominal posture.

    Args:
        robot: the robot.
        config: its feet, nominal posture, IMU and servos; None: neutral posture, no feet.
        base: "floating": stands on the ground, free to fall. "fixed": hangs above it. "auto":
            floating where the configuration has feet.
        ground_slope: rad, by which the ground rises forwards.
        step: s, of the physics.
        urdf_path: file of the URDF, to which names of meshes may be relative; None: they cannot
            be.
        integrator: "auto", or "euler" with a small step.
        trunk_com_offset: (3,) m, displacement of the simulated root body's CoM from the model's,
            in the root link's axes; its mass and its inertia about its CoM stay.
        joint_friction: N m or N, Coulomb friction of all joints or of each (n,), which neither
            the model nor the efforts that are read include.
        viscous_friction: N m s/rad or N s/m, likewise, over the speed.
        load_friction: 1, likewise, over the effort (com_model.actuators: mu).
        contact: "stiff", or "soft" as in the simulations of [CCGD].
        sole_balls: m, radius of balls that carry the feet at the corners of the configuration's
            soles instead of the URDF's shapes; 0: only feet without suitable shapes.
        edit: changes the specification, whose ground is the geom "ground": uneven ground.

    Returns:
        The world in its initial state.

    Raises:
        ConfigError: the configuration belongs to another robot.
        WorldError: an argument is not valid, or MuJoCo rejects the robot.
    """
    for what, given, valid in (
        ("base", base, BASES),
        ("integrator", integrator, INTEGRATORS),
        ("contact", contact, tuple(contacts.CONTACTS)),
    ):
        if given not in valid:
            raise WorldError(f"{what} is {given!r}: give one of {', '.join(valid)}")
    if config is not None:
        robot = config.attach(robot)
    floating = base == "floating" or (
        base == "auto" and config is not None and bool(config.feet)
    )
    if not (np.isfinite(sole_balls) and sole_balls >= 0.0):
        raise WorldError(f"sole_balls is {sole_balls}: give a radius in m, 0 for none")
    inertias = spec.body_inertias(robot)
    inertias.com[0] += offset(trunk_com_offset, "trunk_com_offset")
    ground = rotation_from_rpy((0.0, -ground_slope, 0.0))
    written = spec.robot_spec(robot, inertias, floating, ground, step, integrator)
    if edit is not None:
        edit(written)
    builder = _Builder(robot, config, floating, written, ground, sole_balls)
    builder.add_note("inertias enlarged to what a body can have", inertias.corrected)
    losses = {
        "joint_friction": joint_friction,
        "viscous_friction": viscous_friction,
        "load_friction": load_friction,
    }
    return builder.build(urdf_path, _frictions(robot, losses), contact)


def _frictions(robot: RobotModel, given: Mapping[str, ArrayLike]) -> Array:
    """Frictions (3, n) of joints; WorldError: neither one number nor one each, or less than 0."""
    rows = []
    for name, values in given.items():
        friction = np.array(values, dtype=float)
        if friction.shape not in ((), (robot.n_joints,)):
            raise WorldError(
                f"{name} has shape {friction.shape}: give one number, or {robot.n_joints}"
            )
        if not (np.isfinite(friction).all() and (friction >= 0.0).all()):
            raise WorldError(f"{name}: give finite numbers, 0 or more")
        rows.append(np.broadcast_to(friction, robot.n_joints))
    return np.array(rows)


@dataclass(eq=False)
class _Builder:
    """Measures a specification in the nominal posture, and completes it.

    Attributes:
        robot: the robot.
        config: of the robot; None: no feet.
        floating: the root is free.
        spec: completed by build().
        R_world_ground: (3, 3) orientation of the ground.
        sole_balls: m, see build_world.
    """

    robot: RobotModel
    config: RobotConfig | None
    floating: bool
    spec: mujoco.MjSpec
    R_world_ground: Array
    sole_balls: float

    def __post_init__(self) -> None:
        robot, config = self.robot, self.config
        self.posture = (
            robot.neutral.copy() if config is None else config.nominal_posture(robot)
        )
        self.feet = () if config is None else config.feet
        self.imu_link = (config.imu_link if config else None) or robot.root_link
        self.normal = self.R_world_ground[:, 2]
        self.notes: list[str] = []

    def build(
        self,
        urdf_path: str | os.PathLike[str] | None,
        frictions: Array,
        contact: str,
    ) -> World:
        """Adds shapes, sensors and servos, and compiles.

        Args:
            urdf_path: file of the URDF; see build_world.
            frictions: (3, n) Coulomb, viscous and load friction.
            contact: a name of contacts.CONTACTS.

        Returns:
            The world in its initial state.
        """
        self._add_shapes(urdf_path)
        wrench_frames = [foot.wrench_frame for foot in self.feet]
        spec.add_sensors(self.spec, self.robot, self.imu_link, wrench_frames)
        mj, data = self._place()
        if self.floating and self._add_bare_feet(mj, data):
            mj, data = self._place()
        if self.floating:
            self._spare_legs(mj, data)
        for first, second in sorted(
            {*contacts.touching_pairs(mj, data), *contacts.neighbours(self.robot)}
        ):
            self.spec.add_exclude(
                bodyname1=f"body{first - 1}", bodyname2=f"body{second - 1}"
            )
        servos = self._servos(mj, data)
        coulomb, viscous, load = frictions
        spec.add_servos(self.spec, self.robot, servos, coulomb, load)
        for geom in self.spec.geoms:  # all are as hard, the ground among them
            geom.solref, geom.solimp = contacts.CONTACTS[contact]
        mj = self._compile()
        bodies = [
            self.robot.bodies.joint_names.index(name) for name in self.robot.joint_names
        ]
        joints = mj.body_jntadr[np.array(bodies, dtype=np.int64) + 1]
        mj.dof_damping[mj.jnt_dofadr[joints]] += viscous
        return World(
            robot=self.robot,
            mj=mj,
            floating=self.floating,
            posture=self.posture,
            qpos=self._qpos(mj),
            joint_qpos=mj.jnt_qposadr[joints].astype(np.int64),
            joint_dof=mj.jnt_dofadr[joints].astype(np.int64),
            servos=servos,
            load_friction=load,
            feet=self.feet,
            imu_link=self.imu_link,
            normal=self.normal,
            notes=tuple(self.notes),
        )

    def _add_shapes(self, urdf_path: str | os.PathLike[str] | None) -> None:
        found, note = contacts.read_collision(self.robot, urdf_path)
        # Links above the root (a dropped world link) are no part of the robot.
        links = set(self.robot.link_names)
        shapes = [shape for shape in found if shape.link in links]
        for i, shape in enumerate(shapes):
            spec.add_shape(self.spec, self.robot, shape, f"shape{i}")
        if note:
            self.notes.append(note)
        if self.floating and not shapes and not self.feet:
            self.notes.append(
                "no collision shapes and no feet: the robot falls through the ground"
            )

    def _compile(self) -> mujoco.MjModel:
        try:
            return self.spec.compile()
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise WorldError(
                f"MuJoCo rejects robot {self.robot.name!r}: {reason}"
            ) from error

    def _place(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        """Moves the root to its pose; returns the model and its data in the nominal posture."""
        mj = self._compile()
        R = self.R_world_ground @ minimal_rotation(
            contacts.support_normal(self.robot, self.feet, self.posture),
            np.array([0.0, 0.0, 1.0]),
        )
        root = self.spec.body("body0")
        root.pos, root.quat = np.zeros(3), spec.quaternion_wxyz(R)
        height = contacts.hanging_height(self.robot, mj)
        if self.floating:
            mj, data = self._in_posture()
            height = -contacts.standing_height(mj, data, self.normal)
        root.pos = height * self.normal
        return self._in_posture()

    def _in_posture(self) -> tuple[mujoco.MjModel, mujoco.MjData]:
        mj = self._compile()
        data = mujoco.MjData(mj)
        data.qpos[:] = self._qpos(mj)
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        return mj, data

    def _qpos(self, mj: mujoco.MjModel) -> Array:
        qpos = mj.qpos0.copy()
        bodies = self.robot.bodies
        positions = np.append(self.posture, 0.0)[bodies.q_index[1:]]
        positions = positions * bodies.multiplier[1:] + bodies.offset[1:]
        qpos[mj.jnt_qposadr[mj.body_jntadr[2:]]] = positions
        return np.asarray(qpos)

    def _add_bare_feet(self, mj: mujoco.MjModel, data: mujoco.MjData) -> bool:
        robot, normal = self.robot, self.normal
        bare = [
            f
            for f in self.feet
            if self.sole_balls or contacts.is_bare(robot, mj, data, f, normal)
        ]
        radius = self.sole_balls or contacts.CORNER_RADIUS
        for foot in bare:
            for geom in self.spec.body(
                f"body{contacts.body_of_foot(robot, foot) - 1}"
            ).geoms:
                if self.sole_balls or geom.type == mujoco.mjtGeom.mjGEOM_MESH:
                    geom.conaffinity = spec.ROBOT_BIT  # the ground does not carry it
            for i, shape in enumerate(contacts.foot_shapes(foot, radius)):
                spec.add_shape(self.spec, self.robot, shape, f"{foot.frame}{i}")
        names = tuple(foot.frame for foot in bare)
        why = "" if self.sole_balls else ", for want of simple shapes"
        self.add_note(f"feet carried by balls at their soles{why}", names)
        return bool(bare)

    def _spare_legs(self, mj: mujoco.MjModel, data: mujoco.MjData) -> None:
        """Lets the ground carry no shape of a leg but its foot's.

        URDFs give shapes of a sole to the ankle's link, which would carry instead of the foot and
        past its sensor.
        """
        bodies = self.robot.bodies
        feet = {contacts.body_of_foot(self.robot, foot) for foot in self.feet}
        legs = {int(b) + 1 for foot in feet for b in bodies.path_to(foot - 1)} - feet
        low = [
            geom
            for geom in np.flatnonzero(np.isin(mj.geom_bodyid, list(legs)))
            if contacts.lowest_height(mj, data, self.normal, int(geom)) < 0.005  # m
        ]
        for geom in low:
            self.spec.geom(mj.geom(geom).name).conaffinity = spec.ROBOT_BIT
        names = tuple(bodies.names[mj.geom_bodyid[geom] - 1] for geom in low)
        self.add_note("shapes beside the soles, which the ground does not carry", names)

    def _servos(self, mj: mujoco.MjModel, data: mujoco.MjData) -> Servos:
        robot, bodies = self.robot, self.robot.bodies
        fraction = np.zeros(
            robot.n_joints
        )  # of the weight, on each joint, by even loads
        for foot in self.feet if self.floating else ():
            path = bodies.path_to(bodies.body_of_link[robot.link_index(foot.frame)])
            fraction[bodies.q_index[path]] = 1.0 / len(self.feet)
        loads = joint_loads(robot, mj, data, fraction)
        gains = self.config.servo.gains if self.config else lambda _: None
        servos = make_servos(robot, loads, mj.opt.timestep, gains)
        ignored = np.isinf(servos.effort) & np.isfinite(robot.effort_limits)
        names = tuple(robot.joint_names[i] for i in np.flatnonzero(ignored))
        self.add_note("effort limits that cannot carry the posture, ignored", names)
        return servos

    def add_note(self, what: str, names: tuple[str, ...]) -> None:
        """Adds a note on names, if there are any.

        Args:
            what: was done with them.
            names: of links or joints.
        """
        if names:
            self.notes.append(f"{what}: {listing(names)}")
