"""A background program is gone afterwards: asked to stop, forced, interrupted, or orphaned."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from com_demos.background import DOMAIN_IDS, Background, free_domain_id, reserved

pytestmark = pytest.mark.slow

QUICK = ((signal.SIGINT, 0.5), (signal.SIGTERM, 0.5), (signal.SIGKILL, 3.0))
SAYS = "import signal, sys, time\nprint('ready', flush=True)\n"


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def wait_for(path: Path, text: str, seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while text not in (path.read_text() if path.exists() else ""):
        assert time.monotonic() < end, f"no '{text}' in {path}"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_ends_by_interrupt_and_keeps_its_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        SAYS
        + "try: time.sleep(60)\nexcept KeyboardInterrupt: print('bye'); sys.exit(3)\n"
    )
    with Background(python(code), log) as background:
        wait_for(log, "ready")
        assert background.exit_code is None
    assert background.exit_code == 3
    assert background.tail() == "ready\nbye"
    assert background.tail(lines=1) == "bye"


def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    deaf = "for n in (2, 15): signal.signal(n, signal.SIG_IGN)\n"
    code = "import signal\n" + deaf + SAYS + "time.sleep(60)\n"
    with Background(python(code), log) as background:
        wait_for(log, "ready")
        background.stop(QUICK)
        assert background.exit_code == -signal.SIGKILL


def test_children_of_one_that_died_are_stopped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    sleeper = python("import time; time.sleep(60)")
    code = f"import subprocess\np = subprocess.Popen({sleeper})\nprint('pid', p.pid, 'end')\n"
    with Background(python(code), log) as background:
        wait_for(log, "end")
        pid = int(log.read_text().split()[1])
        assert not gone(pid)
        while background.exit_code is None:
            time.sleep(0.01)
    assert background.exit_code == 0
    assert gone(pid)


def test_exception_inside_stops_it_too(tmp_path: Path) -> None:
    background = Background(python("import time; time.sleep(60)"), tmp_path / "log")
    with pytest.raises(ValueError, match="mine"), background:
        raise ValueError("mine")
    assert background.exit_code is not None


def test_hears_an_interrupt_where_the_parent_ignores_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = SAYS + "try: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(7)\n"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Background(python(code), log) as background:
            wait_for(log, "ready")
            background.stop(QUICK)
        assert background.exit_code == 7
    finally:
        signal.signal(signal.SIGINT, before)


def test_dies_with_a_parent_that_was_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = (
        "import sys, time\nfrom com_demos.background import Background\n"
        f"with Background([sys.executable, '-c', 'import os, time; print(os.getpid(), \"up\", "
        f"flush=True); time.sleep(60)'], {str(log)!r}): time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    wait_for(log, "up")
    pid = int(log.read_text().split()[0])
    parent.kill()
    parent.wait()
    end = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_not_started_and_missing_command(tmp_path: Path) -> None:
    background = Background(
        ["/nowhere/program"], tmp_path / "log", env=dict(os.environ)
    )
    background.stop()
    assert (background.exit_code, background.tail()) == (None, "")
    with pytest.raises(FileNotFoundError, match="/nowhere/program"):
        background.__enter__()


def test_free_domain_is_one_whose_port_can_be_had() -> None:
    domain_id = free_domain_id()
    assert domain_id is not None
    assert domain_id in DOMAIN_IDS
    with reserved(domain_id), pytest.raises(OSError, match="in use"):
        reserved(domain_id)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("", 7410 + 250 * domain_id))
        assert free_domain_id([domain_id]) is None
