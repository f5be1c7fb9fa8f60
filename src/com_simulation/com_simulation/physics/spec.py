"""A robot as a MuJoCo specification: one MuJoCo body per moving body of a RobotModel.

The URDF's names are not used in MuJoCo (one of them could be "world"): body b of the model is
``body<b>``, its joint ``joint<b>``, the servo of independent joint i ``servo<i>``. Compiled,
body b has the number b + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from com_model import RobotModel
from com_model.arrays import Array
from com_model.bodies import PRISMATIC, steiner
from com_model.dynamics import GRAVITY
from com_model.shapes.urdf_shapes import BOX, CAPSULE, CYLINDER, HULL, SPHERE, Shape
from com_simulation.physics.servo import Servos


@dataclass(frozen=True, eq=False)
class BodyInertias:
    """Inertial parameters of the B moving bodies of a robot.

    Attributes:
        mass: (B,) kg.
        com: (B, 3) m, centre of mass in the body's frame.
        principal: (B, 3) kg m^2, principal moments about the centre of mass.
        axes: (B, 3, 3) rotation from principal to body axes.
        corrected: names of bodies with mass whose inertia is physically impossible: it was
            enlarged.
    """

    mass: Array
    com: Array
    principal: Array
    axes: Array
    corrected: tuple[str, ...]


def body_inertias(robot: RobotModel) -> BodyInertias:
    """Inertial parameters of a robot's moving bodies that MuJoCo accepts.

    Masses and centres of mass stay exactly the model's.

    Args:
        robot: the robot.
    """
    bodies = robot.bodies
    # MuJoCo needs some mass of a moving body; no figure shows this one.
    mass = np.maximum(bodies.mass, 1e-13)
    com = bodies.first_moment / mass[:, None]
    inertia = bodies.inertia - bodies.mass[:, None, None] * steiner(com)
    moments, axes = np.linalg.eigh(inertia)
    axes *= np.sign(np.linalg.det(axes))[:, None, None]
    principal = np.array([_physical(i, m) for i, m in zip(moments, mass, strict=True)])
    changed = (np.abs(principal - moments) > 1e-6 * moments[:, 2:]).any(axis=1)
    corrected = tuple(
        bodies.names[b] for b in np.flatnonzero(changed & (bodies.mass > 0))
    )
    return BodyInertias(mass, com, principal, axes, corrected)


def _physical(moments: Array, mass: float) -> Array:
    """Enlarges principal moments until a body of that mass can have them.

    0 < I_1 and I_3 <= I_1 + I_2.

    Args:
        moments: (3,) kg m^2, ascending.
        mass: kg.

    Returns:
        (3,) kg m^2.
    """
    # A mass without inertia gets a radius of gyration of 0.1 mm.
    moments = np.maximum(moments, max(mass * 1e-4**2, 1e-12))
    # relative, by which a corrected inertia keeps the triangle inequality
    lacking = moments[2] * (1 + 1e-9) - moments[0] - moments[1]
    if lacking > 0:
        moments[:2] += lacking / 2
    return moments


FRICTION = (1.0, 0.005, 0.0001)  # sliding; torsional and rolling in m
# name of the constraint that holds a lifted robot; not active at the start
HOIST = "hoist"

# MuJoCo's contact bits: (type of one) & (affinity of the other), either way round.
ROBOT_BIT, GROUND_BIT = 1, 2

# The discrete one (MuJoCo 4) solves servos and contacts together: stiff small joints are stable.
_KINDS = mujoco.mjtIntegrator
DISCRETE = _KINDS.mjINT_DISCRETE
_INTEGRATORS = {
    "auto": DISCRETE,
    "euler": _KINDS.mjINT_EULER,
}
_TYPES = {
    BOX: mujoco.mjtGeom.mjGEOM_BOX,
    SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
    CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
    HULL: mujoco.mjtGeom.mjGEOM_MESH,
}


def quaternion_wxyz(R: Array) -> Array:
    """Quaternion of a rotation in MuJoCo's order.

    Args:
        R: (3, 3).

    Returns:
        (4,) w, x, y, z.
    """
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, np.ascontiguousarray(R, dtype=float).ravel())
    return result


def robot_spec(
    robot: RobotModel,
    inertias: BodyInertias,
    floating: bool,
    R_world_ground: Array,
    step: float,
    integrator: str = "auto",
) -> mujoco.MjSpec:
    """Makes the specification of a robot above the ground, without collision shapes and servos.

    Args:
        robot: the robot.
        inertias: of its bodies, such that MuJoCo accepts them.
        floating: the root is free; else it is fixed to the world.
        R_world_ground: (3, 3) orientation of the ground's plane through the world's origin.
        step: s, of the physics.
        integrator: "auto" or "euler"; see build_world.

    Returns:
        The specification.
    """
    spec = mujoco.MjSpec()
    _set_options(spec, step, integrator)
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        quat=quaternion_wxyz(R_world_ground),
        contype=GROUND_BIT,
        conaffinity=0,
        friction=FRICTION,
    )
    added = [spec.worldbody]
    for b in range(robot.bodies.count):
        body = added[robot.bodies.parent[b] + 1].add_body(
            name=f"body{b}",
            pos=robot.bodies.d[b],
            quat=quaternion_wxyz(robot.bodies.R[b]),
            mass=inertias.mass[b],
            ipos=inertias.com[b],
            iquat=quaternion_wxyz(inertias.axes[b]),
            inertia=inertias.principal[b],
            explicitinertial=True,
        )
        added.append(body)
        if b > 0:
            _add_joint(robot, body, b)
        elif floating:
            body.add_joint(
                name="root",
                type=mujoco.mjtJoint.mjJNT_FREE,
                align=mujoco.mjtAlignFree.mjALIGNFREE_FALSE,
            )
    _add_mimics(spec, robot, step)
    if floating:
        weld = spec.add_equality(
            name=HOIST,
            type=mujoco.mjtEq.mjEQ_WELD,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            name1="world",
            name2="body0",
            active=False,
        )
        # Anchor, position, quaternion w, x, y, z, and the weight of rotations, m.
        weld.data[:11] = [*np.zeros(6), 1.0, 0.0, 0.0, 0.0, 1.0]
    return spec


def _set_options(spec: mujoco.MjSpec, step: float, integrator: str) -> None:
    spec.compiler.degree = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.option.timestep = step
    spec.option.gravity = [0.0, 0.0, -GRAVITY]
    spec.option.integrator = _INTEGRATORS[integrator]
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    # of friction over normal directions, against creeping feet
    spec.option.impratio = 10.0
    # a diverging simulation must be reported, not restarted silently. Euler's velocities
    # change by the acceleration and nothing else.
    bits = mujoco.mjtDisableBit
    spec.option.disableflags |= int(bits.mjDSBL_AUTORESET) | int(bits.mjDSBL_EULERDAMP)


def _add_joint(robot: RobotModel, body: mujoco.MjsBody, b: int) -> None:
    bodies = robot.bodies
    slides = bodies.joint_type[b] == PRISMATIC
    joint = body.add_joint(
        name=f"joint{b}",
        type=mujoco.mjtJoint.mjJNT_SLIDE if slides else mujoco.mjtJoint.mjJNT_HINGE,
        axis=bodies.axis[b],
        limited=mujoco.mjtLimited.mjLIMITED_FALSE,
    )
    i = bodies.q_index[b]
    if bodies.joint_names[b] != robot.joint_names[i]:
        # kg m^2 or kg, for mimic joints that carry nothing
        joint.armature = 1e-5
        return  # a mimic joint's master has the limits
    lower, upper = robot.lower[i], robot.upper[i]
    if not np.isfinite([lower, upper]).any():
        return
    joint.limited = mujoco.mjtLimited.mjLIMITED_TRUE
    unbounded = 1e6  # rad or m
    lower = max(lower, -unbounded)
    # MuJoCo refuses limits that leave nothing
    joint.range = [lower, max(min(upper, unbounded), lower + 1e-4)]


def _add_mimics(spec: mujoco.MjSpec, robot: RobotModel, step: float) -> None:
    """Holds each mimic joint at multiplier * master + offset by a stiff constraint."""
    bodies = robot.bodies
    for b in range(1, bodies.count):
        master = robot.joint_names[bodies.q_index[b]]
        if bodies.joint_names[b] == master:
            continue
        equality = spec.add_equality(
            type=mujoco.mjtEq.mjEQ_JOINT,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            name1=f"joint{b}",
            name2=f"joint{bodies.joint_names.index(master)}",
            solref=[2.0 * step, 1.0],
            solimp=(0.99, 0.999, 0.001, 0.5, 2.0),
        )
        equality.data[:2] = bodies.offset[b], bodies.multiplier[b]


def add_shape(spec: mujoco.MjSpec, robot: RobotModel, shape: Shape, name: str) -> None:
    """Adds a collision shape to the moving body of its link; a hull's mesh gets the same name.

    Args:
        spec: changed.
        robot: the robot.
        shape: in the frame of its link.
        name: of the new geom.
    """
    link = robot.link_index(shape.link)
    R, p = robot.bodies.R_body_link[link], robot.bodies.p_body_link[link]
    arguments = {
        "friction": FRICTION,
        "mass": 0.0,
        "contype": ROBOT_BIT,
        "conaffinity": ROBOT_BIT | GROUND_BIT,
    }
    if shape.kind == HULL:
        mesh = spec.add_mesh(name=name, uservert=shape.vertices.ravel())
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        arguments["meshname"] = name
    else:
        arguments["size"] = [*shape.size, 0.0, 0.0][:3]
    spec.body(f"body{robot.bodies.body_of_link[link]}").add_geom(
        name=name,
        type=_TYPES[shape.kind],
        pos=p + R @ shape.p,
        quat=quaternion_wxyz(R @ shape.R),
        **arguments,
    )


def add_servos(
    spec: mujoco.MjSpec,
    robot: RobotModel,
    servos: Servos,
    coulomb: Array,
    load: Array,
) -> None:
    """Adds a position servo to each independent joint, in the model's order.

    Args:
        spec: changed.
        robot: the robot.
        servos: gains, armatures and limits of the n joints.
        coulomb: (n,) N m or N, friction of the joints, which the servos' efforts do not include.
        load: (n,) likewise, over the effort; the simulation adds it step by step.
    """
    # s, in which joint friction stops a joint; at least two steps of the physics
    stopping = max(0.002, 2.0 * spec.option.timestep)
    for i, name in enumerate(robot.joint_names):
        joint = spec.joint(f"joint{robot.bodies.joint_names.index(name)}")
        joint.armature = servos.armature[i]
        if coulomb.any() or load.any():
            joint.frictionloss, joint.solref_friction = coulomb[i], [stopping, 1.0]
        limited = np.isfinite(servos.effort[i])
        servo = spec.add_actuator(
            name=f"servo{i}",
            target=joint.name,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            gaintype=mujoco.mjtGain.mjGAIN_FIXED,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE,
            forcelimited=int(limited),
        )
        servo.gainprm[0] = servos.stiffness[i]
        servo.biasprm[1:3] = -servos.stiffness[i], -servos.damping[i]
        if limited:
            servo.forcerange = [-servos.effort[i], servos.effort[i]]


def add_sensors(
    spec: mujoco.MjSpec, robot: RobotModel, imu_link: str, wrench_frames: Sequence[str]
) -> None:
    """Adds the IMU at a link's frame: accelerometer, gyroscope; and the velocity of the CoM.

    Sites mark the IMU ("imu") and the links in whose frames wrenches are given ("wrench<i>").

    Args:
        spec: changed.
        robot: the robot.
        imu_link: name of the IMU's link.
        wrench_frames: names of the links in whose frames the feet's wrenches are given.
    """
    _add_site(spec, robot, "imu", imu_link)
    for i, frame in enumerate(wrench_frames):
        _add_site(spec, robot, f"wrench{i}", frame)
    site, body = mujoco.mjtObj.mjOBJ_SITE, mujoco.mjtObj.mjOBJ_BODY
    for kind, objtype, objname in (
        (mujoco.mjtSensor.mjSENS_ACCELEROMETER, site, "imu"),
        (mujoco.mjtSensor.mjSENS_GYRO, site, "imu"),
        (mujoco.mjtSensor.mjSENS_SUBTREELINVEL, body, "body0"),
    ):
        spec.add_sensor(type=kind, objtype=objtype, objname=objname)


def _add_site(
    spec: mujoco.MjSpec, robot: RobotModel, name: str, link_name: str
) -> None:
    link = robot.link_index(link_name)
    spec.body(f"body{robot.bodies.body_of_link[link]}").add_site(
        name=name,
        pos=robot.bodies.p_body_link[link],
        quat=quaternion_wxyz(robot.bodies.R_body_link[link]),
    )
