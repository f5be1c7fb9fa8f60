"""IMU and force-torque sensors: from <gazebo> and <sensor> elements, else from names of links."""

import re

from com_model.model import RobotModel
from com_model.setup.parts import Limbs, Sensor, Sole
from com_model.urdf.xml_reader import Schema, read_xml

_SENSOR: Schema = {"parent": {}}
_SCHEMA: Schema = {
    "robot": {
        "gazebo": {"sensor": _SENSOR},
        "sensor": _SENSOR,
        "ros2_control": {"sensor": {}},
        "joint": {"child": {}},
    }
}
_IMU = re.compile(r"imu|inertial|gyro", re.IGNORECASE)
_FORCE = re.compile(r"force|torque|wrench|(?:^|_)fts?(?:_|$)", re.IGNORECASE)


def find_imu(model: RobotModel, limbs: Limbs) -> Sensor:
    """Finds the IMU: a sensor element of that kind, else a link of that name; trunk first.

    Args:
        model: The robot.
        limbs: Its limbs.
    """
    declared = [link for link, kind in _declared(model) if _IMU.search(kind)]
    named = [name for name in model.link_names if _IMU.search(name)]
    bodies = model.bodies
    preferred = (0, limbs.hips, limbs.trunk)

    def rank(link: str) -> int:
        body = int(bodies.body_of_link[model.link_index(link)])
        return preferred.index(body) if body in preferred else len(preferred)

    for candidates, source in ((declared, "a <sensor>"), (named, "its name")):
        on_trunk = sorted((c for c in candidates if rank(c) < len(preferred)), key=rank)
        if on_trunk:
            others = [c for c in dict.fromkeys(candidates) if c != on_trunk[0]]
            issue = f"{on_trunk[0]} is taken, by {source}; there is {', '.join(others)}, too"
            return Sensor(on_trunk[0], issue if others else "")
    return Sensor(
        "", "the URDF names no IMU on the trunk: give its link, axes as mounted"
    )


def find_wrench(model: RobotModel, sole: Sole, foot: int) -> Sensor:
    """Finds the force-torque sensor of a foot: at its ankle or beyond.

    Args:
        model: The robot.
        sole: The sole of the foot.
        foot: Index of the foot's body.
    """
    bodies = model.bodies
    body_of = dict(zip(model.link_names, bodies.body_of_link.tolist(), strict=True))
    here = (foot, int(bodies.parent[foot]))
    found = [link for link, kind in _declared(model) if _FORCE.search(kind)]
    found = [link for link in found if body_of[link] in here]
    found += [
        link for link, body in body_of.items() if body == foot and _FORCE.search(link)
    ]
    if found:
        return Sensor(found[0], "")
    issue = "the URDF names no force-torque sensor: give its topic, frame and sign"
    return Sensor(sole.own_link or sole.link, issue)


def _declared(model: RobotModel) -> list[tuple[str, str]]:
    """Sensor elements: the link that carries each, and its type and name."""
    robot, _ = read_xml(model.xml, _SCHEMA)
    children = {
        joint.attributes.get("name", ""): child.attributes.get("link", "")
        for joint in robot.all("joint")
        for child in joint.all("child")
    }
    found = [
        (holder.attributes.get("reference", ""), sensor.attributes)
        for holder in robot.all("gazebo")
        for sensor in holder.all("sensor")
    ]
    found += [
        (
            parent.attributes.get("link") or parent.attributes.get("joint", ""),
            sensor.attributes,
        )
        for sensor in robot.all("sensor")
        for parent in sensor.all("parent")
    ]
    found += [  # its name is often that of a link or joint
        (sensor.attributes.get("name", ""), sensor.attributes)
        for control in robot.all("ros2_control")
        for sensor in control.all("sensor")
    ]
    placed = [(children.get(place, place), of) for place, of in found]
    known = [(link, of) for link, of in placed if link in model.link_names]
    return [(link, f"{of.get('type', '')} {of.get('name', '')}") for link, of in known]
