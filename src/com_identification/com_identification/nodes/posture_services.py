"""Services of com_identification for postures: capture, storage and files.

~/capture_posture and ~/tare_wrench wait until the robot is stationary; ~/get_postures,
~/remove_posture, ~/reset, ~/save, ~/load and ~/export_urdf answer immediately. Also captures
automatically.
"""

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from std_srvs.srv import Trigger

from com_identification.exceptions import (
    CaptureRefused,
    IdentificationError,
    OutputError,
    StoreError,
)
from com_identification.feet.feet_reading import estimate_wrench_bias
from com_identification.nodes.identification_session import Parameters, Session
from com_identification.regression.priors import body_priors
from com_identification.store import results
from com_identification.store.store import SUFFIX
from com_identification.walking.unknowns import corrected_urdf
from com_model.arrays import Array
from com_msgs import srv
from com_ros.conversions import numpy_to_wrench
from com_ros.jobs import DeferredService, Reply
from com_ros.robot_node import RobotNode

Handler = Callable[[Session, Any, Any], None]
"""Fills a response; a ComModelError becomes a refusal."""


class PostureServices:
    """Captures postures on request, and manages the files of postures.

    Args:
        node: that offers the services.
        session: returns the current session, or raises IdentificationError.
        reasons: returns why nothing can be captured now, sentences.
        on_change: called when the result is dropped with its postures.
    """

    def __init__(
        self,
        node: RobotNode[Parameters],
        session: Callable[[], Session],
        reasons: Callable[[], list[str]],
        on_change: Callable[[], None],
    ) -> None:
        self._node, self._session, self._reasons = node, session, reasons
        self._on_change, self._logger = on_change, node.get_logger()
        self._pending: list[
            Callable[[], bool]
        ] = []  # answers a request, if that is possible now
        self._logged = ""
        for kind, name, handler, refusal in (
            (srv.CapturePosture, "capture_posture", self._capture, "no posture"),
            (srv.TareWrench, "tare_wrench", self._tare, "not tared"),
        ):
            DeferredService(
                node, kind, f"~/{name}", partial(self._defer, kind, handler, refusal)
            )
        for kind, name, handler in (
            (srv.GetPostures, "get_postures", self._get),
            (srv.RemovePosture, "remove_posture", self._remove),
            (Trigger, "reset", self._reset),
            (srv.SavePostures, "save", self._save),
            (srv.LoadPostures, "load", self._load),
            (srv.ExportUrdf, "export_urdf", self._export),
        ):
            node.create_service(kind, f"~/{name}", partial(self._answer, handler))

    @property
    def waiting(self) -> bool:
        """Whether a request is pending."""
        return bool(self._pending)

    def serve(self) -> None:
        """Serves the requests that can be served, in their order."""
        self._pending = [answer for answer in self._pending if not answer()]

    def _defer(
        self, kind: Any, handler: Handler, refusal: str, request: Any, reply: Reply
    ) -> None:
        longest = 3600.0  # s, that a request may wait
        if not 0.0 <= request.timeout <= longest:
            reply(
                kind.Response(
                    message=f"{refusal}: timeout {request.timeout:g}: give 0 to {longest:g} s"
                )
            )
            return
        deadline = time.monotonic() + (
            request.timeout or self._node.parameters.capture_timeout
        )

        def answer() -> bool:
            response, reasons = kind.Response(success=True), None
            try:
                handler(self._session(), request, response)
            except CaptureRefused as error:
                if time.monotonic() <= deadline:
                    return False
                reasons = list(dict.fromkeys((*self._reasons(), *error.reasons)))
            except IdentificationError as error:
                reasons = [str(error)]
            if reasons is not None:
                response = kind.Response(message=f"{refusal}: {' '.join(reasons)}")
                if hasattr(response, "reasons"):
                    response.reasons = reasons
            reply(response)
            return True

        self._pending.append(answer)

    def _answer(self, handler: Handler, request: Any, response: Any) -> Any:
        handler(self._session(), request, response)
        response.success = True
        return response

    def store_finished(self, session: Session, *, ended: bool = False) -> None:
        """Stores the postures of intervals that ended, if auto_capture is set.

        Args:
            session: with the recorder and the store.
            ended: whether no more readings are expected, so that the last interval has ended
                too.
        """
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
    def _capture(self, session: Session, request: Any, response: Any) -> None:
        store = session.store  # raises if it cannot be opened
        now_ns, time_ns = session.buffer.now_ns, session.buffer.newest_ns
        posture = session.recorder.capture(
            request.label, request.seconds or None, now_ns
        )
        identity = store.add(posture, time_ns)
        response.posture = session.describe(identity, posture)
        response.message = (
            f"posture {identity} of {len(store.postures)}: {posture.samples} samples"
        )
        if posture.constraints:
            response.message += (
                f", {len(posture.constraints)} components of the CoM by known_com"
            )
        if response.posture.problems:
            response.message += f"; but {' '.join(response.posture.problems)}"
        self._logger.info(response.message)

    def _tare(self, session: Session, request: Any, response: Any) -> None:
        store, feet = session.store, _feet(session, request.foot)
        if request.diagnosed:
            zeros = session.diagnosed_zeros()
            feet = [foot for foot in feet if foot in zeros]
            if not feet:
                raise IdentificationError(
                    "no zero of a force sensor is named: "
                    "let the robot walk until the topic diagnosis names one"
                )
            biases = [zeros[foot] for foot in feet]
        else:
            biases = [_measure_bias(session, foot, request) for foot in feet]
        for foot, bias in zip(feet, biases, strict=True):
            store.set_bias(foot, bias)
        session.recorder.set_bias(store.bias)
        response.feet = [session.config.feet[foot].frame for foot in feet]
        response.biases = [numpy_to_wrench(bias) for bias in biases]
        done = "cleared the bias of" if request.clear else "tared"
        done = f"{done} {', '.join(response.feet)}"
        self._logger.info(done)
        response.message = f"{done}; postures captured before stay as they are"

    # --- what is stored ----------------------------------------------------------------------
    def _get(self, session: Session, request: Any, response: Any) -> None:
        postures = session.store.postures
        response.postures = [
            session.describe(i, posture) for i, posture in postures.items()
        ]
        response.message = f"{len(postures)} postures in {session.store.path}"

    def _remove(self, session: Session, request: Any, response: Any) -> None:
        session.store.remove(request.id)
        response.message = (
            f"removed posture {request.id}; {len(session.store.postures)} are left"
        )

    def _reset(self, session: Session, request: Any, response: Any) -> None:
        backup = session.store.reset()
        self._drop_results(session)
        moved = f"; the previous ones are in {backup}" if backup else ""
        response.message = f"no postures are stored{moved}"

    def _save(self, session: Session, request: Any, response: Any) -> None:
        path = self._path(session, request.name)
        response.path = str(session.store.save(path, request.overwrite))
        if (result := session.result) is not None:
            stored = session.store.postures
            used = [stored[identity] for identity in result.ids if identity in stored]
            found = result.identification
            document = results.to_document(found, session.model, session.settings, used)
            result_path = results.write_yaml(
                path.with_suffix(".yaml"), document, request.overwrite
            )
            response.result_path = str(result_path)
        count = len(session.store.postures)
        response.message = f"{count} postures in {response.path}" + (
            f", the result in {response.result_path}" if response.result_path else ""
        )

    def _load(self, session: Session, request: Any, response: Any) -> None:
        path = self._path(session, request.name)
        if not path.is_file():
            names = ", ".join(sorted(p.stem for p in path.parent.glob(f"*{SUFFIX}")))
            raise StoreError(f"no file {path}: there are {names or 'none'}")
        response.count = session.store.load(path)
        session.recorder.set_bias(session.store.bias)
        response.backup = str(session.store.last_backup)
        self._drop_results(session)
        response.message = f"{response.count} postures from {path}"

    def _drop_results(self, session: Session) -> None:
        session.drop_results()
        self._on_change()

    def _path(self, session: Session, name: str) -> Path:
        """A file in the folder of the store, never the store itself."""
        store = session.store.path
        path = results.path_inside(store.parent, name, SUFFIX)
        if path == store.resolve():
            raise OutputError(f"{path} is the file in use: give another name")
        return path

    def _export(self, session: Session, request: Any, response: Any) -> None:
        if not self._node.parameters.export_directory:
            raise OutputError(
                "nothing may be written: set the parameter export_directory to the directory "
                "that corrected URDFs may be written into"
            )
        folder = self._node.parameters.export_directory
        name = (
            request.name
            or f"{re.sub('[^A-Za-z0-9_-]', '_', session.model.name)}_identified"
        )
        if (walk := session.walk) is not None:
            urdf = corrected_urdf(session.model, walk.unknowns.eta(walk.z))
            path = results.path_inside(folder, name, ".urdf")
            response.path = str(
                results.write_whole(path, urdf.encode(), request.overwrite)
            )
            response.changed = np.array(session.model.bodies.names)[
                walk.unknowns.bodies
            ].tolist()
            response.message = f"all bodies corrected from walking in {response.path}"
            return
        if session.result is None:
            raise IdentificationError(
                "nothing is identified yet: call identify_links first"
            )
        found, options = (
            session.result.identification,
            (request.overwrite, request.all_links),
        )
        export = results.export_urdf(session.model, found, folder, name, *options)
        response.path = str(export.path)
        response.changed, response.unchanged = (
            list(export.changed),
            list(export.unchanged),
        )
        response.message = f"{len(export.changed)} links corrected in {export.path}"
        self._logger.info(response.message)


def _feet(session: Session, name: str) -> list[int]:
    frames = [foot.frame for foot in session.config.feet]
    if not name:
        return list(range(len(frames)))
    if name not in frames:
        raise IdentificationError(f"no foot {name!r}: there are {', '.join(frames)}")
    return [frames.index(name)]


def _measure_bias(
    session: Session, foot: int, request: srv.TareWrench.Request
) -> Array:
    """The bias of a foot's sensor, (6,) as read."""
    seconds, now_ns = request.seconds or None, session.buffer.now_ns
    if request.clear:
        return np.zeros(6)
    if not request.single_support:
        return session.recorder.measure_bias(foot, seconds, now_ns)
    if not request.foot:
        raise IdentificationError(
            "single_support: name the foot that carries the robot"
        )
    posture = session.recorder.latest(seconds, now_ns)
    if posture is None:
        raise CaptureRefused(*session.recorder.state(now_ns).reasons)
    priors = body_priors(session.model, session.settings)
    excess = estimate_wrench_bias(session.observations, posture, foot, priors)
    return np.asarray(session.store.bias[foot] + excess)
