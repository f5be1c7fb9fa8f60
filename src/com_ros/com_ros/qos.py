"""Quality of service, the same for every node of the suite.

| profile  | for                                       | reliability | durability      |
|----------|-------------------------------------------|-------------|-----------------|
| LATCHED  | robot_description, results for latecomers | reliable    | transient local |
| RESULT   | what a node or a driver publishes         | reliable    | volatile        |
| TF       | /tf                                       | reliable    | volatile        |
| stream() | sensor data that a node subscribes to     | best effort | volatile        |

A best-effort subscription receives from reliable and best-effort publishers; a reliable
publication is received by both kinds of subscription.
"""

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

# Profiles of rclpy are reliable and volatile, and keep the last.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RESULT = QoSProfile(
    depth=100
)  # messages that can be sent again to a reader on a busy machine
TF = QoSProfile(depth=100)


def stream(depth: int = 1) -> QoSProfile:
    """Returns the profile of a subscription to sensor data.

    Args:
        depth: number of messages that may wait while the node is busy. 1 for a node that uses
            only the newest; at 1 kHz, 500 bridge 0.5 s.
    """
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)
