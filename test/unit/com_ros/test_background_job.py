"""Jobs beside a node's callbacks: done in order in one thread, handed on in the executor's."""

import threading
import time

import pytest
from rclpy.executors import SingleThreadedExecutor

from com_ros.jobs import BackgroundJobs

PATIENCE = 250.0  # s, of a busy machine: nothing here takes that long


@pytest.fixture
def node(make_node):
    return make_node()


@pytest.fixture(params=["SingleThreadedExecutor", "EventsExecutor"])
def spin(ros_context, node, request):
    kind = SingleThreadedExecutor
    if request.param == "EventsExecutor":
        kind = pytest.importorskip("rclpy.experimental.events_executor").EventsExecutor
    executor = kind(context=ros_context)

    def until(condition):
        if node.executor is None:
            executor.add_node(node)
        limit = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < limit
            executor.spin_once(timeout_sec=0.5)

    yield until
    executor.shutdown()


def test_results_come_in_order_in_the_executors_thread(node, spin):
    jobs, got, threads = BackgroundJobs(node), [], set()

    def work(number):
        threads.add(threading.get_ident())
        return number

    def then(result):
        got.append((result, threading.get_ident()))

    for number in range(5):
        jobs.do(lambda number=number: work(number), then)
    spin(lambda: len(got) == 5)
    assert got == [(number, threading.get_ident()) for number in range(5)]
    assert len(threads) == 1
    assert threading.get_ident() not in threads
    jobs.close()


def test_what_is_raised_is_handed_on(node, spin):
    jobs, got = BackgroundJobs(node), []

    def fail():
        raise ValueError("no")

    jobs.do(fail, got.append)
    jobs.do(lambda: 3, got.append)
    spin(lambda: len(got) == 2)
    assert isinstance(got[0], ValueError)
    assert got[1] == 3
    jobs.close()


def test_what_is_done_before_there_is_an_executor_is_handed_on(node, spin):
    jobs, got, done = BackgroundJobs(node), [], threading.Event()
    jobs.do(lambda: 3, got.append)
    jobs.do(done.set, got.append)
    assert done.wait(PATIENCE)
    spin(lambda: len(got) == 2)
    jobs.close()


def test_after_the_close_nothing_is_handed_on(node):
    jobs, got, begun, go = (
        BackgroundJobs(node),
        [],
        threading.Event(),
        threading.Event(),
    )

    def work():
        begun.set()
        go.wait(PATIENCE)

    jobs.do(work, got.append)
    jobs.do(lambda: 3, got.append)
    assert begun.wait(PATIENCE)
    threading.Timer(0.05, go.set).start()
    jobs.close()
    jobs.finish()
    assert got == []
