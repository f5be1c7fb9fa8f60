"""Captures and tares that wait for the robot to stand still, and postures taken by themselves.

Services: ~/capture_posture, ~/tare_wrench.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rclpy.node import Node

from com_identification.exceptions import CaptureRefused, IdentificationError, StoreError
from com_identification.feet.feet_reading import estimate_wrench_bias
from com_identification.nodes.com_identification_parameters import Parameters
from com_identification.nodes.com_identification_robot import Robot
from com_identification.nodes.identification_conversions import numpy_to_captured_posture
from com_model.arrays import Array
from com_msgs.srv import CapturePosture, TareWrench
from com_ros.conversions import ns_to_stamp, numpy_to_wrench
from com_ros.jobs import DeferredService, Reply


@dataclass
class _Wish:
    """Something to be done as soon as the readings allow it."""

    request: Any
    reply: Reply
    deadline: float
    fulfil: Callable[[Robot, Any], Any]
    refuse: Callable[[list[str]], Any]


class CaptureDesk:
    """Serves the services that need a robot at rest.

    Args:
        node: that serves.
        p: its parameters.
        reasons: tells why nothing can be captured at present.
    """

    def __init__(self, node: Node, p: Parameters, reasons: Callable[[], list[str]]) -> None:
        self._p, self._reasons = p, reasons
        self._logger = node.get_logger()
        self._wishes: list[_Wish] = []
        self._said = ""
        DeferredService(node, CapturePosture, "~/capture_posture", self._on_capture)
        DeferredService(node, TareWrench, "~/tare_wrench", self._on_tare)

    @property
    def waiting(self) -> bool:
        """Whether somebody waits."""
        return bool(self._wishes)

    def serve(self, robot: Robot | None) -> None:
        """Fulfils the wishes that can be fulfilled, in their order."""
        for wish in list(self._wishes):
            answer = self._try(wish, robot)
            if answer is not None:
                self._wishes.remove(wish)
                wish.reply(answer)

    def _try(self, wish: _Wish, robot: Robot | None) -> Any:
        reasons = self._reasons()
        if robot is not None:
            try:
                return wish.fulfil(robot, wish.request)
            except CaptureRefused as error:
                reasons = list(dict.fromkeys((*reasons, *error.reasons)))
            except IdentificationError as error:
                return wish.refuse([str(error)])
        return wish.refuse(reasons) if time.monotonic() > wish.deadline else None

    def take_finished(self, robot: Robot, *, ended: bool = False) -> None:
        """Takes still intervals that are over; `ended` when no more readings will come."""
        recorder = robot.recorder
        for interval in recorder.flush() if ended else recorder.finished():
            if not self._p.auto_capture:
                continue
            if interval.posture is None:
                self._say_once(f"no posture: {' '.join(interval.reasons)}")
                continue
            try:
                identity = robot.add(interval.posture, interval.t1_ns)
            except StoreError as error:
                self._logger.error(f"a posture is lost: {error}")
                continue
            recorder.mark_stored(interval)
            self._logger.info(f"posture {identity}: {interval.posture.samples} samples")

    def _say_once(self, text: str) -> None:
        """Logs a text; not again and again while a robot stands for hours."""
        if text != self._said:
            self._said = text
            self._logger.info(text)

    # --- captures ----------------------------------------------------------------------------
    def _on_capture(self, request: CapturePosture.Request, reply: Reply) -> None:
        self._wish(request, reply, self._capture, _no_posture)

    def _capture(self, robot: Robot, request: CapturePosture.Request) -> CapturePosture.Response:
        store = robot.store  # one that cannot be opened is said at once
        now_ns, time_ns = robot.readings.now_ns, robot.readings.newest_ns
        posture = robot.recorder.capture(request.label, request.samples or None, now_ns)
        identity = robot.add(posture, time_ns)
        values = robot.describe(identity, posture)
        problems = f"; but {' '.join(values.problems)}" if values.problems else ""
        message = f"posture {identity} of {len(store.postures)}: {posture.samples} samples"
        self._logger.info(message + problems)
        captured = numpy_to_captured_posture(values, ns_to_stamp(time_ns), robot.frame)
        return CapturePosture.Response(success=True, message=message + problems, posture=captured)

    # --- tare --------------------------------------------------------------------------------
    def _on_tare(self, request: TareWrench.Request, reply: Reply) -> None:
        self._wish(request, reply, self._tare, _no_tare)

    def _tare(self, robot: Robot, request: TareWrench.Request) -> TareWrench.Response:
        store, feet = robot.store, _feet(robot, request.foot)
        zeros = [_zero(robot, foot, request) for foot in feet]
        for foot, zero in zip(feet, zeros, strict=True):
            store.set_tare(foot, zero)
        robot.recorder.set_bias(store.tare)
        names = [robot.config.feet[foot].frame for foot in feet]
        done = "forgotten the zero of" if request.clear else "tared"
        self._logger.info(f"{done} {', '.join(names)}")
        return TareWrench.Response(
            success=True,
            message=f"{done} {', '.join(names)}; postures captured before stay as they are",
            feet=names,
            biases=[numpy_to_wrench(zero) for zero in zeros],
        )

    def _wish(
        self,
        request: Any,
        reply: Reply,
        fulfil: Callable[[Robot, Any], Any],
        refuse: Callable[[list[str]], Any],
    ) -> None:
        deadline = time.monotonic() + (request.timeout or self._p.capture_timeout)
        self._wishes.append(_Wish(request, reply, deadline, fulfil, refuse))


def _feet(robot: Robot, name: str) -> list[int]:
    frames = [foot.frame for foot in robot.config.feet]
    if not name:
        return list(range(len(frames)))
    if name not in frames:
        raise IdentificationError(f"no foot {name!r}: there are {', '.join(frames)}")
    return [frames.index(name)]


def _zero(robot: Robot, foot: int, request: TareWrench.Request) -> Array:
    """What a foot's sensor reads without load, (6,) as read."""
    samples, now_ns = request.samples or None, robot.readings.now_ns
    if request.clear:
        return np.zeros(6)
    if not request.single_support:
        return robot.recorder.measure_bias(foot, samples, now_ns)
    if not request.foot:
        raise IdentificationError("single_support: name the foot that carries all")
    posture = robot.recorder.latest(samples, now_ns)
    if posture is None:
        raise CaptureRefused(robot.recorder.state(now_ns).reasons)
    model, settings = robot.model, robot.settings
    excess = estimate_wrench_bias(
        model, robot.config.feet, posture, foot, settings.priors(model), settings.fit.gravity
    )
    return np.asarray(robot.store.tare[foot] + excess)


def _no_posture(reasons: list[str]) -> CapturePosture.Response:
    message = f"no posture: {' '.join(reasons)}"
    return CapturePosture.Response(success=False, message=message, reasons=reasons)


def _no_tare(reasons: list[str]) -> TareWrench.Response:
    return TareWrench.Response(success=False, message=f"not tared: {' '.join(reasons)}")
