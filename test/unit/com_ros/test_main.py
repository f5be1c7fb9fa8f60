"""How a node's process ends: exit codes, signals and what it prints."""

import os
import signal
import struct
import subprocess
import sys
import textwrap

import pytest
import rclpy
from raw_writer import RawWriter
from rcl_interfaces.srv import SetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter_client import AsyncParameterClient

pytestmark = pytest.mark.slow

EXECUTORS = ["SingleThreadedExecutor", "make_fast_executor"]

HEAD = """
import sys, time
from com_ros.main import make_fast_executor
from rclpy.executors import SingleThreadedExecutor
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


def check_clean_end(process):
    """It ends with code 0 and no trace; return what it printed."""
    code, out, err = finish(process)
    assert code == 0, err
    assert "Traceback" not in err
    return out


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGALRM])
def test_a_signal_ends_it_with_code_0_and_no_trace(number, executor):
    """The alarm is that of an interrupt which came during the last import before."""
    process = start(f"sys.exit(run(Quiet, make_executor={executor}))")
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    check_clean_end(process)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_interrupt_lets_a_callback_end(executor):
    process = start(f"""
        class Busy(Quiet):
            def tick(self):
                print("begun", flush=True)
                end = time.monotonic() + 0.3
                while time.monotonic() < end:
                    pass
                print("ended", flush=True)
        sys.exit(run(Busy, make_executor={executor}))
    """)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 0, err
    assert out.endswith("ended\n")
    assert "FATAL" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("where", ["timer", "topic"])
def test_a_signal_in_a_callback_that_publishes(number, where):
    """ROS is shut down before it publishes: no FATAL line of the executor."""
    process = start(f"""
        from com_ros import qos
        from com_ros.parameters import RobotParameters
        from com_ros.robot_node import RobotNode
        from std_msgs.msg import String
        class Busy(RobotNode):
            def __init__(self):
                super().__init__("busy", RobotParameters)
                self.publisher = self.create_publisher(String, "topic", 10)
                self.subscribe_with(String, "topic", lambda msg: self.work("topic"), qos.RESULT)
                self.create_steady_timer(0.1, lambda: self.work("timer"))
            def work(self, where):
                if where == "{where}":
                    print("begun", flush=True)
                    time.sleep(0.5)
                self.publisher.publish(String(data="x"))
        sys.exit(run(Busy, make_executor=make_fast_executor))
    """)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(number)
    code, _, err = finish(process)
    assert code == 0, err
    assert "FATAL" not in err


def test_no_single_array_takes_the_machines_memory():
    """As the middleware makes one for a request that says that it is long."""
    process = start("""
        class Greedy(Quiet):
            def tick(self):
                try:
                    bytearray(2**30 + 2**28)
                    print("taken", flush=True)
                except MemoryError:
                    bytearray(2**29)
                    print("refused", flush=True)
        sys.exit(run(Greedy, make_executor=make_fast_executor))
    """)
    assert process.stdout.readline() == "refused\n"
    process.send_signal(signal.SIGINT)
    check_clean_end(process)


def test_a_request_that_claims_to_be_long_ends_nothing():
    """One word after the other says that an array of a parameter's value is long."""
    process = start("""
        import resource
        resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))
        sys.exit(run(Quiet))
    """)
    context = Context()
    rclpy.init(context=context)
    client = Node("client", context=context)
    service, kind = "/quiet/set_parameters", SetParameters.Request
    writer = RawWriter(client, service, kind)
    names = AsyncParameterClient(client, "quiet")
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(client)
    assert process.stdout.readline() == "ready\n"
    assert names.wait_for_services(30.0)
    parameter = b"\0\1\0\0" + struct.pack("<II", 1, 1) + bytes(4)
    for place in range(20, 60, 4):
        writer.send(parameter + bytes(place) + struct.pack("<I", 2**28) + bytes(40))
        answer = names.list_parameters()
        executor.spin_until_future_complete(answer, 60.0)
        assert "use_sim_time" in answer.result().result.names
    writer.close()
    executor.shutdown()
    client.destroy_node()
    rclpy.shutdown(context=context)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 0, err
    assert "it is too long" in err


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_second_interrupt_does_not_break_the_clean_up(executor):
    process = start(f"""
        class Slow(Quiet):
            def destroy_node(self):
                print("closing", flush=True)
                time.sleep(0.3)
                super().destroy_node()
                print("closed", flush=True)
        sys.exit(run(Slow, make_executor={executor}))
    """)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "closing\n"
    process.send_signal(signal.SIGINT)
    assert check_clean_end(process) == "closed\n"


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
    check_clean_end(process)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_shutdown_from_outside(executor):
    process = start(f"""
        import rclpy
        class Ending(Quiet):
            def tick(self):
                rclpy.try_shutdown()
        sys.exit(run(Ending, make_executor={executor}))
    """)
    check_clean_end(process)


def test_kernels_load_scipys_linear_algebra_only_when_they_use_it():
    body = """
        import numba, numpy as np

        def without(a):
            return a.sum()

        def with_product(a):
            return a @ a

        class Kernels(Quiet):
            def __init__(self):
                super().__init__()
                numba.njit(without)(np.eye(2))
                print("scipy.linalg" in sys.modules)
                print(numba.njit(with_product)(np.eye(2)).tolist())
                print("scipy.linalg" in sys.modules)
                raise KeyboardInterrupt

        sys.exit(run(Kernels))
    """
    code, out, err = finish(start(body))
    assert code == 0, err
    assert out.splitlines() == ["False", "[[1.0, 0.0], [0.0, 1.0]]", "True"]


def test_an_interrupt_while_a_kernel_makes_numba_import_scipy(tmp_path):
    """Machine code that was cached imports it at its first call, and cannot pass on exceptions."""
    kernel = "import numba, numpy as np\n@numba.njit(cache=True)\ndef square(a):\n"
    (tmp_path / "kernel.py").write_text(f"{kernel}    return a @ a\n")
    body = f"""
        import numba, numpy, os, signal
        sys.path.insert(0, {str(tmp_path)!r})

        class Interrupting:
            def find_spec(name, path, target=None):
                if name == "scipy.linalg" and {{interrupting}}:
                    print("importing", flush=True)
                    os.kill(os.getpid(), signal.SIGINT)

        class Kernels(Quiet):
            def __init__(self):
                super().__init__()
                import kernel
                sys.meta_path.insert(0, Interrupting)
                kernel.square(numpy.eye(2))
                print("squared", flush=True)
                time.sleep({{pause}})
                print("too late", flush=True)
                raise KeyboardInterrupt

        sys.exit(run(Kernels))
    """
    assert "squared" in check_clean_end(start(body.format(interrupting=False, pause=0)))
    said = check_clean_end(start(body.format(interrupting=True, pause=30)))
    # The interrupt, tried again until the import is over, may come as soon as the kernel returns.
    assert said in ("importing\n", "importing\nsquared\n")


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


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_bug_keeps_its_trace(executor):
    process = start(f"""
        class Broken(Quiet):
            def tick(self):
                raise RuntimeError("a bug")
        sys.exit(run(Broken, make_executor={executor}))
    """)
    code, _, err = finish(process)
    assert code == 1
    assert "RuntimeError: a bug" in err


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_spinning_node_hears_timers_topics_and_parameter_services(executor):
    process = start(f"""
        from rcl_interfaces.srv import GetParameters
        from std_msgs.msg import String
        class Busy(Quiet):
            def __init__(self):
                super().__init__()
                self.declare_parameter("answer", 42)
                self.received = []
                self.create_subscription(String, "topic", self.received.append, 10)
                self.publisher = self.create_publisher(String, "topic", 10)
                self.client = self.create_client(GetParameters, "~/get_parameters")
                self.future = None
            def tick(self):
                self.publisher.publish(String(data="x"))
                if self.future is None and self.client.service_is_ready():
                    self.future = self.client.call_async(GetParameters.Request(names=["answer"]))
                if self.received and self.future is not None and self.future.done():
                    print(self.future.result().values[0].integer_value, flush=True)
                    raise KeyboardInterrupt
        sys.exit(run(Busy, make_executor={executor}))
    """)
    code, out, err = finish(process)
    assert (code, out) == (0, "42\n"), err


def test_an_idle_node_sleeps():
    process = start("""
        class Idle(Node):
            def __init__(self):
                super().__init__("idle")
                self.create_timer(1.0, self.look)
                self.used = None
            def look(self):
                if self.used is not None:
                    print("asleep" if time.process_time() - self.used < 0.5 else "busy", flush=True)
                    raise KeyboardInterrupt
                self.used = time.process_time()
        sys.exit(run(Idle, make_executor=make_fast_executor))
    """)
    code, out, err = finish(process)
    assert (code, out) == (0, "asleep\n"), err
