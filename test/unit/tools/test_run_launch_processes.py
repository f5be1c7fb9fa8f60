"""tools/run_launch as a program: output, deaths, stopping, orphans, what it leaves behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from launcher.cli import main
from launcher.supervisor import Supervisor

pytestmark = pytest.mark.slow

RUN_LAUNCH = Path(__file__).resolve().parents[3] / "tools" / "run_launch"
PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long


@pytest.fixture
def start(tmp_path):
    """Start run_launch; whatever the test does, it is gone at the end."""
    started = []

    def run(*words, **options):
        process = subprocess.Popen(
            [RUN_LAUNCH, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path), "OUT": str(tmp_path)},
            **options,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def finish(process):
    """Exit code and the lines that were not read yet."""
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output.splitlines()


def wait_for(process, *lines):
    """Read until each of the lines was printed."""
    missing = set(lines)
    while missing:
        line = process.stdout.readline()
        assert line, f"ended without {missing}"
        missing.discard(line.rstrip("\n"))


def is_alive(pid):
    """Whether a process runs (one that waits to be collected does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(*pids):
    limit = time.monotonic() + PATIENCE
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < limit, (
            f"still alive: {[p for p in pids if is_alive(p)]}"
        )
        time.sleep(0.02)


def pid_of(tmp_path, name):
    return int((tmp_path / name).read_text())


# --- output and ends ---------------------------------------------------------------------------
def test_lines_carry_the_name_of_their_node(launch_file, package, start):
    package("tiny", talk="echo one; echo two >&2; printf three")
    path = launch_file('<node pkg="tiny" exec="talk" name="a" namespace="lab"/>')
    code, lines = finish(start(path))
    assert code == 0
    assert sorted(lines[:3]) == ["[lab/a] one", "[lab/a] three", "[lab/a] two"]
    assert lines[3:] == ["[run_launch] lab/a has finished"]


def test_dying_node_is_reported_and_the_others_go_on(launch_file, package, start):
    package(
        "tiny",
        die="exit 3",
        live="while [ ! -e $OUT/go ]; do sleep 0.02; done; echo alive",
    )
    path = launch_file(
        '<node pkg="tiny" exec="die"/><node pkg="tiny" exec="live" name="b"/>'
    )
    process = start(path)
    wait_for(process, "[run_launch] die died with exit code 3")
    (path.parent / "go").touch()
    code, lines = finish(process)
    assert lines == ["[b] alive", "[run_launch] b has finished"]
    assert code == 1


def test_node_that_dies_by_a_signal(launch_file, package, start):
    package("tiny", crash="kill -SEGV $$")
    code, lines = finish(start(launch_file('<node pkg="tiny" exec="crash"/>')))
    assert (code, lines) == (1, ["[run_launch] crash died by signal SIGSEGV"])


def test_program_that_cannot_be_run(launch_file, package, start):
    share = package("tiny", live="true", broken="")
    (share.parents[1] / "lib/tiny/broken").write_text("#!/no/such/interpreter\n")
    path = launch_file('<node pkg="tiny" exec="broken"/><node pkg="tiny" exec="live"/>')
    code, lines = finish(start(path))
    assert "[run_launch] broken cannot be started: No such file or directory" in lines
    assert code == 1


def test_missing_packages_are_skipped_with_one_line_each(launch_file, package, start):
    package("tiny", live="true")
    path = launch_file(
        '<node pkg="rviz9" exec="rviz9" name="rviz"/><node pkg="tiny" exec="sing"/>'
        '<node pkg="tiny" exec="live"/>'
    )
    code, lines = finish(start(path))
    assert code == 0
    assert lines == [
        "[run_launch] rviz skipped: package 'rviz9' is not installed",
        "[run_launch] sing skipped: package 'tiny' has no executable 'sing'",
        "[run_launch] live has finished",
    ]


def test_nothing_to_start_is_an_error(launch_file, start):
    code, lines = finish(start(launch_file('<node pkg="rviz9" exec="rviz9"/>')))
    assert (code, lines[-1]) == (1, "run_launch: nothing was started")


# --- stopping ----------------------------------------------------------------------------------
SLEEP = "echo $$ > $OUT/sleeper; echo ready; exec sleep 1000"
POLITE = (
    "trap 'echo tidy; exit 0' INT; echo $$ > $OUT/polite; echo ready; sleep 1000 & wait"
)
DEAF_TO_INT = "trap '' INT; trap 'exit 143' TERM; echo ready; sleep 1000 & wait"
DEAF = (
    "trap '' INT TERM; echo $$ > $OUT/deaf; echo ready; while true; do sleep 0.1; done"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_stop_all_nodes(launch_file, package, start, tmp_path, number):
    package("tiny", sleeper=SLEEP, polite=POLITE)
    path = launch_file(
        '<node pkg="tiny" exec="sleeper"/><node pkg="tiny" exec="polite"/>'
    )
    process = start(path)
    wait_for(process, "[sleeper] ready", "[polite] ready")
    process.send_signal(number)
    code, lines = finish(process)
    assert (code, lines) == (0, ["[polite] tidy"])
    assert not is_alive(pid_of(tmp_path, "sleeper"))
    assert not is_alive(pid_of(tmp_path, "polite"))


def test_stop_works_where_a_shell_made_it_deaf_to_interrupts(
    launch_file, package, start
):
    package("tiny", sleeper=SLEEP)
    path = launch_file('<node pkg="tiny" exec="sleeper"/>')
    process = start(
        path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    )
    wait_for(process, "[sleeper] ready")
    process.send_signal(signal.SIGINT)
    assert finish(process) == (0, [])


def test_second_interrupt_terminates_and_third_kills(
    launch_file, package, start, tmp_path
):
    package("tiny", half=DEAF_TO_INT, deaf=DEAF)
    path = launch_file('<node pkg="tiny" exec="half"/><node pkg="tiny" exec="deaf"/>')
    process = start(path)
    wait_for(process, "[half] ready", "[deaf] ready")
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    code, lines = finish(process)
    assert (code, lines) == (
        1,
        ["[run_launch] deaf did not stop when asked to and was killed"],
    )
    assert not is_alive(pid_of(tmp_path, "deaf"))


def test_stop_hardens_by_itself(launch_file, package, tmp_path, monkeypatch):
    monkeypatch.setenv("OUT", str(tmp_path))
    share = package("tiny", deaf=DEAF)
    with open(tmp_path / "log", "wb") as log:
        supervisor = Supervisor(log, patience=0.2)
        supervisor.start("deaf", [str(share.parents[1] / "lib/tiny/deaf")])
        limit = time.monotonic() + PATIENCE
        while not (tmp_path / "deaf").exists() and time.monotonic() < limit:
            time.sleep(0.02)
        supervisor.request_stop()
        assert supervisor.run() == 1
    assert not is_alive(pid_of(tmp_path, "deaf"))


def test_node_that_fails_while_stopping_is_reported(launch_file, package, start):
    package("tiny", bad="trap 'exit 7' INT; echo ready; sleep 1000 & wait")
    process = start(launch_file('<node pkg="tiny" exec="bad"/>'))
    wait_for(process, "[bad] ready")
    process.send_signal(signal.SIGINT)
    assert finish(process) == (1, ["[run_launch] bad died with exit code 7"])


def test_what_a_node_started_goes_with_it(launch_file, package, start, tmp_path):
    package("tiny", parent="sleep 1000 & echo $! > $OUT/grandchild; exit 0")
    code, lines = finish(start(launch_file('<node pkg="tiny" exec="parent"/>')))
    assert (code, lines) == (0, ["[run_launch] parent has finished"])
    wait_until_gone(pid_of(tmp_path, "grandchild"))


def test_killed_launcher_leaves_no_orphans(launch_file, package, start, tmp_path):
    package("tiny", sleeper=SLEEP, deaf=DEAF)
    path = launch_file(
        '<node pkg="tiny" exec="sleeper"/><node pkg="tiny" exec="deaf"/>'
    )
    process = start(path)
    wait_for(process, "[sleeper] ready", "[deaf] ready")
    process.kill()
    wait_until_gone(pid_of(tmp_path, "sleeper"), pid_of(tmp_path, "deaf"))


def test_reader_that_goes_away_ends_it_all(launch_file, package, start, tmp_path):
    package(
        "tiny", chatty="echo $$ > $OUT/chatty; while echo more; do sleep 0.05; done"
    )
    process = start(launch_file('<node pkg="tiny" exec="chatty"/>'))
    wait_for(process, "[chatty] more")
    process.stdout.close()
    process.wait(timeout=PATIENCE)
    wait_until_gone(pid_of(tmp_path, "chatty"))


def test_parameter_files_are_removed(launch_file, package, start, tmp_path):
    package("tiny", show='cat "$3"; echo "path $3"')
    path = launch_file(
        '<node pkg="tiny" exec="show"><param name="a" value="1"/></node>'
    )
    code, lines = finish(start(path))
    assert lines[:3] == ["[show] /**:", "[show]   ros__parameters:", "[show]     a: 1"]
    file = Path(lines[3].removeprefix("[show] path "))
    assert file.is_relative_to(tmp_path)
    assert not file.parent.exists()
    assert code == 0


# --- command line ------------------------------------------------------------------------------
def test_file_of_a_package_by_name(package, start):
    share = package("tiny", talk="echo $*")
    (share / "launch/hello.launch.xml").write_text(
        '<launch><arg name="who" default="you"/>'
        '<node pkg="tiny" exec="talk" args="$(var who)"/></launch>'
    )
    code, lines = finish(start("tiny", "hello.launch.xml", "who:=all of you"))
    assert (code, lines[0]) == (0, "[talk] all of you --ros-args")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["/no.launch.xml"], "launch file /no.launch.xml does not exist"),
        (["tiny"], "'tiny' is no launch file: give FILE.launch.xml or PACKAGE FILE"),
        (["nowhere", "a.launch.xml"], "package 'nowhere' is not installed"),
        (
            ["tiny", "b.launch.xml"],
            "package 'tiny' has no launch file 'b.launch.xml'; it has: hello.launch.xml",
        ),
        (
            ["tiny", "hello.launch.xml", "whom:=you"],
            "hello.launch.xml has no argument 'whom'; it has: who",
        ),
        (
            ["tiny", "hello.launch.xml", "who=you"],
            "'who=you' is not of the form name:=value (an empty value: \"''\")",
        ),
    ],
)
def test_wrong_words(package, words, message, capsys):
    share = package("tiny")
    (share / "launch/hello.launch.xml").write_text('<launch><arg name="who"/></launch>')
    assert main(words) == 1
    assert capsys.readouterr().err == f"run_launch: {message}\n"


def test_show_args_lists_those_of_includes(launch_file, capsys):
    launch_file(
        '<arg name="rate" default="500" description="Hz"/><arg name="urdf"/><arg name="a"/>',
        "inner.launch.xml",
    )
    path = launch_file(
        '<arg name="a" default="$(env HOME)" description="first"/><group if="$(var a)">'
        '<include file="$(dirname)/inner.launch.xml"><arg name="urdf" value="x"/></include></group>'
    )
    assert main([str(path), "--show-args"]) == 0
    assert capsys.readouterr().out == (
        "Arguments (name:=value):\n"
        "    a\n        first\n        (default: '$(env HOME)')\n"
        "    rate\n        Hz\n        (default: '500')\n"
    )


def test_unknown_includes_leave_names_unchecked(launch_file, capsys):
    launch_file('<arg name="b" default="1"/>', "inner.launch.xml")
    path = launch_file(
        '<arg name="f"/><include file="$(dirname)/$(var f).launch.xml"/>'
    )
    assert main([str(path), "--show-args"]) == 0
    assert capsys.readouterr().out.endswith(
        "and those of included files whose path depends on arguments\n"
    )
    assert main([str(path), "f:=inner", "b:=2", "--dry-run"]) == 0


def test_dry_run_starts_nothing(launch_file, package, capsys, tmp_path):
    package("tiny", talk="touch $OUT/started")
    path = launch_file(
        '<node pkg="tiny" exec="talk" name="n" namespace="lab" args="a">'
        '<param name="p" value="[1.0, 2.0]"/><remap from="x" to="y"/></node>'
        '<node pkg="rviz9" exec="rviz9"/>'
    )
    assert main([str(path), "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"[lab/n] {tmp_path}/prefix/lib/tiny/talk a",
        "    namespace /lab",
        "    p = [1.0, 2.0]",
        "    x -> y",
        "[rviz9] skipped: package 'rviz9' is not installed",
    ]


def test_outside_of_the_environment_it_enters_it(launch_file, package):
    path = launch_file('<arg name="a" default="1"/>')
    bare = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}
    result = subprocess.run(
        [RUN_LAUNCH, path, "--show-args"],
        env=bare,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "(default: '1')" in result.stdout
