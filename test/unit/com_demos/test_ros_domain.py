"""Runs beside each other get domains of their own."""

import socket

import pytest

from com_demos.ros_domain import LAST_DOMAIN_ID, free_domain_id


def test_free_domain_is_one_whose_port_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    domain_id = free_domain_id()
    assert domain_id is not None
    assert 1 <= domain_id <= LAST_DOMAIN_ID
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 7410 + 250 * domain_id))
        monkeypatch.setattr("com_demos.ros_domain.random.sample", lambda *_: [domain_id])
        assert free_domain_id() is None
