"""Debian's chromium, steered over its DevTools protocol by the websockets that viser needs."""

import base64
import contextlib
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request

import numpy as np

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--window-size=800,600",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]


def find_browser():
    """The path of a browser, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page; use as a context manager.

    Attributes:
        requests: addresses that the page has asked for.
        errors: exceptions of its scripts, and what they write to the console as errors.
    """

    def __init__(self, profile):
        self._profile = profile
        self._numbers = itertools.count(1)
        self.requests, self.errors = [], []
        self._socket = None

    def __enter__(self):
        from websockets.sync.client import connect

        command = [
            find_browser(),
            *FLAGS,
            f"--user-data-dir={self._profile}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        port = self.wait_for(self._port, "the browser starts")
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/json", timeout=120
        ) as answer:
            pages = [page for page in json.load(answer) if page["type"] == "page"]
        # without pings: their answers wait behind messages that nobody reads at the moment
        self._socket = connect(
            pages[0]["webSocketDebuggerUrl"],
            max_size=None,
            open_timeout=180,
            ping_interval=None,
        )
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Its renderers and services end after it and write to the profile until then, while the
        # caller removes that folder.
        end = time.monotonic() + 5.0
        with contextlib.suppress(ProcessLookupError):
            while time.monotonic() < end:
                os.killpg(self._process.pid, signal.SIGKILL)
                time.sleep(0.05)

    def call(self, method, **parameters):
        """Call a method of the protocol; return its result."""
        number = next(self._numbers)
        self._socket.send(
            json.dumps({"id": number, "method": method, "params": parameters})
        )
        while True:
            try:
                message = json.loads(self._socket.recv(timeout=240))
            except TimeoutError:
                raise TimeoutError(
                    f"the browser does not answer {method} {parameters}; asked for: "
                    f"{self.requests}; errors: {self.errors}"
                ) from None
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def open(self, address):
        """Load a page."""
        self.call("Page.navigate", url=address)

    def js(self, expression):
        """Evaluate JavaScript."""
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, condition, what, timeout=240.0):
        """Wait until condition() is true; return its value."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            self._read()
            assert time.monotonic() < end, (
                f"in vain waited until {what}; asked for: {self.requests}; "
                f"errors: {self.errors}"
            )
            time.sleep(0.2)
        return value

    def wait_for_text(self, text):
        """Wait until a text is on the page."""
        self.wait_for(
            lambda: text in (self.js("(document.body || {}).innerText") or ""),
            f"'{text}' shows",
        )

    def click(self, x, y):
        """Press the left button at a place."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=x,
                y=y,
                button="left",
                clickCount=1,
            )

    def place(self, expression):
        """Middle of the element that JavaScript finds."""
        box = self.js(
            f"(() => {{ const e = {expression}; if (!e) return null; "
            "e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect(); "
            "return [b.x + b.width / 2, b.y + b.height / 2, b.width, b.height]; })()"
        )
        assert box, f"nothing on the page is {expression}"
        return box

    def pixels(self):
        """What is to be seen, (h, w, 3) uint8."""
        from matplotlib.image import imread

        data = base64.b64decode(
            self.call("Page.captureScreenshot", format="png")["data"]
        )
        return (imread(io.BytesIO(data))[..., :3] * 255).astype(np.uint8)

    def _port(self):
        try:
            return (self._profile / "DevToolsActivePort").read_text().split()[0]
        except (OSError, IndexError):
            return None

    def _read(self):
        """Take in what the browser has reported; a full queue would stop it."""
        while self._socket is not None:
            try:
                self._note(json.loads(self._socket.recv(timeout=0)))
            except TimeoutError:
                return

    def _note(self, message):
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") == "Network.webSocketCreated":
            self.requests.append(message["params"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"].get("text"))
        if (
            message.get("params", {}).get("type") == "error"
        ):  # of Runtime.consoleAPICalled
            self.errors.append(str(message["params"].get("args"))[:500])
