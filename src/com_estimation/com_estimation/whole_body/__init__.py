"""The centre of mass of the whole robot, its stance and its support.

observer = ComObserver(model, config.feet)
state = observer.update(q, qd)   # ComState
"""

from com_estimation.whole_body.com_state import Attitude as Attitude
from com_estimation.whole_body.com_state import ComObserver as ComObserver
from com_estimation.whole_body.com_state import ComState as ComState
from com_estimation.whole_body.com_state import Ground as Ground
from com_estimation.whole_body.com_state import Status as Status
from com_estimation.whole_body.com_state import unknown_state as unknown_state
from com_estimation.whole_body.stance import Feet as Feet
from com_estimation.whole_body.stance import Stance as Stance
from com_estimation.whole_body.stance import choose_feet as choose_feet
