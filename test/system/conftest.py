"""Launch files started as a user starts them, and an ear on their topics."""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import rclpy
from rclpy.qos import QoSProfile, ReliabilityPolicy

from com_ros.main import make_fast_executor

RUN_LAUNCH = Path(__file__).resolve().parents[2] / "tools" / "run_launch"
PATIENCE = 240.0  # s; on a busy machine a first start compiles kernels for a while


class Launch:
    """A run of tools/run_launch; its children carry a mark in their environment."""

    def __init__(self, *words):
        self.mark = f"COM_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [RUN_LAUNCH, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, name: value},
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        self.lines.extend(iter(self.process.stdout.readline, ""))

    @property
    def output(self):
        return "".join(self.lines)

    def wait_for(self, text):
        """Wait until a text was printed."""
        limit = time.monotonic() + PATIENCE
        while text not in self.output:
            assert self.process.poll() is None, (
                f"ended without {text!r}:\n{self.output}"
            )
            assert time.monotonic() < limit, f"no {text!r}:\n{self.output}"
            time.sleep(0.05)

    def processes(self):
        """Pid -> command line of whatever this launch started and still runs."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    command = (
                        (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    )
                    found[int(folder.name)] = command
            except OSError:
                continue  # ended meanwhile, or another user's
        return found

    def pid_of(self, executable):
        """Pid of a node by the name of its program."""
        (pid,) = [
            pid for pid, line in self.processes().items() if f"/{executable} " in line
        ]
        return pid

    def stop(self):
        """Ctrl-C; return the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.finish()

    def finish(self):
        """Wait for the end; return the exit code."""
        code = self.process.wait(timeout=PATIENCE)
        self._reader.join(timeout=PATIENCE)
        return code

    def wait_until_gone(self):
        """Wait until nothing that this launch started runs."""
        limit = time.monotonic() + PATIENCE
        while self.processes():
            assert time.monotonic() < limit, f"still there: {self.processes()}"
            time.sleep(0.05)

    def close(self):
        """Leave nothing behind, whatever happened."""
        self.process.kill()
        self.process.wait()
        for pid in self.processes():
            os.kill(pid, signal.SIGKILL)
        self._reader.join(timeout=5.0)
        self.process.stdout.close()


class Ear:
    """A node of the test that collects messages."""

    def __init__(self, domain):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain)
        self.node = rclpy.create_node("ear", context=self.context)
        self.executor = make_fast_executor(self.context)
        self.executor.add_node(self.node)

    def listen(self, kind, topic):
        """List that fills with the messages of a topic."""
        received = []
        profile = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.node.create_subscription(kind, topic, received.append, profile)
        return received

    def until(self, condition, what):
        """Listen until a condition holds; look ten times a second, listening costs enough."""
        limit = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < limit, f"still no {what}"
            look = time.monotonic() + 0.1
            while time.monotonic() < look:
                self.executor.spin_once(timeout_sec=0.05)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture
def domain(monkeypatch, draw_domain):
    """A ROS domain of the test's own."""
    number = draw_domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(number))
    return number


@pytest.fixture
def launch(domain):
    """Start launch files; what they started is gone at the end."""
    with ExitStack() as started:
        yield lambda *words: started.enter_context(closing(Launch(*words)))


@pytest.fixture
def make_ear(domain):
    """make_ear(): an ear that never heard of what was there before it."""
    with ExitStack() as made:
        yield lambda: made.enter_context(closing(Ear(domain)))


@pytest.fixture
def ear(make_ear):
    return make_ear()


@pytest.fixture
def run(request):
    """run(*words): the demo that the test's module names, as a user runs it."""
    env = {name: value for name, value in os.environ.items() if name != "ROS_DOMAIN_ID"}

    def run_demo(*words, timeout=600):
        command = [sys.executable, "-m", request.module.DEMO, *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, env=env
        )

    return run_demo


@pytest.fixture
def run_twice(run, tmp_path):
    """run_twice(*words): figures and folder of two runs at the same time, on too few cores.

    Each has to wait at other moments, which changes no figure of a demo in lockstep.
    """

    def run_both(*words):
        outs = [tmp_path / "first", tmp_path / "second"]
        with ThreadPoolExecutor() as pool:
            both = list(pool.map(lambda out: run(*words, "--output", out), outs))
        figures = []
        for done in both:
            assert done.returncode == 0, done.stdout + done.stderr
            figures.append(json.loads(done.stdout.splitlines()[-1]))
        paths = ("plot", "film", "report", "corrected_urdf")
        files = {name: "" for name in paths if name in figures[0]}
        assert figures[0] | files == figures[1] | files
        return figures[0], outs[0]

    return run_both


@pytest.fixture
def refusal(request, capsys):
    """refusal(*words): what the demo says when it refuses them; in this process."""
    demo = importlib.import_module(request.module.DEMO)
    on_terminate = signal.getsignal(signal.SIGTERM)

    def refused(*words):
        try:
            code = demo.main([str(word) for word in words])
        except SystemExit as ended:  # of the parser
            code = ended.code
        assert code == 2
        return capsys.readouterr().err

    yield refused
    signal.signal(signal.SIGTERM, on_terminate)
