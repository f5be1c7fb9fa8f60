"""How a node's process ends: exit codes, signals and what it prints."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

HEAD = """
import sys, time
from com_ros.exceptions import ParameterError
from com_ros.main import run
from rclpy.node import Node

class Quiet(Node):
    def __init__(self):
        super().__init__("quiet")
        self.create_timer(0.01, self.tick)
        self.ticks = 0
    def tick(self):
        self.ticks += 1
        if self.ticks == 3:
            print("ready", flush=True)
"""


def start(body):
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(body)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ROS_DOMAIN_ID": os.environ.get("ROS_DOMAIN_ID", "1")},
    )


def finish(process):
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_code_0_and_no_trace(number):
    process = start("sys.exit(run(Quiet))")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    code, _, err = finish(process)
    assert code == 0, err
    assert "Traceback" not in err


def test_a_second_interrupt_does_not_break_the_clean_up():
    process = start("""
        class Slow(Quiet):
            def destroy_node(self):
                print("closing", flush=True)
                time.sleep(0.3)
                super().destroy_node()
                print("closed", flush=True)
        sys.exit(run(Slow))
    """)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "closing\n"
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out) == (0, "closed\n"), err
    assert "Traceback" not in err


def test_a_signal_while_the_node_is_being_made():
    process = start("""
        class Slow(Quiet):
            def __init__(self):
                print("making", flush=True)
                time.sleep(5.0)
                super().__init__()
        sys.exit(run(Slow))
    """)
    assert process.stdout.readline() == "making\n"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 0, err
    assert "Traceback" not in err


def test_shutdown_from_outside():
    process = start("""
        import rclpy
        class Ending(Quiet):
            def tick(self):
                rclpy.try_shutdown()
        sys.exit(run(Ending))
    """)
    code, _, err = finish(process)
    assert code == 0, err
    assert "Traceback" not in err


def test_a_wrong_parameter_is_one_line_and_code_1():
    process = start("""
        class Refusing(Quiet):
            def __init__(self):
                raise ParameterError("rate_hz", 0.0, "give a value from 1 to 200")
        sys.exit(run(Refusing))
    """)
    code, out, err = finish(process)
    assert code == 1
    assert "Refusing" in out + err
    assert "parameter 'rate_hz' is 0.0: give a value from 1 to 200" in out + err
    assert "Traceback" not in err


def test_a_bug_keeps_its_trace():
    process = start("""
        class Broken(Quiet):
            def tick(self):
                raise RuntimeError("a bug")
        sys.exit(run(Broken))
    """)
    code, _, err = finish(process)
    assert code == 1
    assert "RuntimeError: a bug" in err
