"""Computations in a process of their own: results, refusals, bugs, cancelling, no orphans."""

import importlib
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from com_identification.background import BackgroundJob, analyse_walk, time_left
from com_identification.exceptions import IdentificationError, PostureError

pytestmark = pytest.mark.slow

PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long

# A module that another process can import, too.
TASKS = """
import os, resource, signal, threading, time
from com_identification.background import BackgroundJob
from com_identification.exceptions import PostureError

class Pid:
    def __call__(self, progress):
        progress(0.5, "half")
        return os.getpid()

class Memory:
    def __call__(self, progress):
        return resource.getrlimit(resource.RLIMIT_DATA)

class Refuses:
    def __call__(self, progress):
        raise PostureError("it has no wrench: give one", 3)

class Breaks:
    def __call__(self, progress):
        return {}["missing"]

class Dies:
    def __call__(self, progress):
        os.kill(os.getpid(), signal.SIGKILL)

class Lasts:
    def __call__(self, progress):
        progress(0.1, str(os.getpid()))
        time.sleep(3600.0)

def main():
    job = BackgroundJob(Lasts())
    threading.Thread(target=job.run).start()
    while not job.step.isdigit():
        time.sleep(0.01)
    print(job.step, flush=True)
    time.sleep(3600.0)
"""


@pytest.fixture
def tasks(tmp_path, monkeypatch):
    (tmp_path / "background_tasks.py").write_text(TASKS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("background_tasks")
    sys.modules.pop("background_tasks")


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_result_comes_from_another_process(tasks):
    job = BackgroundJob(tasks.Pid())
    assert job.run() != os.getpid()
    assert (job.progress, job.step) == (0.5, "half")


def test_a_nodes_limit_of_memory_is_not_that_of_its_computations(tasks):
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (2**40, hard))
    try:
        found = BackgroundJob(tasks.Memory()).run()
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    assert found == (hard, hard)


def test_analyse_walk_reports_its_progress():
    class Unreadable:
        def read(self, path):
            raise PostureError(f"{path} is damaged")

    calls = []
    _, _, seconds, problem = analyse_walk(
        Unreadable(), ["a", "b"], None, lambda done, step: calls.append((done, step))
    )
    assert [done for done, _ in calls] == [0.0, 0.5]
    assert all("2" in step for _, step in calls)
    assert (seconds, problem) == (0.0, "b is damaged")


@pytest.mark.parametrize(
    ("name", "problem", "trace"),
    [
        ("Refuses", "posture 3: it has no wrench: give one", ""),
        ("Breaks", "a bug: KeyError('missing')", "KeyError: 'missing'"),
        (
            "Dies",
            "ended with code -9 before it was done: look for a lack of memory",
            "",
        ),
    ],
)
def test_what_went_wrong_is_reported(tasks, name, problem, trace, capfd):
    kind = RuntimeError if trace else IdentificationError
    with pytest.raises(kind, match=re.escape(problem)):
        BackgroundJob(getattr(tasks, name)()).run()
    errors = capfd.readouterr().err
    assert (trace in errors) if trace else not errors


@pytest.mark.parametrize(
    ("fraction", "elapsed", "text"),
    [
        (0.0, 9.0, ""),
        (0.01, 9.0, ""),
        (0.25, 20.0, ", about 60 s left"),
        (0.9, 88.0, ", about 10 s left"),
        (0.99, 100.0, ""),
        (1.0, 100.0, ""),
    ],
)
def test_the_time_that_is_left_is_said_where_it_is_known_and_long(
    fraction, elapsed, text
):
    assert time_left(fraction, elapsed) == text


def test_it_can_be_cancelled_at_any_moment(tasks):
    early, late = BackgroundJob(tasks.Lasts()), BackgroundJob(tasks.Lasts())
    early.cancel()
    with pytest.raises(IdentificationError, match="cancelled"):
        early.run()
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(late.run)
        wait_for(lambda: late.step.isdigit())
        late.cancel()
        with pytest.raises(IdentificationError, match="cancelled"):
            end.result(PATIENCE)
    assert not runs(int(late.step))


def test_it_ends_with_the_process_that_started_it(tasks, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import background_tasks\nif __name__ == '__main__': background_tasks.main()"
    )
    with subprocess.Popen(
        [sys.executable, script], stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        assert runs(pid)
        parent.kill()
    wait_for(lambda: not runs(pid))


@pytest.mark.parametrize("delay", [0.02, 0.3])
def test_it_ends_without_a_traceback_when_its_parent_is_killed_at_the_start(
    tasks, tmp_path, delay
):
    script = tmp_path / "parent.py"
    script.write_text(
        "import background_tasks as tasks\njob = tasks.BackgroundJob(tasks.Lasts())\n"
        "print('started', flush=True)\njob.run()"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, script], **pipes) as parent:
        assert parent.stdout.readline() == "started\n"
        time.sleep(delay)
        parent.kill()
        _, errors = parent.communicate(timeout=PATIENCE)  # the worker writes there, too
    assert errors == ""
