"""Nonsense on topics that one node alone listens to: commands, estimates of other nodes.

For benchmarks/faults.py, beside the drivers' faults of fault_cases.py that all nodes get.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from fault_cases import Batch, Fault, Progress
from geometry_msgs.msg import Point, PointStamped, TransformStamped, Twist, Vector3
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from com_msgs import msg as msgs

NUMBERS = (math.nan, math.inf, 1e300, -1e6)
PERIOD = 10  # instants between two messages
Make = Callable[[], Any]

TOPICS: dict[str, dict[str, type]] = {
    "com_balancer": {"balance/com_desired": PointStamped},
    "ccgd_gait": {"gait/footsteps": msgs.WalkGoal, "cmd_vel": Twist},
    "trot_gait": {"trunk_com": msgs.TrunkCom},
    "trunk_estimator": {"gait/stance": msgs.GaitPhase},
    "com_identification": {"known_com": PointStamped, "gait/state": msgs.WalkState},
    "com_viewer": {
        "com": msgs.CenterOfMass,
        "sesc": msgs.SescChain,
        "trunk_com": msgs.TrunkCom,
        "ground_reaction": msgs.GroundReaction,
        "diagnosis": msgs.CentroidalDiagnosis,
        "gait/state": msgs.WalkState,
        "gait/markers": MarkerArray,
        "identification/result": msgs.IdentificationResult,
        "/tf": TFMessage,
    },
}


def input_faults(node: str) -> list[Fault]:
    """Those of a node; none where it listens to the drivers only."""
    return [
        Fault(f"input {topic}: {what}", _added(topic, make))
        for topic in TOPICS.get(node, {})
        for what, make in _MESSAGES[topic]()
    ]


def _added(topic: str, make: Make) -> Callable[[Batch, Progress], Batch]:
    def change(batch: Batch, progress: Progress) -> Batch:
        if progress.tick % PERIOD:
            return batch
        msg = make()
        if hasattr(msg, "header") and batch and msg.header.stamp == Time():
            msg.header.stamp = batch[0][1].header.stamp
        return [*batch, (topic, msg)]

    return change


def _points() -> Iterator[tuple[str, Make]]:
    """A CoM that is no place, or of no frame."""
    for value in (*NUMBERS, 10.0):
        yield f"x {value:g}", partial(PointStamped, point=Point(x=value))

    def of_no_frame() -> PointStamped:
        msg = PointStamped()
        msg.header.frame_id = "no_such_frame" * 50
        return msg

    yield "unknown frame", of_no_frame


def _velocities() -> Iterator[tuple[str, Make]]:
    for value in NUMBERS:
        yield (
            f"{value:g}",
            partial(Twist, linear=Vector3(x=value), angular=Vector3(z=value)),
        )


def _goals() -> Iterator[tuple[str, Make]]:
    for value in NUMBERS:
        yield (
            f"step_length {value:g}",
            partial(msgs.WalkGoal, steps=[4], step_length=[value]),
        )
        yield (
            f"step_time {value:g}",
            partial(msgs.WalkGoal, steps=[4], step_time=[value]),
        )
    yield "2e9 steps", lambda: msgs.WalkGoal(steps=[2_000_000_000])
    yield "-1 steps", lambda: msgs.WalkGoal(steps=[-1])
    yield "unknown method", lambda: msgs.WalkGoal(steps=[4], method="x" * 100_000)
    yield (
        "footsteps of no side",
        lambda: msgs.WalkGoal(footsteps=[msgs.Footstep()] * 1000),
    )


def _trunks() -> Iterator[tuple[str, Make]]:
    for value in NUMBERS:
        for name in ("covariance", "offset_from_center", "mass"):

            def make(name: str = name, value: float = value) -> msgs.TrunkCom:
                msg = msgs.TrunkCom(status=msgs.TrunkCom.STATUS_CONVERGED, mass=10.0)
                wrong: Any = value
                if name == "covariance":
                    wrong = [value] * 9
                elif name == "offset_from_center":
                    wrong = Vector3(x=value, y=value, z=value)
                setattr(msg, name, wrong)
                return msg

            yield f"{name} {value:g}", make
    yield "unknown status", lambda: msgs.TrunkCom(status=255)


def _phases() -> Iterator[tuple[str, Make]]:
    yield "no legs", lambda: msgs.GaitPhase(state=msgs.GaitPhase.TROTTING)
    yield (
        "unknown legs",
        lambda: msgs.GaitPhase(state=3, legs=["x" * 1000] * 4, phase=math.nan),
    )
    yield "unknown state", lambda: msgs.GaitPhase(state=255)


def _coms() -> Iterator[tuple[str, Make]]:
    for value in NUMBERS:
        make = partial(msgs.CenterOfMass, status=5, position=Point(x=value))
        yield f"position {value:g}", make
    yield (
        "unknown contacts",
        lambda: msgs.CenterOfMass(status=5, contacts=["nobody"] * 1000),
    )
    yield "unknown status", lambda: msgs.CenterOfMass(status=255)


def _chains() -> Iterator[tuple[str, Make]]:
    yield "no points", msgs.SescChain
    yield "a point nan", lambda: msgs.SescChain(points=[Point(x=math.nan)] * 3)
    yield "100 000 points", lambda: msgs.SescChain(points=[Point()] * 100_000)


def _reactions() -> Iterator[tuple[str, Make]]:
    yield "a foot without force", lambda: msgs.GroundReaction(feet=["l_sole"])
    yield (
        "unknown foot",
        lambda: msgs.GroundReaction(feet=["nobody"], forces=[Vector3(z=9.0)]),
    )
    yield (
        "a force nan",
        lambda: msgs.GroundReaction(feet=["l_sole"], forces=[Vector3(z=math.nan)]),
    )


def _diagnoses() -> Iterator[tuple[str, Make]]:
    for value in NUMBERS:
        make = partial(msgs.CentroidalDiagnosis, covariance=np.full(9, value))
        yield f"covariance {value:g}", make


def _walks() -> Iterator[tuple[str, Make]]:
    yield "unknown state", lambda: msgs.WalkState(state=255, com_error=math.nan)
    yield "zmp nan", lambda: msgs.WalkState(zmp=Point(x=math.nan))
    for value in NUMBERS:
        make = partial(
            msgs.WalkState, com_offset=[value, 0.0], com_offset_std=[1e-3, 1e-3]
        )
        yield f"offset {value:g}", make


def _markers() -> Iterator[tuple[str, Make]]:
    for count in (3, 8):
        points = [Point(x=math.nan)] * count
        marker = Marker(ns="footsteps_left", points=points)
        yield f"{count} points nan", partial(MarkerArray, markers=[marker])


def _results() -> Iterator[tuple[str, Make]]:
    body = msgs.IdentifiedBody(name="nobody", trusted=True, com=Point(x=math.nan))
    yield (
        "unknown body",
        lambda: msgs.IdentificationResult(bodies=[body], total_mass=math.nan),
    )


def _frames() -> Iterator[tuple[str, Make]]:
    for value in (0.0, math.nan, 1e300):
        msg = TransformStamped(child_frame_id="BODY")
        msg.transform.rotation.w = value
        yield f"rotation {value:g}", partial(TFMessage, transforms=[msg])


_MESSAGES: dict[str, Callable[[], Iterator[tuple[str, Make]]]] = {
    "balance/com_desired": _points,
    "known_com": _points,
    "gait/footsteps": _goals,
    "cmd_vel": _velocities,
    "trunk_com": _trunks,
    "gait/stance": _phases,
    "com": _coms,
    "sesc": _chains,
    "ground_reaction": _reactions,
    "diagnosis": _diagnoses,
    "gait/state": _walks,
    "gait/markers": _markers,
    "identification/result": _results,
    "/tf": _frames,
}
