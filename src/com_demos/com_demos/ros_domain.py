"""A ROS domain of one's own, so that two runs on a machine do not hear each other."""

import random
import socket

LAST_DOMAIN_ID = 101  # the ports of higher ones are those that Linux gives to any program
_FIRST_PORT = 7410  # of a domain's first participant, 250 apart (DDS-RTPS 2.3, 9.6.1.1)


def free_domain_id() -> int | None:
    """Return a random domain whose first port nobody has; None if there is none."""
    for domain_id in random.sample(range(1, LAST_DOMAIN_ID + 1), LAST_DOMAIN_ID):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("", _FIRST_PORT + 250 * domain_id))
            except OSError:
                continue
            return domain_id
    return None
