"""Who may see the viewer's page: its address has a token, and no other page may use it."""

import socket
import urllib.error
import urllib.request
from urllib.parse import urlsplit

import pytest

pytest.importorskip("viser", reason="viser is not installed")

import viser
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from com_viewer.page import Page

PROTOCOL = [f"viser-v{viser.__version__}"]


@pytest.fixture(scope="module")
def page():
    page = Page(port=8350)
    yield page
    page.close()


@pytest.fixture
def get(page):
    """get(**headers): status, text and headers of the answer; path: the page's own by default."""

    def get(path=None, **headers):
        parts = urlsplit(page.address)
        path = f"/?{parts.query}" if path is None else path
        headers = {name.replace("_", "-"): text for name, text in headers.items()}
        request = urllib.request.Request(
            f"http://{parts.netloc}{path}", headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    return get


def test_the_printed_address_opens_and_its_cookie_lasts(get):
    status, text, headers = get()
    assert (status, "viser" in text.lower()) == (200, True)
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert get("/", Cookie=cookie.partition(";")[0])[0] == 200
    assert get("/", Cookie=f"other=1; {cookie.partition(';')[0]}")[0] == 200


@pytest.mark.parametrize(
    "path", ["/", "/?token=", "/?token=guess", "/?other=1", "/index.html"]
)
def test_without_the_token_there_is_nothing(get, path):
    status, text, _ = get(path)
    assert status == 403
    assert "the address that the viewer printed" in text


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "evil.example.com:8350",
        "127.0.0.1.evil.example.com",
        "localhost.evil.example.com",
        "[::1",
    ],
)
def test_a_name_that_is_not_this_machines_is_refused(get, host):
    status, text, _ = get(Host=host)
    assert (status, host in text) == (403, True)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]", "192.168.7.9"])
def test_this_machine_has_several_names(get, page, name):
    assert get(Host=f"{name}:{urlsplit(page.address).port}")[0] == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example.com", "http://127.0.0.1:9", "null"]
)
def test_another_page_opens_no_socket_even_with_the_token(page, origin):
    parts = urlsplit(page.address)
    address = f"ws://{parts.netloc}/?{parts.query}"
    with pytest.raises(InvalidStatus) as refused:
        connect(address, origin=origin, subprotocols=PROTOCOL)
    assert refused.value.response.status_code == 403
    assert origin.encode() in refused.value.response.body
    with pytest.raises(InvalidStatus):
        connect(f"ws://{parts.netloc}", subprotocols=PROTOCOL)
    own = f"http://{parts.netloc}"
    with connect(address, origin=own, subprotocols=PROTOCOL, max_size=None) as accepted:
        assert accepted.recv(timeout=60)


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"\x16\x03\x01\x02\x00\n"])
def test_a_connection_without_a_request_is_no_error(get, page, caplog, start):
    """Browsers open some in advance; a closed one printed a traceback."""
    parts = urlsplit(page.address)
    with socket.create_connection((parts.hostname, parts.port)) as client:
        client.sendall(start)
    assert get()[0] == 200
    assert get()[0] == 200
    assert not caplog.records
