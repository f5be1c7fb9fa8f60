"""The parameters of posture_tour."""

from dataclasses import dataclass

from com_ros.parameters import parameter


@dataclass(frozen=True)
class Parameters:
    """What the node can be told."""

    robot_description: str = parameter("", "the robot's URDF; empty: wait for the topic")
    robot_config: str = parameter("", "path of the robot's configuration (YAML); needed")
    identification: str = parameter("com_identification", "name of the node that is asked")
    automatic: bool = parameter(
        False, "go on by itself; false: ~/next is awaited before each motion and each capture"
    )
    hoist: str = parameter(
        "",
        "service (std_srvs/SetBool) that lifts the robot and puts it down, e.g. simulator/hoist; "
        "empty: the feet stay where they are",
    )
    hoist_time: float = parameter(3.0, "s that the hoist takes, up or down", (0.1, 600.0))
    count: int = parameter(30, "postures to capture", (1, 1000))
    batch: int = parameter(
        10, "postures to ask for at a time; then what they tell counts", (1, 1000)
    )
    speed: float = parameter(
        0.3, "rad/s or m/s, of any joint at most; the URDF's velocity limits hold too", (0.001, 5.0)
    )
    velocity_share: float = parameter(
        0.2, "of the URDF's velocity limits that is used at most", (0.001, 1.0)
    )
    settle: float = parameter(1.0, "s between an arrival and the capture", (0.0, 60.0))
    start_tolerance: float = parameter(
        0.15, "rad or m, from the nominal posture in which the tour must begin", (0.001, 3.0)
    )
    tracking_tolerance: float = parameter(
        0.15, "rad or m, by which a joint may miss its target", (0.001, 3.0)
    )
    margin: float = parameter(
        0.005, "m, of the URDF's CoM inside the support polygon on the way", (0.0, 1.0)
    )
    failures: int = parameter(5, "postures in a row that may fail before the tour ends", (1, 1000))
    joint_timeout: float = parameter(
        0.5, "s, silence of joint_states at which the robot is stopped", (0.01, 60.0)
    )
    answer_timeout: float = parameter(120.0, "s to wait for an answer", (0.1, 3600.0))
    export_name: str = parameter("", "of the URDF that is written; empty: the node's own name")
