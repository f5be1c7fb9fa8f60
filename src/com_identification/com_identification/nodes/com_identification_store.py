"""Services of com_identification about what is stored, and what is written.

~/get_postures, ~/remove_posture, ~/reset, ~/save, ~/load, ~/export_urdf.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from com_identification.exceptions import IdentificationError, OutputError, StoreError
from com_identification.nodes.com_identification_parameters import Parameters
from com_identification.nodes.com_identification_robot import Found, Robot
from com_identification.nodes.identification_conversions import numpy_to_captured_posture
from com_identification.store.document import to_document, write_yaml
from com_identification.store.export import export_urdf
from com_identification.store.files import path_inside
from com_model.exceptions import ComModelError
from com_msgs.srv import (
    ExportUrdf,
    GetPostures,
    LoadPostures,
    RemovePosture,
    SavePostures,
)
from com_ros.conversions import ns_to_stamp

Handler = Callable[[Robot, Any, Any], None]
"""Fills a response; an IdentificationError becomes a refusal."""


class StoreServices:
    """Serves them.

    Args:
        node: that serves.
        p: its parameters.
        robot: gives the robot of the moment.
        waiting: tells why there is none.
        on_change: called after the result was dropped with its postures.
    """

    def __init__(
        self,
        node: Node,
        p: Parameters,
        robot: Callable[[], Robot | None],
        waiting: Callable[[], str],
        on_change: Callable[[], None],
    ) -> None:
        self._p, self._robot, self._waiting, self._on_change = p, robot, waiting, on_change
        self._logger = node.get_logger()
        for kind, name, handler in (
            (GetPostures, "get_postures", self._get),
            (RemovePosture, "remove_posture", self._remove),
            (Trigger, "reset", self._reset),
            (SavePostures, "save", self._save),
            (LoadPostures, "load", self._load),
            (ExportUrdf, "export_urdf", self._export),
        ):
            self._offer(node, kind, name, handler)

    def _offer(self, node: Node, kind: Any, name: str, handler: Handler) -> None:
        def serve(request: Any, response: Any) -> Any:
            try:
                robot = self._robot()
                if robot is None:
                    raise IdentificationError(self._waiting())
                handler(robot, request, response)
            except (IdentificationError, ComModelError) as error:
                self._logger.warning(f"{name}: {error}")
                return kind.Response(success=False, message=str(error))
            response.success = True
            return response

        node.create_service(kind, f"~/{name}", serve)

    # --- what is stored ----------------------------------------------------------------------
    def _get(self, robot: Robot, request: Any, response: GetPostures.Response) -> None:
        postures = robot.store.postures
        for identity, posture in postures.items():
            stamp = ns_to_stamp(robot.stamp_ns(identity))
            values = robot.describe(identity, posture)
            response.postures.append(numpy_to_captured_posture(values, stamp, robot.frame))
        response.message = f"{len(postures)} postures in {robot.store.path}"

    def _remove(
        self, robot: Robot, request: RemovePosture.Request, response: RemovePosture.Response
    ) -> None:
        robot.store.remove(request.id)
        response.message = f"removed posture {request.id}; {len(robot.store.postures)} are left"

    def _reset(self, robot: Robot, request: Any, response: Trigger.Response) -> None:
        backup = robot.store.reset()
        self._begin_anew(robot)
        kept = f"; those that were are in {backup}" if backup else ""
        response.message = f"no postures are stored{kept}"

    def _save(
        self, robot: Robot, request: SavePostures.Request, response: SavePostures.Response
    ) -> None:
        path = self._path(robot, request.name)
        response.path = str(robot.store.save(path, request.overwrite))
        if robot.found is not None:
            result = self._write_result(robot, robot.found, path.with_suffix(".yaml"), request)
            response.result_path = str(result)
        count = len(robot.store.postures)
        response.message = f"{count} postures in {response.path}" + (
            f", the result in {response.result_path}" if response.result_path else ""
        )

    def _write_result(
        self, robot: Robot, found: Found, path: Path, request: SavePostures.Request
    ) -> Path:
        if path.exists() and not request.overwrite:
            raise OutputError(f"{path} exists already: give another name, or allow to overwrite it")
        stored = robot.store.postures
        used = [stored[identity] for identity in found.ids if identity in stored]
        document = to_document(found.identification, robot.model, robot.settings, used)
        return write_yaml(path, document)

    def _load(
        self, robot: Robot, request: LoadPostures.Request, response: LoadPostures.Response
    ) -> None:
        path = self._path(robot, request.name)
        if not path.is_file():
            there = ", ".join(sorted(p.stem for p in path.parent.glob("*.jsonl"))) or "none"
            raise StoreError(f"no file {path}: there are {there}")
        response.count = robot.store.load(path)
        robot.recorder.set_bias(robot.store.tare)
        response.backup = str(robot.store.last_backup)
        self._begin_anew(robot)
        response.message = f"{response.count} postures from {path}"

    def _begin_anew(self, robot: Robot) -> None:
        robot.forget()
        self._on_change()

    def _path(self, robot: Robot, name: str) -> Path:
        """A file beside the store, never the store itself."""
        store = robot.store.path
        path = path_inside(store.parent, name, ".jsonl")
        if path == store.resolve():
            raise OutputError(f"{path} is the file in use: give another name")
        return path

    def _export(
        self, robot: Robot, request: ExportUrdf.Request, response: ExportUrdf.Response
    ) -> None:
        if not self._p.export_directory:
            raise OutputError(
                "nothing may be written: set the parameter export_directory to the directory "
                "that corrected URDFs may be written into"
            )
        if robot.found is None:
            raise IdentificationError("nothing is identified yet: call identify_links first")
        export = export_urdf(
            robot.model.xml,
            robot.model,
            robot.found.identification,
            self._p.export_directory,
            request.name or f"{re.sub('[^A-Za-z0-9_-]', '_', robot.model.name)}_identified",
            request.overwrite,
            request.all_links,
        )
        response.path = str(export.path)
        response.changed, response.unchanged = list(export.changed), list(export.kept)
        response.message = f"{len(export.changed)} links corrected in {export.path}"
        self._logger.info(response.message)
