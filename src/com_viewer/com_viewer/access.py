"""Who may see the page: those who have its address, from no other page.

A browser sends requests for every page that it shows, also to servers of this machine. So each
request must carry the token of the address that the viewer prints (as a cookie afterwards, which
browsers do not send for pages of other sites); a page of another origin is refused even then, and
so is a name of this machine that is not known here, to which another site's name may have been
bound (DNS rebinding).
"""

import http
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import websockets.asyncio.server
from websockets import Headers
from websockets.http11 import Request, Response

_logger = logging.getLogger(__name__)


class Access:
    """The rule by which requests are served or refused.

    Args:
        host: address that the server binds.
        token: that the page's address must carry; empty: a random one.

    Attributes:
        token: the token.
    """

    def __init__(self, host: str, token: str = "") -> None:
        self.token = token or secrets.token_urlsafe(16)
        self._cookie = "viewer_" + secrets.token_hex(4)  # ports of a host share cookies
        name = socket.gethostname().lower()
        self._names = {"localhost", host.lower(), name, f"{name}.local"}

    def refusal(self, request: Request) -> str:
        """Why a request is refused; empty: it is served.

        Args:
            request: any of a browser, also one for a WebSocket.
        """
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not self._is_here(hosts[0]):
            asked = ", ".join(hosts) or "no name"
            return f"this server is not {asked}: open the address that it printed"
        for origin in request.headers.get_all("Origin"):
            if origin.partition("://")[2].lower() != hosts[0].lower():
                return f"a page of {origin} may not use this server"
        if not self._has_token(request):
            return "open the address that the viewer printed when it started: it ends with a token"
        return ""

    def respond(
        self, request: Request, serve: Callable[[], Response | None]
    ) -> Response | None:
        """The answer to a request; None: a WebSocket is opened.

        Args:
            request: any of a browser.
            serve: gives the server's own answer to it.
        """
        if reason := self.refusal(request):
            text = f"{reason}\n".encode("utf-8", "replace")
            kind = {"Content-Type": "text/plain; charset=utf-8"}
            headers = Headers(**kind, **{"Content-Length": str(len(text))})
            return Response(http.HTTPStatus.FORBIDDEN, "Forbidden", headers, text)
        response = serve()
        if response is not None and "token=" in request.path:
            cookie = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            response.headers["Set-Cookie"] = cookie
        return response

    @contextmanager
    def guarding(self) -> Iterator[None]:
        """Guards a server that is made within: viser offers no place for a check of requests."""
        serve = websockets.asyncio.server.serve
        # browsers open some connections in advance, which end before a request
        _logger.addFilter(lambda record: record.msg != "opening handshake failed")

        def guarded(*args: Any, process_request: Any, **options: Any) -> Any:
            def process(connection: Any, request: Request) -> Response | None:
                return self.respond(
                    request, lambda: process_request(connection, request)
                )

            return serve(*args, process_request=process, logger=_logger, **options)

        websockets.asyncio.server.serve = guarded
        try:
            yield
        finally:
            websockets.asyncio.server.serve = serve

    def _is_here(self, host: str) -> bool:
        """Whether a request's host is this machine, by a number or by a name that it has."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _has_token(self, request: Request) -> bool:
        query = parse_qs(urlsplit(request.path).query)
        given = query.get("token", [])
        for line in request.headers.get_all("Cookie"):
            try:
                cookies = SimpleCookie(line)
            except CookieError:
                continue
            if self._cookie in cookies:
                given.append(cookies[self._cookie].value)
        expected = self.token.encode()
        return any(secrets.compare_digest(text.encode(), expected) for text in given)
