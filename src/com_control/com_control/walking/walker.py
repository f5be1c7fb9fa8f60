"""Plans whole walks of one robot in joint angles, and stops in the middle of one."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np

from com_control.exceptions import PlanError
from com_control.walking.biped import Biped, heading_to_pelvis
from com_control.walking.com_ik import ComIk
from com_control.walking.footsteps import Footstep, place_beside
from com_control.walking.pelvis_map import STALLED, STRETCHED
from com_control.walking.walk import Walk, WalkRequest, make_plan
from com_control.walking.walk_joints import (
    check_path,
    clip_to_limits,
    refine,
    solve_joints,
)
from com_control.walking.walk_plan import (
    Samples,
    Timing,
    WalkPlan,
    find_stance,
    quintic,
)
from com_model import RobotConfig, RobotModel
from com_model.arrays import Array
from com_model.dynamics import GRAVITY
from com_model.joint_path import JointPath

WEAK = "upright the hips' efforts do not carry the weight on one leg"


BLEND = 0.4  # s, from the walk as it was planned to the one that stops


class Walker:
    """Plans walks of one robot.

    Calls change the state of their object: use one object per thread.

    Args:
        biped: the robot.
        dt: s, largest distance of the path's points.

    Attributes:
        biped: as given.
        dt: as given.

    Raises:
        BipedError: a leg cannot be solved.
    """

    def __init__(self, biped: Biped, dt: float = 0.01) -> None:
        self.biped, self.dt = biped, dt
        self._ik = ComIk(biped)

    def plan(self, request: WalkRequest, q: Array) -> Walk:
        """Plans a walk from the robot's present stance.

        With the CoM over one foot the hip is rotated inwards by about half the hips' distance
        over the leg's length, whatever the steps' width. Where its limits of angle or effort do
        not allow that, the pelvis leans over the standing foot; where knees and ankles have little
        room, forwards or backwards as well. The note says so, and which soles tilt.

        Args:
            request: the walk.
            q: (n,) rad or m, joint positions.

        Returns:
            The walk.

        Raises:
            PlanError: it cannot be walked; with the reason and the footstep.
        """
        plan = make_plan(request, self.biped, find_stance(self.biped, q))
        reason = WEAK if hips_are_weak(self.biped) else ""
        problems: list[PlanError] = []
        # rad, Timing.pelvis_roll; where the hips' efforts are small GR1 falls with 0.12
        rolls = (0.2, 0.12, 0.06) if reason else (0.0, 0.06, 0.12, 0.2)
        for pitch, roll in product((0.0, 0.15, -0.15), rolls):
            try:
                timing = replace(plan.timing, pelvis_pitch=pitch, pelvis_roll=roll)
                leaning = WalkPlan(plan.start, plan.steps, timing)
                walk = self.solve(leaning, request.method or "exact")
            except PlanError as error:
                problems.append(error)
                reason = reason or f"upright {error}"
                continue
            notes = [walk.note] * bool(walk.note) + _leans(timing, reason)
            notes += [
                f"no joint moves {leg.free}" for leg in self.biped.legs if leg.free
            ]
            return replace(walk, note="; ".join(notes))
        raise problems[0]

    def solve(self, plan: WalkPlan, method: str, since: float = 0.0) -> Walk:
        """Computes the joint targets of a plan.

        Args:
            plan: of feet, ZMP and CoM.
            method: one of METHODS.
            since: s, from which on it will be walked: earlier parts are not checked.

        Returns:
            The walk.

        Raises:
            PlanError: a foot or the CoM is out of reach, or beyond a joint's limit of position
                or speed; with the time.
            BipedError: method is ccgd and the legs are not of the usual build.
        """
        note = ""
        if method == "refined":
            found = refine(self._ik, plan, self.dt, since=since)
            samples, q, note = found.samples, found.joints.q, found.reason
        else:
            samples = plan.sample(plan.grid(self.dt))
            ccgd = method == "ccgd"
            q = (
                self._in_steps(plan, samples)
                if ccgd
                else solve_joints(self._ik, samples, since).q
            )
        return Walk(plan, samples, self._path(samples.time, q, since), method, note)

    def play(self, plan: WalkPlan, samples: Samples) -> Walk:
        """Computes the joint targets of samples in place of those of the plan.

        Args:
            plan: of the steps.
            samples: CoM, feet and pelvis over time.

        Returns:
            The walk.

        Raises:
            PlanError: see solve.
        """
        path = self._path(samples.time, solve_joints(self._ik, samples).q)
        return Walk(plan, samples, path, "exact")

    def _path(self, time: Array, q: Array, since: float = 0.0) -> JointPath:
        qd = np.gradient(q, time, axis=0)
        qd[[0, -1]] = 0.0
        path = JointPath(time, q, qd)
        check_path(self.biped.model, path.after(since - 1e-9))
        return clip_to_limits(self.biped.model, path)

    def plan_stop(self, walk: Walk, t: float) -> Walk:
        """The same walk up to a time, with as few steps after it as a safe stop needs.

        The robot ends with both feet down, the CoM in the middle between them. Of the plans that
        end after the present step, after one more that sets the feet side by side, after the
        next step, and so on, the first is chosen that the robot can walk and whose CoM is near
        that of the walk; joints are blended from one to the other within BLEND, so that nothing
        jumps.

        Args:
            walk: the present one.
            t: s of the walk.

        Returns:
            The shorter walk, or the same if there is none.
        """
        first, total = walk.plan.next_step(t), len(walk.plan.steps)
        if first == total:
            return walk
        stands = walk.plan.lift_offs[first] > t + BLEND
        for count in range(first if stands else first + 1, total):
            steps = walk.plan.steps[:count]
            for ending in (steps, (*steps, *_closing_step(walk.plan.start, steps))):
                if len(ending) < total:
                    with suppress(PlanError):
                        plan = WalkPlan(walk.plan.start, ending, walk.plan.timing)
                        return self.change(walk, plan, t)
        return walk

    def change(self, walk: Walk, plan: WalkPlan, t: float, dropped: int = 0) -> Walk:
        """The walk up to a time, then another plan; joints are blended within BLEND.

        Args:
            walk: the present one.
            plan: identical to the walk's up to t, without its first `dropped` steps.
            t: s of the walk.
            dropped: number of the walk's first steps that the plan leaves out.

        Returns:
            The changed walk.

        Raises:
            PlanError: the CoM of the plan is too far away at t, or the robot cannot walk it.
        """
        later = (
            walk.plan.lift_offs[dropped] - walk.plan.lift_offs[0] if dropped else 0.0
        )
        now, then = walk.plan.sample([t]), plan.sample([t - later])
        away, faster = (
            now.com[0] - then.com[0],
            now.com_velocity[0] - then.com_velocity[0],
        )
        # m and m/s, of the CoM: what may be blended
        if np.linalg.norm(away) >= 0.01 or np.linalg.norm(faster) >= 0.05:
            raise PlanError(f"the CoM would jump by {np.linalg.norm(away):.3f} m")
        other = self.solve(plan, walk.method, t - later)
        own = walk.path.shifted(-later).after(-1e-9)
        path = own.followed_by(_blend(own, other.path, t - later))
        check_path(self.biped.model, path.after(t - later - 1e-9))
        path, before = clip_to_limits(self.biped.model, path), walk.before + dropped
        return replace(other, path=path, before=before, later=later)

    def _in_steps(self, plan: WalkPlan, samples: Samples) -> Array:
        R_pelvis = samples.R_pelvis @ heading_to_pelvis(self.biped)
        start = solve_joints(self._ik, plan.sample(plan.grid(self.dt)[:2])).pelvis[0]
        found = self._ik.solve_in_steps(samples.com, samples.feet, R_pelvis, start)
        missed = found.outcomes & (STALLED | STRETCHED | STRETCHED << 4)
        if missed.any():
            late = samples.time[int(np.argmax(missed != 0))]
            raise PlanError(
                f"the walk cannot be walked at {late:.3f} s: the algorithm of [CCGD] does not "
                "reach feet and CoM; try the method exact, which gives the reason"
            )
        return self._ik.full(found.q)


def hips_are_weak(biped: Biped) -> bool:
    """Whether the weight at half the hips' distance exceeds the effort of a hip's roll joint.

    Args:
        biped: the robot.
    """
    for leg in biped.legs:
        roll = int(np.argmax(np.abs(leg.axes[:3] @ leg.R_sole[:, 0])))
        moment = biped.model.mass * GRAVITY * abs(leg.points[roll] @ leg.R_sole[:, 1])
        if moment > biped.model.effort_limits[leg.joints[roll]] > 0.0:
            return True
    return False


def plan_steps(model: RobotModel, config: RobotConfig, count: int) -> Walk:
    """Plans steps ahead of the sizes that a configuration says, from its posture.

    Args:
        model: the robot.
        config: its configuration.
        count: number of steps.

    Raises:
        ConfigError: the configuration belongs to another robot.
        BipedError: its legs cannot be solved.
        PlanError: the steps cannot be walked.
    """
    biped = Biped.from_config(model, config)
    request = WalkRequest(steps=count, method="refined")
    return Walker(biped).plan(request, biped.posture)


def _leans(timing: Timing, reason: str) -> list[str]:
    """How the pelvis of a walk leans, in words, with the reason; nothing where it is upright."""
    pitch, roll, words = timing.pelvis_pitch, timing.pelvis_roll, []
    if pitch:
        way = "forwards" if pitch > 0.0 else "backwards"
        words.append(f"the pelvis leans {way} by {abs(pitch):g} rad")
    if roll:
        words.append(f"the pelvis leans by {roll:g} rad over the standing foot")
    return [*words, reason] if words else []


def _closing_step(
    start: Sequence[Footstep], steps: Sequence[Footstep]
) -> tuple[Footstep, ...]:
    """The step that sets the other foot beside the last one, at the distance of the start."""
    if not steps:
        return ()
    left, right = start
    apart = float(
        (left.y - right.y) * np.cos(left.yaw) - (left.x - right.x) * np.sin(left.yaw)
    )
    return (place_beside(steps[-1], apart),)


def _blend(path: JointPath, other: JointPath, t: float) -> JointPath:
    """The other path from t on, blended from this one."""
    ahead = other.time > t
    time, q, qd = other.time[ahead], other.q[ahead].copy(), other.qd[ahead].copy()
    progress, slope, _ = quintic((time - t) / BLEND)
    for i in np.flatnonzero(progress < 1.0):
        own, speed = path.sample(float(time[i]))
        away = own - q[i]
        qd[i] += (1.0 - progress[i]) * (speed - qd[i]) - slope[i] / BLEND * away
        q[i] += (1.0 - progress[i]) * away
    return JointPath(time, q, qd)
