"""Identification of the centre of mass of every link from a robot's own sensors (no ROS).

The public names are imported when they are first used: a node sets its threads up before that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from com_model.public_names import import_when_used

if TYPE_CHECKING:
    from com_identification.capture.recorder import PostureRecorder
    from com_identification.exceptions import IdentificationError, PostureError
    from com_identification.feet.feet_reading import (
        FeetReading,
        ModelCheck,
        TotalCom,
        identify_total,
        read_feet,
    )
    from com_identification.feet.wrench_check import diagnose
    from com_identification.planning.planner import PosturePlanner
    from com_identification.regression.identify import identify
    from com_identification.regression.observations import ObservationModel
    from com_identification.regression.postures import (
        ComConstraint,
        Posture,
        make_posture,
    )
    from com_identification.regression.priors import (
        BodyPriors,
        body_priors,
        urdf_priors,
    )
    from com_identification.regression.result import Identification
    from com_identification.settings import (
        CaptureOptions,
        FitSettings,
        IdentificationSettings,
        PlanOptions,
        SensorNoise,
        SensorPriors,
    )
    from com_identification.tip_over.protocol import TipProtocol
    from com_identification.tip_over.quasi_static import QuasiStatic

__getattr__, __all__ = import_when_used(__name__, __file__)
