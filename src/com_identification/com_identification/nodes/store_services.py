"""Services of com_identification on stored postures, and on files that it writes.

~/get_postures, ~/remove_posture, ~/reset, ~/save, ~/load, ~/export_urdf.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from std_srvs.srv import Trigger

from com_identification.exceptions import IdentificationError, OutputError, StoreError
from com_identification.nodes.identification_session import Parameters, Session
from com_identification.store.files import path_inside
from com_identification.store.results import export_urdf, to_document, write_yaml
from com_model.exceptions import ComModelError
from com_msgs.srv import ExportUrdf, GetPostures, LoadPostures, RemovePosture, SavePostures
from com_ros.robot_node import RobotNode

Handler = Callable[[Session, Any, Any], None]
"""Fills a response; an IdentificationError becomes a refusal."""


class StoreServices:
    """Serves them; see the module's text.

    `session` returns the present one or raises IdentificationError; on_change follows the loss of
    the result with its postures.
    """

    def __init__(
        self,
        node: RobotNode[Parameters],
        session: Callable[[], Session],
        on_change: Callable[[], None],
    ) -> None:
        self._node, self._session, self._on_change = node, session, on_change
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

    def _offer(self, node: RobotNode[Parameters], kind: Any, name: str, handler: Handler) -> None:
        def serve(request: Any, response: Any) -> Any:
            try:
                handler(self._session(), request, response)
            except (IdentificationError, ComModelError) as error:
                self._logger.warning(f"{name}: {error}")
                return kind.Response(success=False, message=str(error))
            response.success = True
            return response

        node.create_service(kind, f"~/{name}", serve)

    # --- what is stored ----------------------------------------------------------------------
    def _get(self, session: Session, request: Any, response: Any) -> None:
        postures = session.store.postures
        response.postures = [session.describe(i, posture) for i, posture in postures.items()]
        response.message = f"{len(postures)} postures in {session.store.path}"

    def _remove(self, session: Session, request: Any, response: Any) -> None:
        session.store.remove(request.id)
        response.message = f"removed posture {request.id}; {len(session.store.postures)} are left"

    def _reset(self, session: Session, request: Any, response: Any) -> None:
        backup = session.store.reset()
        self._drop_results(session)
        moved = f"; the previous ones are in {backup}" if backup else ""
        response.message = f"no postures are stored{moved}"

    def _save(self, session: Session, request: Any, response: Any) -> None:
        path = self._path(session, request.name)
        response.path = str(session.store.save(path, request.overwrite))
        if (result := session.result) is not None:
            path = path.with_suffix(".yaml")
            if path.exists() and not request.overwrite:
                fix = "give another name, or allow to overwrite it"
                raise OutputError(f"{path} exists already: {fix}")
            stored = session.store.postures
            used = [stored[identity] for identity in result.ids if identity in stored]
            found = result.identification
            document = to_document(found, session.model, session.settings, used)
            response.result_path = str(write_yaml(path, document))
        count = len(session.store.postures)
        response.message = f"{count} postures in {response.path}" + (
            f", the result in {response.result_path}" if response.result_path else ""
        )

    def _load(self, session: Session, request: Any, response: Any) -> None:
        path = self._path(session, request.name)
        if not path.is_file():
            names = ", ".join(sorted(p.stem for p in path.parent.glob("*.jsonl"))) or "none"
            raise StoreError(f"no file {path}: there are {names}")
        response.count = session.store.load(path)
        session.recorder.set_bias(session.store.bias)
        response.backup = str(session.store.last_backup)
        self._drop_results(session)
        response.message = f"{response.count} postures from {path}"

    def _drop_results(self, session: Session) -> None:
        session.drop_results()
        self._on_change()

    def _path(self, session: Session, name: str) -> Path:
        """A file beside the store, never the store itself."""
        store = session.store.path
        path = path_inside(store.parent, name, ".jsonl")
        if path == store.resolve():
            raise OutputError(f"{path} is the file in use: give another name")
        return path

    def _export(self, session: Session, request: Any, response: Any) -> None:
        if not self._node.parameters.export_directory:
            raise OutputError(
                "nothing may be written: set the parameter export_directory to the directory "
                "that corrected URDFs may be written into"
            )
        if session.result is None:
            raise IdentificationError("nothing is identified yet: call identify_links first")
        export = export_urdf(
            session.model.xml,
            session.model,
            session.result.identification,
            self._node.parameters.export_directory,
            request.name or f"{re.sub('[^A-Za-z0-9_-]', '_', session.model.name)}_identified",
            request.overwrite,
            request.all_links,
        )
        response.path = str(export.path)
        response.changed, response.unchanged = list(export.changed), list(export.unchanged)
        response.message = f"{len(export.changed)} links corrected in {export.path}"
        self._logger.info(response.message)
