"""Walking on two legs with the true centre of mass at its planned position.

    config = RobotConfig.from_file("robot.yaml")
    biped = Biped.from_config(RobotModel.from_file("robot.urdf"), config)
    walk = Walker(biped).plan(WalkRequest(steps=6), biped.posture)
    walk.path.time, walk.path.q, walk.path.qd  # joint targets within all limits

Footsteps and timing make a WalkPlan; the CoM follows the linear inverted pendulum, corrected
until the ZMP of all bodies is the planned one (refine); ComIk computes the joints. WalkSession
is the state machine of a robot that walks by such plans. The names below are imported when they
are used: a trot needs few of them.
"""

from typing import TYPE_CHECKING

from com_model.public_names import import_when_used

if TYPE_CHECKING:
    from com_control.exceptions import BipedError, PlanError
    from com_control.walking.biped import Biped
    from com_control.walking.com_ik import ComIk
    from com_control.walking.footsteps import Footstep
    from com_control.walking.walk import Walk, WalkRequest
    from com_control.walking.walk_plan import find_stance
    from com_control.walking.walker import Walker

__getattr__, __all__ = import_when_used(__name__, __file__)
