"""Adds results to the record of the robot, and compares the robot with its last one."""

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.impl.rcutils_logger import RcutilsLogger

from com_identification.exceptions import IdentificationError
from com_identification.feet.feet_reading import (
    ModelCheck,
    ModelVerdict,
    identify_total,
)
from com_identification.health.changes import changes_of
from com_identification.health.records import HealthDatabase, Record
from com_identification.nodes.identification_session import Session
from com_identification.regression.postures import Posture
from com_identification.regression.statics import Statics, prediction_rows
from com_model import RobotModel

_WARNED = (ModelVerdict.WRONG_COM, ModelVerdict.WRONG_MASS, ModelVerdict.WRONG_WRENCH)


class HealthWatch:
    """Reads and writes the record of a robot in a separate thread.

    Args:
        where: path or URL of the record; empty: none.
        serial: serial number of the robot.
        logger: for changes and errors.

    Attributes:
        changes: what the last result changed, in sentences.
    """

    def __init__(self, where: str, serial: str, logger: RcutilsLogger) -> None:
        self._where, self._serial, self._logger = where, serial, logger
        self._pool = ThreadPoolExecutor(1)
        self._check: ModelCheck | None = None
        self._recorded, self._wrong = "", ""
        self.changes: list[str] = []

    @property
    def warning(self) -> str:
        """How the robot differs from its record; empty: no difference is known."""
        return self._wrong or " ".join(self.changes)

    def start(
        self, session: Session, com_tolerance: float, mass_tolerance: float
    ) -> None:
        """Reads the last result in the record, to compare the robot with.

        Args:
            session: of the robot.
            com_tolerance: m, from which a change is reported.
            mass_tolerance: fraction of the mass from which a change is reported.
        """
        self._check, self._wrong, self.changes = None, "", []
        if self._where:
            self._pool.submit(
                self._guarded, self._start, session, com_tolerance, mass_tolerance
            )

    def add(self, session: Session) -> None:
        """Adds the latest result from postures to the record.

        Args:
            session: with the result.
        """
        result = session.result
        if not self._where or result is None:
            return
        data, stored, mass = hashlib.sha256(), session.store.postures, None
        postures = [stored[identity] for identity in result.ids if identity in stored]
        for posture in postures:
            data.update(posture.q.tobytes() + posture.wrenches.tobytes())
        with suppress(IdentificationError):  # no posture has the wrenches of all feet
            total = identify_total(
                session.model, session.config.feet, postures, session.settings
            )
            mass = total.mass, total.mass_std
        taken = max(map(session.stamp_ns, result.ids), default=0)
        found, of = (
            result.identification,
            (self._serial, "node", str(session.path or ""), mass),
        )
        record = Record.from_identification(
            found, session.model, data.hexdigest(), taken, *of
        )
        self._pool.submit(self._guarded, self._add, record)

    def add_walk(self, walk: Any, bags: Sequence[Path]) -> None:
        """Adds a result from walking to the record.

        Args:
            walk: the WalkResult.
            bags: its recordings.
        """
        from com_identification.health.walks import walk_record  # loads for a second

        if self._where:
            self._pool.submit(
                self._guarded,
                lambda: self._add(walk_record(walk, bags, self._serial, "node")),
            )

    def update(self, posture: Posture | None) -> None:
        """Compares the stationary robot with its record.

        Args:
            posture: its readings; None: it moves, nothing is compared.
        """
        if self._check is None or posture is None:
            return
        result = self._check.update(posture)
        if result.verdict is not ModelVerdict.UNKNOWN:
            self._wrong = (
                f"unlike its record of {self._recorded}, by the feet: CoM "
                f"{1e3 * result.com_error:.0f} mm off, {result.mass:.2f} instead of "
                f"{result.model_mass:.2f} kg"
                if result.verdict in _WARNED
                else ""
            )

    def close(self) -> None:
        """Waits until pending results are written, and ends the thread."""
        self._pool.shutdown()

    def _start(
        self, session: Session, com_tolerance: float, mass_tolerance: float
    ) -> None:
        database = HealthDatabase(self._where, create=True)
        records = database.records(session.model.name, self._serial)
        for text in database.damaged:
            self._logger.warning(f"record of the robot: {text}; left out")
        if not records:
            return
        last, anywhere = records[-1], np.zeros((1, 3))
        model = RobotModel.from_urdf(last.corrected_urdf())
        statics = Statics(model)
        poses = statics.poses(session.rest[None])
        slope = prediction_rows(statics, poses, anywhere, last.parameters)[0]
        std = float(
            np.sqrt(np.linalg.eigvalsh(slope @ last.covariance @ slope.T).max())
        )
        sure = 3.0  # standard deviations of the recorded CoM
        tolerance = max(com_tolerance, sure * std)
        mass_tolerance = max(
            mass_tolerance, sure * last.total_mass[1] / last.total_mass[0]
        )
        self._recorded, feet = last.taken, session.config.feet
        self._check = ModelCheck(
            model, feet, session.settings, tolerance, mass_tolerance
        )

    def _add(self, record: Record) -> None:
        database = HealthDatabase(self._where, create=True)
        database.append(record)
        self.changes = changes_of(record, database)
        for line in self.changes:
            self._logger.warning(f"unlike its record: {line}")

    def _guarded(self, work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Exception as error:  # of a thread: it would be lost otherwise
            self._logger.error(f"record of the robot: {error}")
