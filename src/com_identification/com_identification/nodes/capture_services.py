"""Captures and tares that wait until the session is stationary, and automatic captures.

Services: ~/capture_posture, ~/tare_wrench.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from com_identification.exceptions import CaptureRefused, IdentificationError, StoreError
from com_identification.feet.feet_reading import estimate_wrench_bias
from com_identification.nodes.identification_session import Parameters, Session
from com_identification.regression.priors import body_priors
from com_model.arrays import Array
from com_msgs.srv import CapturePosture, TareWrench
from com_ros.conversions import numpy_to_wrench
from com_ros.jobs import DeferredService, Reply
from com_ros.robot_node import RobotNode


@dataclass
class _PendingRequest:
    """A request that is served as soon as the readings allow it."""

    request: Any
    reply: Reply
    deadline: float
    serve: Callable[[Session, Any], Any]
    refuse: Callable[[list[str]], Any]


class CaptureServices:
    """Services that need a stationary robot; `reasons` returns why there is none now."""

    def __init__(self, node: RobotNode[Parameters], reasons: Callable[[], list[str]]) -> None:
        self._node, self._reasons = node, reasons
        self._logger = node.get_logger()
        self._pending: list[_PendingRequest] = []
        self._logged = ""
        for kind, name, serve, refusal in (
            (CapturePosture, "capture_posture", self._capture, "no posture"),
            (TareWrench, "tare_wrench", self._tare, "not tared"),
        ):
            begin = partial(self._add_request, serve, partial(_refuse, kind, refusal))
            DeferredService(node, kind, f"~/{name}", begin)

    @property
    def waiting(self) -> bool:
        """Whether a request is pending."""
        return bool(self._pending)

    def serve(self, session: Session | None) -> None:
        """Serves the requests that can be served, in their order."""
        for pending in list(self._pending):
            answer = self._try(pending, session)
            if answer is not None:
                self._pending.remove(pending)
                pending.reply(answer)

    def _try(self, pending: _PendingRequest, session: Session | None) -> Any:
        reasons = self._reasons()
        if session is not None:
            try:
                return pending.serve(session, pending.request)
            except CaptureRefused as error:
                reasons = list(dict.fromkeys((*reasons, *error.reasons)))
            except IdentificationError as error:
                return pending.refuse([str(error)])
        return pending.refuse(reasons) if time.monotonic() > pending.deadline else None

    def store_finished(self, session: Session, *, ended: bool = False) -> None:
        """Stores the postures of intervals that ended; `ended` when no more readings will come."""
        recorder = session.recorder
        for interval in recorder.flush() if ended else recorder.finished():
            if not self._node.parameters.auto_capture:
                continue
            if interval.posture is None:
                text = f"no posture: {' '.join(interval.reasons)}"
                if text != self._logged:
                    self._logger.info(text)
                self._logged = text
                continue
            try:
                identity = session.store.add(interval.posture, interval.t1_ns)
            except StoreError as error:
                self._logger.error(f"a posture is lost: {error}")
                continue
            recorder.mark_stored(interval)
            self._logger.info(f"posture {identity}: {interval.posture.samples} samples")

    # --- captures ----------------------------------------------------------------------------
    def _capture(
        self, session: Session, request: CapturePosture.Request
    ) -> CapturePosture.Response:
        store = session.store  # raises if it cannot be opened
        now_ns, time_ns = session.buffer.now_ns, session.buffer.newest_ns
        posture = session.recorder.capture(request.label, request.samples or None, now_ns)
        identity = store.add(posture, time_ns)
        captured = session.describe(identity, posture)
        problems = f"; but {' '.join(captured.problems)}" if captured.problems else ""
        message = f"posture {identity} of {len(store.postures)}: {posture.samples} samples"
        self._logger.info(message + problems)
        return CapturePosture.Response(success=True, message=message + problems, posture=captured)

    # --- tare --------------------------------------------------------------------------------
    def _tare(self, session: Session, request: TareWrench.Request) -> TareWrench.Response:
        store, feet = session.store, _feet(session, request.foot)
        biases = [_measure_bias(session, foot, request) for foot in feet]
        for foot, bias in zip(feet, biases, strict=True):
            store.set_bias(foot, bias)
        session.recorder.set_bias(store.bias)
        names = [session.config.feet[foot].frame for foot in feet]
        done = "cleared the bias of" if request.clear else "tared"
        self._logger.info(f"{done} {', '.join(names)}")
        return TareWrench.Response(
            success=True,
            message=f"{done} {', '.join(names)}; postures captured before stay as they are",
            feet=names,
            biases=[numpy_to_wrench(bias) for bias in biases],
        )

    def _add_request(
        self,
        serve: Callable[[Session, Any], Any],
        refuse: Callable[[list[str]], Any],
        request: Any,
        reply: Reply,
    ) -> None:
        deadline = time.monotonic() + (request.timeout or self._node.parameters.capture_timeout)
        self._pending.append(_PendingRequest(request, reply, deadline, serve, refuse))


def _feet(session: Session, name: str) -> list[int]:
    frames = [foot.frame for foot in session.config.feet]
    if not name:
        return list(range(len(frames)))
    if name not in frames:
        raise IdentificationError(f"no foot {name!r}: there are {', '.join(frames)}")
    return [frames.index(name)]


def _measure_bias(session: Session, foot: int, request: TareWrench.Request) -> Array:
    """The bias of a foot's sensor, (6,) as read."""
    samples, now_ns = request.samples or None, session.buffer.now_ns
    if request.clear:
        return np.zeros(6)
    if not request.single_support:
        return session.recorder.measure_bias(foot, samples, now_ns)
    if not request.foot:
        raise IdentificationError("single_support: name the foot that carries the robot")
    posture = session.recorder.latest(samples, now_ns)
    if posture is None:
        raise CaptureRefused(session.recorder.state(now_ns).reasons)
    model, settings = session.model, session.settings
    excess = estimate_wrench_bias(
        model,
        session.config.feet,
        posture,
        foot,
        body_priors(model, settings),
        settings.fit.gravity,
    )
    return np.asarray(session.store.bias[foot] + excess)


def _refuse(kind: Any, refusal: str, reasons: list[str]) -> Any:
    response = kind.Response(success=False, message=f"{refusal}: {' '.join(reasons)}")
    if hasattr(response, "reasons"):
        response.reasons = reasons
    return response
