"""Small robots that are written here, as text of a URDF."""

import numpy as np
import pytest

INERTIA = '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>'
FOOT = (
    '<collision><origin xyz="0.03 0 -0.03"/>'
    '<geometry><box size="0.2 0.1 0.04"/></geometry></collision>'
)
BALL = (
    '<collision><origin xyz="0 0 -0.2"/>'
    '<geometry><sphere radius="0.025"/></geometry></collision>'
)
TRUNK = '<collision><geometry><box size="0.3 0.2 0.1"/></geometry></collision>'
LIMIT = '<limit lower="{}" upper="{}" effort="100" velocity="10"/>'


def link(name, mass, shape="", com="0 0 0"):
    inertial = (
        f'<inertial><origin xyz="{com}"/><mass value="{mass}"/>{INERTIA}</inertial>'
    )
    return f'<link name="{name}">{inertial}{shape}</link>'


def joint(name, parent, child, xyz, axis, limits=(-2.0, 2.0), rpy="0 0 0"):
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{xyz}" rpy="{rpy}"/><axis xyz="{axis}"/>{LIMIT.format(*limits)}</joint>'
    )


def write_biped(foot=FOOT, extra="", knee=(0.0, 2.2), names=("l", "r"), rpy="0 0 0"):
    """Two legs of six joints, 0.3 m bones; soles 50 mm below the ankles, whatever their frames."""
    parts = [link("pelvis", 10.0, TRUNK, "0 0 0.1")]
    for name, y in zip(names, (0.1, -0.1), strict=True):
        chain = [
            ("yaw", f"0 {y} 0", "0 0 1", (-1, 1)),
            ("roll", "0 0 0", "1 0 0", (-1, 1)),
            ("pitch", "0 0 0", "0 1 0", (-2, 2)),
            ("knee", "0 0 -0.3", "0 1 0", knee),
            ("ankle", "0 0 -0.3", "0 1 0", (-1, 1)),
        ]
        parent = "pelvis"
        for part, xyz, axis, limits in chain:
            child = f"{name}_{part}"
            parts += [link(child, 0.8, com="0 0 -0.1")]
            parts += [joint(f"{child}_joint", parent, child, xyz, axis, limits)]
            parent = child
        parts += [link(f"{name}_foot", 0.8, foot)]
        parts += [
            joint(
                f"{name}_foot_joint",
                parent,
                f"{name}_foot",
                "0 0 0",
                "1 0 0",
                (-1, 1),
                rpy,
            )
        ]
    return f'<robot name="biped">{"".join(parts)}{extra}</robot>'


def write_quadruped(names=("fl", "fr", "rl", "rr"), swap=False, shape=BALL, lies=False):
    """Four legs of three joints; with swap, x and y of the trunk change places.

    A robot that lies stretches its legs forwards and backwards where all joints are at 0.
    """
    parts = [link("body", 8.0, TRUNK)]
    places = [(0.2, 0.1), (0.2, -0.1), (-0.2, 0.1), (-0.2, -0.1)]
    for name, (x, y) in zip(names, places, strict=True):
        xyz, roll, pitch = f"{x} {y} 0", "1 0 0", "0 1 0"
        if swap:  # forwards is y, left is -x
            xyz, roll, pitch = f"{-y} {x} 0", "0 1 0", "-1 0 0"
        parts += [link(f"{name}_hip", 0.5), link(f"{name}_thigh", 0.5, com="0 0 -0.1")]
        parts += [link(f"{name}_shank", 0.2, shape, "0 0 -0.1")]
        parts += [joint(f"{name}_haa", "body", f"{name}_hip", xyz, roll)]
        hfe = joint(f"{name}_hfe", f"{name}_hip", f"{name}_thigh", "0 0 0", pitch)
        turn = f'rpy="0 {np.copysign(np.pi / 2, -x)} 0"'
        parts += [hfe.replace('rpy="0 0 0"', turn) if lies else hfe]
        limits = (-2.7, -0.5)
        parts += [
            joint(
                f"{name}_kfe",
                f"{name}_thigh",
                f"{name}_shank",
                "0 0 -0.2",
                pitch,
                limits,
            )
        ]
    return f'<robot name="dog">{"".join(parts)}</robot>'


@pytest.fixture(scope="session")
def biped():
    """biped(...): see write_biped."""
    return write_biped


@pytest.fixture(scope="session")
def quadruped():
    """quadruped(...): see write_quadruped."""
    return write_quadruped


@pytest.fixture(scope="session")
def foot():
    """The usual shape of a biped's foot."""
    return FOOT


@pytest.fixture
def stretched_arms():
    """Links and joints of two arms that a biped's pelvis stretches out to its sides."""
    parts = []
    for side, y in (("l", 0.3), ("r", -0.3)):
        parent = "pelvis"
        chain = (("shoulder", f"0 {y} 0.4", "0 1 0"), ("elbow", f"0 {y} 0", "1 0 0"))
        for part, xyz, axis in (*chain, ("wrist", f"0 {y} 0", "0 0 1")):
            child = f"{side}_{part}"
            parts += [link(child, 0.5), joint(f"{child}_j", parent, child, xyz, axis)]
            parent = child
    return "".join(parts)
