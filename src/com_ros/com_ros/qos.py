"""Quality of service, the same for every node of the suite.

| profile  | for                                       | reliability | durability      |
|----------|-------------------------------------------|-------------|-----------------|
| LATCHED  | robot_description, results for latecomers | reliable    | transient local |
| RESULT   | what a node or a driver publishes         | reliable    | volatile        |
| TF       | /tf                                       | reliable    | volatile        |
| stream() | sensor data that a node subscribes to     | best effort | volatile        |

A best-effort subscription hears reliable and best-effort publishers alike; a reliable
publication is heard by both kinds of subscription.
"""

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy


def _keep_last(
    depth: int,
    reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE,
    durability: DurabilityPolicy = DurabilityPolicy.VOLATILE,
) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=reliability,
        durability=durability,
    )


LATCHED = _keep_last(1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RESULT = _keep_last(10)
TF = _keep_last(100)


def stream(depth: int = 1) -> QoSProfile:
    """Sensor data in.

    Args:
        depth: messages that may wait while the node is busy: 1 for a node that wants the newest
            one, more for a node that must see every one (at 1 kHz, 500 bridge 0.5 s).
    """
    return _keep_last(depth, reliability=ReliabilityPolicy.BEST_EFFORT)
