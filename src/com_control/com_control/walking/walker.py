"""Plans whole walks of one robot in joint angles, and how to stop in the middle of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from com_control.walking.biped import Biped
from com_control.walking.ccgd import Ccgd
from com_control.walking.exceptions import PlanError
from com_control.walking.footsteps import SIDES, Footstep
from com_control.walking.joint_path import JointPath, check_path, within
from com_control.walking.standing import stance_of
from com_control.walking.swing import rise
from com_control.walking.walk_joints import joints_of
from com_control.walking.walk_plan import Samples, WalkPlan
from com_control.walking.walk_request import WalkRequest, plan_of
from com_control.walking.whole_body import WholeBodyIk
from com_control.walking.zmp_refinement import refine
from com_model.arrays import Array

BLEND = 0.4  # s, from the walk as it was planned to the one that stops
NEAR = 0.01  # m, of the CoM, and 0.05 m/s: what may be blended
NEAR_SPEED = 0.05


@dataclass(frozen=True, eq=False)
class WalkInstant:
    """A walk at a time, in the walk's frame.

    Attributes:
        com: (3,) m, where the CoM is to be.
        zmp: (3,) m, where the ZMP is to be.
        soles: (2, 3, 4) poses of the soles.
        stance: (2,) which feet stand.
        step: Number of the step that is being made, or that comes next; -1: none.
        swing: Side of the foot in the air; "": none.
    """

    com: Array
    zmp: Array
    soles: Array
    stance: Array
    step: int
    swing: str


@dataclass(frozen=True, eq=False)
class Walk:
    """A walk that can be walked.

    Attributes:
        plan: Footsteps and times.
        samples: The walk at the times of the path; the CoM with its correction, if any.
        path: Joint targets from 0 to plan.duration, within all limits.
        method: How it was found.
        note: What the method could not do; "" when all is well.
    """

    plan: WalkPlan
    samples: Samples
    path: JointPath
    method: str
    note: str = ""

    @property
    def duration(self) -> float:
        """Of the walk, s."""
        return self.plan.duration

    def at(self, t: float) -> WalkInstant:
        """What is planned for a time, s; the feet at the next point of the path."""
        s = self.samples
        i = min(max(int(np.searchsorted(s.time, t - 1e-9)), 1), len(s.time) - 1)
        share = min(max((t - s.time[i - 1]) / (s.time[i] - s.time[i - 1]), 0.0), 1.0)
        com, zmp = (x[i - 1] + share * (x[i] - x[i - 1]) for x in (s.com, s.zmp))
        swing = "" if s.stance[i].all() else SIDES[int(np.argmin(s.stance[i]))]
        return WalkInstant(com, zmp, s.feet[i], s.stance[i], self.step_at(t), swing)

    def step_at(self, t: float) -> int:
        """Number of the step that is being made, or that comes next; -1: all are made."""
        left = np.flatnonzero(self.plan.touch_downs > t)
        return int(left[0]) if len(left) else -1

    def made(self, t: float) -> int:
        """Number of steps that are made."""
        return int((self.plan.touch_downs <= t).sum())


class Walker:
    """Plans walks of one robot.

    Calls work in memory of their own object: use one object per thread.

    Args:
        biped: The robot.
        dt: s, between points.

    Raises:
        BipedError: A leg cannot be solved.
    """

    def __init__(self, biped: Biped, dt: float = 0.01) -> None:
        self.biped, self._dt = biped, dt
        self._ik = WholeBodyIk(biped)

    def plan(self, request: WalkRequest, q: Array) -> Walk:
        """Plans a walk from where the robot stands with joints at q (n,), rad or m.

        Raises:
            PlanError: It cannot be walked; says why, and which footstep is at fault.
        """
        plan = plan_of(request, self.biped, stance_of(self.biped, q))
        return self.solve(plan, request.method or "exact")

    def solve(self, plan: WalkPlan, method: str) -> Walk:
        """Finds the joint targets of a plan.

        Raises:
            PlanError: A foot or the CoM is out of reach, or a joint's limit of position or speed is
                in the way; says when, and which.
            BipedError: method is ccgd and the legs are not the paper's.
        """
        solve = {"exact": self._exact, "refined": self._refined, "ccgd": self._printed}[method]
        samples, q, note = solve(plan)
        qd = np.gradient(q, samples.time, axis=0)
        qd[[0, -1]] = 0.0
        path = JointPath(samples.time, q, qd)
        check_path(self.biped.model, path)
        return Walk(plan, samples, within(self.biped.model, path), method, note)

    def stopped(self, walk: Walk, t: float) -> Walk:
        """The same walk up to a time, with as few steps after it as a safe stop needs.

        The robot ends with both feet down, in the middle between them. Of the plans that end after
        the present step, after one more that sets the feet side by side, after the next step, and
        so on, the first is taken that the robot can walk and whose CoM is still near that of the
        walk; joints go from one to the other within BLEND, so that nothing jumps.

        Args:
            walk: What is being walked.
            t: s of the walk, from which on it may change.
        """
        first, total = walk.step_at(t), len(walk.plan.steps)
        if first < 0:
            return walk
        stands = walk.plan.lift_offs[first] > t + BLEND
        for count in range(first if stands else first + 1, total):
            steps = walk.plan.steps[:count]
            for ending in (steps, (*steps, *_closing(walk.plan.start, steps))):
                shorter = self._shorter(walk, ending, t) if len(ending) < total else None
                if shorter is not None:
                    return shorter
        return walk

    def _shorter(self, walk: Walk, steps: Sequence[Footstep], t: float) -> Walk | None:
        try:
            plan = WalkPlan(walk.plan.start, steps, walk.plan.timing)
            if not _near(walk.plan, plan, t):
                return None
            other = self.solve(plan, walk.method)
            path = walk.path.then(_blended(walk.path, other.path, t))
            check_path(self.biped.model, path)
        except PlanError:
            return None
        return replace(other, path=within(self.biped.model, path))

    def _exact(self, plan: WalkPlan) -> tuple[Samples, Array, str]:
        samples = plan.sample(plan.grid(self._dt))
        return samples, joints_of(self._ik, samples).q, ""

    def _refined(self, plan: WalkPlan) -> tuple[Samples, Array, str]:
        walk = refine(self._ik, plan, self._dt)
        return walk.samples, walk.joints.q, walk.reason

    def _printed(self, plan: WalkPlan) -> tuple[Samples, Array, str]:
        samples = plan.sample(plan.grid(self._dt))
        start = joints_of(self._ik, plan.sample(plan.grid(self._dt)[:2])).pelvis[0]
        found = Ccgd(self.biped).solve_path(samples.com, samples.feet, samples.R_pelvis, start)
        if not found.reached.all():
            late = samples.time[int(np.argmin(found.reached))]
            raise PlanError(
                f"the walk cannot be walked at {late:.3f} s: the algorithm as printed does not "
                "reach feet and CoM; try the method exact, which says why"
            )
        return samples, found.q, ""


def _closing(start: Sequence[Footstep], steps: Sequence[Footstep]) -> tuple[Footstep, ...]:
    """The step that sets the other foot beside the last one, as far away as at the start."""
    if not steps:
        return ()
    left, right = start
    apart = float((left.y - right.y) * np.cos(left.yaw) - (left.x - right.x) * np.sin(left.yaw))
    last = steps[-1]
    side = SIDES[1 - SIDES.index(last.side)]
    away = apart if side == "left" else -apart
    x, y = last.x - away * np.sin(last.yaw), last.y + away * np.cos(last.yaw)
    return (Footstep(side, float(x), float(y), last.z, last.yaw),)


def _near(walk: WalkPlan, other: WalkPlan, t: float) -> bool:
    """Whether the CoM of two plans is nearly the same at a time."""
    (a, b) = (plan.sample([t]) for plan in (walk, other))
    away, faster = a.com[0] - b.com[0], a.com_velocity[0] - b.com_velocity[0]
    return bool(np.linalg.norm(away) < NEAR and np.linalg.norm(faster) < NEAR_SPEED)


def _blended(path: JointPath, other: JointPath, t: float) -> JointPath:
    """The other path from t on, led to from this one."""
    ahead = other.time > t
    time, q, qd = other.time[ahead], other.q[ahead].copy(), other.qd[ahead].copy()
    share, slope, _ = rise((time - t) / BLEND)
    for i in np.flatnonzero(share < 1.0):
        own, speed = path.at(float(time[i]))
        away = own - q[i]
        qd[i] += (1.0 - share[i]) * (speed - qd[i]) - slope[i] / BLEND * away
        q[i] += (1.0 - share[i]) * away
    return JointPath(time, q, qd)
