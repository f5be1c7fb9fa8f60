"""Runs the shell lines of README and the tutorials, as a new user would, one page after the other.

    make test-commands                           all pages, in a clone of the last commit
    python3 tools/walk_pages.py README.md        one page
    python3 tools/walk_pages.py --here --seed 7  in this checkout, which should be fresh

Nothing but `make setup` is there. Each page starts without what the pages before it have written,
the pages in a random order. A line must end with
exit code 0, print no traceback, and the pages that it writes must open in Chromium without errors.
tools/walk_pages.json says which files stand for a page's placeholders, what runs beside it in the
place of a robot, which lines are shortened (by options that their page names), and which are left
out, with the reason.
"""

import argparse
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CACHES = (
    ".ruff_cache",
    ".mypy_cache",
    ".pytest_cache",
    ".hypothesis",
    "__pycache__",
    "*.egg-info",
)
KEPT = (".venv", "build", "install", "log", ".noble", *CACHES)  # between pages
LONGEST = 900.0  # s, of one line, the set-up included
SHELL = ("", "bash", "sh", "shell", "console")
TRACEBACK = re.compile(
    r"Traceback \(most recent call last\)|died with exit code|process has died"
)
# Lines that run until Ctrl-C: what they print when they work (the model that is published, or the
# robot that is simulated), and within how many seconds.
RUN_ON = {
    "ros2 launch ": (re.compile("model '|simulating '"), 90.0),
    "make view ": (re.compile("http://"), 240.0),
    "ros2 topic echo ": (re.compile("\n"), 20.0),
    "ros2 bag record ": (re.compile("\n"), 20.0),
}
BROWSER = """
import sys
sys.path.insert(0, "test/helpers")
import tempfile
from pathlib import Path
from browser import Browser, find_browser
if find_browser() is None:
    sys.exit("no Chromium")
failed = 0
with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as page:
    for address in sys.argv[1:]:
        page.open(address)
        text = "(document.body || {innerText: ''}).innerText.trim()"
        page.wait_for(lambda: page.js(text), "the page shows a text")
        if page.errors:
            failed += 1
            print(address, page.errors)
        page.errors.clear()
sys.exit(failed)
"""


@dataclass
class Line:
    """A shell line of a page and what became of it."""

    page: str
    printed: str  # in the page
    run: str = ""  # what runs in its place; empty: the line as it is printed
    reason: str = ""  # why it is left out
    background: bool = False  # runs until the page or the next of its kind ends
    seconds: float = 0.0
    problem: str = ""
    output: str = field(default="", repr=False)

    @property
    def command(self) -> str:
        """What runs."""
        return self.run or self.printed


def shell_lines(text: str) -> list[str]:
    """Return the shell lines of a page, continued ones joined, without their comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    shell = "\n".join(block for language, block in blocks if language in SHELL)
    lines = shell.replace("\\\n", " ").splitlines()
    return [line for raw in lines if (line := re.sub(r"(^|\s)#.*", "", raw).strip())]


def plan_page(page: str, text: str, rules: dict[str, Any]) -> list[Line]:
    """Return the lines of a page with what the rules say of them.

    Raises ValueError for a rule of the page that no line matches: it would hide nothing.
    """
    own = rules["pages"].get(page, {})
    planned, used = [], set()
    for printed in shell_lines(text):
        line = Line(page, re.sub(r"\s+", " ", printed))
        for kind in ("left_out", "shortened"):
            for pattern, value in {**rules.get(kind, {}), **own.get(kind, {})}.items():
                if re.match(pattern, line.printed):
                    used.add((kind, pattern))
                    if kind == "left_out":
                        line.reason = value
                    else:
                        line.run = re.sub(pattern, value, line.printed)
        for name, value in own.get("placeholders", {}).items():
            if name in line.command:
                used.add(("placeholders", name))
                line.run = line.command.replace(name, value)
        line.background = any(line.command.startswith(kind) for kind in RUN_ON)
        planned.append(line)
    kinds = ("left_out", "shortened", "placeholders")
    wanted = {(kind, rule) for kind in kinds for rule in own.get(kind, {})}
    if unused := wanted - used:
        raise ValueError(f"{page}: rules without a line: {sorted(unused)}")
    return planned


class Walk:
    """A walk through pages in one checkout.

    Attributes:
        checkout: folder of the suite.
    """

    def __init__(self, checkout: Path, rules: dict[str, Any]) -> None:
        self.checkout, self._rules = checkout, rules
        self._running: list[tuple[Line, subprocess.Popen[bytes], Path]] = []
        self._variables = ""  # that lines of the page have set
        self._logs = Path(tempfile.mkdtemp(prefix="walk_pages_"))

    def page(self, name: str) -> list[Line]:
        """Run the lines of a page; return them. RuntimeError: its preparation fails."""
        self._clean()
        self._variables = ""
        lines = plan_page(name, (self.checkout / name).read_text(), self._rules)
        own = self._rules["pages"].get(name, {})
        try:
            for command in own.get("before", []):
                self._must(Line(name, command), self._run)
            if "robot" in own:  # in the place of its drivers
                self._must(Line(name, own["robot"], background=True), self._start)
            first = len(self._running)
            for line in lines:
                if line.reason:
                    print(
                        f"  left out  {line.printed}\n            {line.reason}",
                        flush=True,
                    )
                    continue
                begin = time.monotonic()
                if re.fullmatch(r"\w+=\S+", line.command):
                    self._variables += f"{line.command}; "
                elif line.background:
                    if line.command.startswith("ros2 launch"):
                        self._stop(first)
                    self._start(line)
                else:
                    self._run(line)
                line.seconds = time.monotonic() - begin
                mark = "FAILED" if line.problem else "runs" if line.background else "ok"
                print(f"  {mark:6} {line.seconds:5.0f} s  {line.command}", flush=True)
                if line.problem:
                    print(f"         {line.problem}\n{_tail(line.output)}", flush=True)
        finally:
            self._stop()
        return lines

    def _must(self, line: Line, run: Callable[[Line], None]) -> None:
        run(line)
        if line.problem:
            raise RuntimeError(f"{line.command}: {line.problem}\n{_tail(line.output)}")

    def _clean(self) -> None:
        """Remove what pages have written."""
        kept = [word for name in KEPT for word in ("-e", name)]
        subprocess.run(["git", "clean", "-qfdx", *kept], cwd=self.checkout, check=True)

    def _environment(self) -> dict[str, str]:
        domain = {"ROS_DOMAIN_ID": str(self._rules["domain"])}
        return {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"} | domain

    def _words(self, command: str) -> list[str]:
        """Return the words of a shell that runs a line; those of ROS in the suite's environment."""
        shell = ["bash", "-c", f"set -o pipefail; {self._variables}{command}"]
        own = command.startswith(("make ", "tools/", "git ", "cp ", "mkdir "))
        return shell if own else ["tools/in_env", *shell]

    def _run(self, line: Line) -> None:
        """Run a line to its end."""
        before = {path: path.stat().st_mtime for path in self._pages()}
        log = self._logs / "line.log"
        with log.open("wb") as out, self._process(line, out) as process:
            try:
                code: int | None = process.wait(timeout=LONGEST)
            except subprocess.TimeoutExpired:
                code = None
            _end(process)
        line.output = log.read_text(errors="replace")
        if code is None:
            line.problem = f"runs for more than {LONGEST:.0f} s"
        elif code:
            line.problem = f"exit code {code}"
        elif TRACEBACK.search(line.output):
            line.problem = "prints a traceback, or a node died"
        else:
            new = [p for p in self._pages() if before.get(p) != p.stat().st_mtime]
            line.problem = self._look([path.resolve().as_uri() for path in new])

    def _start(self, line: Line) -> None:
        """Start a line that runs on, and wait until it has shown that it works."""
        log = self._logs / f"background_{time.monotonic_ns()}.log"
        with log.open("wb") as out:
            process = self._process(line, out)
        self._running.append((line, process, log))
        wanted, patience = next(
            v for k, v in RUN_ON.items() if line.command.startswith(k)
        )
        end = time.monotonic() + patience
        while time.monotonic() < end and process.poll() is None:
            if wanted.search(log.read_text(errors="replace")):
                break
            time.sleep(0.2)
        line.output = log.read_text(errors="replace")
        if process.poll() not in (None, 0):
            line.problem = f"ends with exit code {process.returncode}"
        elif not wanted.search(line.output):
            line.problem = f"shows nothing of what it is for in {patience:.0f} s"
        elif TRACEBACK.search(line.output):
            line.problem = "prints a traceback, or a node died"
        elif address := re.search(r"http://127\.0\.0\.1:\d+\S*", line.output):
            line.problem = self._look([address.group()])

    def _stop(self, first: int = 0) -> None:
        """End what runs, all but the first few, by Ctrl-C; a line that ends badly has a problem."""
        while len(self._running) > first:
            line, process, log = self._running.pop()
            code = _end(process)
            line.output = log.read_text(errors="replace")
            if line.problem:
                continue
            if TRACEBACK.search(line.output):
                line.problem = "prints a traceback, or a node died"
            elif code not in (0, 130, -signal.SIGINT):
                line.problem = f"exit code {code} after Ctrl-C"
            if line.problem:
                print(
                    f"  FAILED at its end: {line.command}\n         {line.problem}",
                    flush=True,
                )
                print(_tail(line.output), flush=True)

    def _process(self, line: Line, out: Any) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._words(line.command),
            cwd=self.checkout,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=self._environment(),
            start_new_session=True,
            preexec_fn=_obey_ctrl_c,
        )

    def _pages(self) -> list[Path]:
        """Return the pages that lines have written."""
        written = untracked(self.checkout)
        return [self.checkout / name for name in written if name.endswith(".html")]

    def _look(self, addresses: Sequence[str]) -> str:
        """Open pages in Chromium; return what is wrong with them."""
        if not addresses:
            return ""
        done = subprocess.run(
            ["tools/in_env", "python", "-c", BROWSER, *addresses],
            cwd=self.checkout,
            capture_output=True,
            text=True,
            check=False,
        )
        return (
            ""
            if done.returncode == 0
            else f"Chromium: {done.stdout}{done.stderr[-500:]}"
        )


def _obey_ctrl_c() -> None:
    """Give a child back the Ctrl-C that a shell takes from what it starts in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(process: "subprocess.Popen[bytes]") -> int | None:
    """End a line and all that it has started; return its exit code."""
    for number, patience in (
        (signal.SIGINT, 30.0),
        (signal.SIGTERM, 5.0),
        (signal.SIGKILL, 5.0),
    ):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return process.returncode


def _tail(output: str, lines: int = 15) -> str:
    return "\n".join(
        f"         | {line[:300]}" for line in output.splitlines()[-lines:]
    )


def untracked(checkout: Path) -> list[str]:
    """Return the files of a checkout that git does not track, without the environment."""
    left_out = [word for name in KEPT for word in ("-x", name)]
    words = ["git", "ls-files", "-o", *left_out]
    done = subprocess.run(
        words, cwd=checkout, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@contextlib.contextmanager
def fresh_clone() -> Iterator[Path]:
    """Clone the last commit into a folder that is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="walk_pages_") as folder:
        clone = Path(folder) / "suite"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
        yield clone


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if a line failed."""
    parser = argparse.ArgumentParser(
        "walk_pages", description=str(__doc__).partition("\n\n")[0]
    )
    parser.add_argument("pages", nargs="*", help="default: README and the tutorials")
    text = "in this checkout, which must have no files that git does not track: pages' are removed"
    parser.add_argument("--here", action="store_true", help=text)
    parser.add_argument(
        "--seed", type=int, help="of the order of the pages; default: random"
    )
    options = parser.parse_args(words)
    if options.here and (files := untracked(ROOT)):
        parser.error(
            f"--here: move these first, they would be removed: {', '.join(files[:5])}"
        )
    with contextlib.ExitStack() as stack:
        checkout = ROOT if options.here else stack.enter_context(fresh_clone())
        rules = json.loads((checkout / "tools/walk_pages.json").read_text())
        pages = options.pages or list(rules["pages"])
        seed = int(time.time()) % 1000 if options.seed is None else options.seed
        random.Random(seed).shuffle(pages)  # noqa: S311
        print(
            f"{len(pages)} pages, order of seed {seed}: {', '.join(pages)}", flush=True
        )
        begin = time.monotonic()
        subprocess.run(["make", "setup"], cwd=checkout, check=True)
        print(f"set up in {time.monotonic() - begin:.0f} s", flush=True)
        lines: list[Line] = []
        walk = Walk(checkout, rules)
        for number, page in enumerate(pages, 1):
            begin = time.monotonic()
            print(f"[{number}/{len(pages)}] {page}", flush=True)
            lines += walk.page(page)
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    failed = [line for line in lines if line.problem]
    left_out = [line for line in lines if line.reason]
    for line in failed:
        print(f"FAILED {line.page}: {line.command}: {line.problem}")
    print(f"{len(left_out)} lines left out, with reasons")
    print(f"{len(lines) - len(failed) - len(left_out)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
