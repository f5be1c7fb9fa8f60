"""The base of the suite's nodes: a node file shows its topics and one call into the maths.

    @dataclass(frozen=True)
    class Parameters(RobotParameters, JointTimeout, WrenchTimeout):
        gain: float = live_parameter(4.0, "1/s, feedback gain", (0.0, 100.0))

    class MyNode(RobotNode[Parameters]):
        def __init__(self, **options):
            super().__init__("my_node", Parameters, **options)      # self.parameters, self.log
            self._config = self.require_config("its feet")            # its configuration
            self._output = self.create_publisher(CenterOfMass, "com", qos.RESULT)
            self.follow_robot_description()                          # calls use_model
            self.follow_joint_states(self._on_joints)                # calls it with a JointSample
            self._wrenches = self.follow_wrenches(self._config.feet) # what is current at a time
            self._imu = self.follow_imu()
            self.subscribe(TrunkCom, "trunk_com", self._on_com)      # (msg, time_ns); best effort
            self.serve_trigger("~/start", self._start)               # returns or raises the text
            self.create_steady_timer(0.1, self._on_display)
            self._jobs = self.background_jobs()                      # .do(work, then), com_ros.jobs

        def use_model(self, model):        # each new model, with the configuration's sole frames;
                                           # raise to keep the one before
            self._gait = Gait(model)

        def on_joints_timeout(self, reason): ...   # once, when joint_states become stale
        def on_restart(self, jump_s): ...          # the stamps of joint_states have jumped for good
        def watch(self): ...                       # several times a second, also without input
        def apply_parameters(self, new): ...       # live parameters; raise to refuse them
        def diagnose(self) -> Diagnosis: ...       # once a second, for /diagnostics

In setup.cfg: my_node = my_package.nodes.my_node:MyNode.main

What the base does: the robot description from the parameter or the latched topic, a new one swaps
the model; joint_states by name, each defect named, stale ones reported; one throttled warning for
each thing that is missing; rate and latency in /diagnostics; live parameters checked, applied and
refused with the reason: joint_timeout, wrench_timeout, imu_timeout and cmd_vel_timeout to the
inputs, rate_hz to the samples of joint_states, the others by apply_parameters. An exception in a
callback is a bug that is reported with its traceback, and ends no node: the message is dropped, the
request refused, the timer called again. A timer that raises an error of the suite ends the node,
which cannot work with what it has.

Every stamped message goes through com_ros.stream first: a node that is too slow uses the newest
one, stamps that jump are held back (com_ros.stream), bytes that are no message and numbers that
cannot be are dropped (com_ros.input_limits); each is counted and reported on /diagnostics, with how
to fix it.

One clock policy: a sample's time is its stamp, or the node's clock at receipt where the stamp is
zero; values are combined by these times, so that a replayed bag gives the same result. Only the
absence of messages is measured in real time, by timers on a steady clock.
"""

import time
from collections.abc import Callable
from typing import Any

from std_srvs.srv import Trigger

from com_model import RobotConfig, RobotModel
from com_model.checks.config_check import config_warnings
from com_ros import diagnostics
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ComRosError, ParameterError
from com_ros.joint_input import JointInput
from com_ros.main import run
from com_ros.parameters import AssumedJoints
from com_ros.receiving_node import P, ReceivingNode
from com_ros.robot_description import RobotDescription


class RobotNode(ReceivingNode[P]):
    """Base class of nodes that work on one robot: its model, what is missing, diagnostics.

    The module's docstring shows a subclass. `options` are passed to rclpy's Node.

    Args:
        name: of the node.
        parameters: frozen dataclass of the node's parameters; see com_ros.parameters.
        subject: what the node's status on /diagnostics is about; empty: the node's name.
        **options: of rclpy's Node.

    Attributes:
        config: the robot's configuration, its feet with the topics of foot_forces where the
            parameter `wrenches` is "estimated"; None where robot_config is not given.
        description: where the model comes from.
    """

    def __init__(
        self, name: str, parameters: type[P], *, subject: str = "", **options: Any
    ) -> None:
        super().__init__(name, parameters, **options)
        if isinstance(self.parameters, AssumedJoints):
            self.parameters.assumed()  # what cannot be used ends the node now, not with a model
        path = self.parameters.robot_config
        self.config = RobotConfig.from_file(path) if path else None
        source = getattr(self.parameters, "wrenches", "measured")
        if self.config is not None and source == "estimated":
            self.config = self.config.with_wrench_topics("{}_estimate")
        self.description = RobotDescription(
            self, self._use_model, self.log, self._guarded
        )
        self._diagnostics = diagnostics.Diagnostics(self, subject or name)
        period_s = min(self.joint_watch.timeout_s / 4.0, 0.25)
        self.create_steady_timer(period_s, self._on_watch)
        self.create_steady_timer(1.0, self._on_diagnostics)

    # --- to be overridden ------------------------------------------------------------------------
    @classmethod
    def main(cls) -> int:
        """Runs the node until it is stopped; the entry point of its executable.

        Returns:
            The exit code of the process, see com_ros.main.run.
        """
        return run(cls)

    def use_model(self, model: RobotModel) -> None:
        """Creates what depends on the model; called with each new one, to be overridden.

        Args:
            model: with the sole frames of the configuration attached.

        Raises:
            ComModelError: the model cannot be used; the one before stays in use.
        """

    def assumed_joints(self, model: RobotModel) -> dict[str, float]:
        """Positions, rad or m, of joints that joint_states may lack; to be overridden.

        Args:
            model: the robot.
        """
        p = self.parameters
        return p.assumed() if isinstance(p, AssumedJoints) else {}

    def on_joints_timeout(self, reason: str) -> None:
        """Called once each time that joint_states become stale; logs the reason.

        Args:
            reason: which topic, since when, and how to fix it.
        """
        self.get_logger().error(reason)

    def watch(self) -> None:
        """Called several times a second by a timer on a steady clock, also without input."""

    def diagnose(self) -> Diagnosis:
        """Returns the status for /diagnostics; the base class adds rate, latency and robot name."""
        waiting = self.waiting
        return Diagnosis(
            diagnostics.ERROR if waiting else diagnostics.OK, waiting or "running"
        )

    # --- the robot -------------------------------------------------------------------------------
    @property
    def waiting(self) -> str:
        """What is missing for a model, and how to fix it; empty when there is a model."""
        return self.description.waiting

    @property
    def robot_name(self) -> str:
        """Name of the robot on /diagnostics; empty without a model."""
        return "" if self.description.model is None else self.description.model.name

    def follow_robot_description(self) -> None:
        """Loads the parameter robot_description, if given, and subscribes its topic."""
        self.description.follow(self.parameters.robot_description)

    def require_config(self, needs: str = "its feet") -> RobotConfig:
        """Returns the robot's configuration.

        Args:
            needs: what of it the node needs, for the error's text.

        Raises:
            ParameterError: robot_config is not given.
        """
        if self.config is None:
            fix = f"give the path of the robot's configuration (YAML), with {needs}"
            raise ParameterError("robot_config", "", fix)
        return self.config

    def serve_trigger(
        self,
        name: str,
        action: Callable[[], Any],
        done: str = "",
        *,
        needs_model: bool = True,
    ) -> None:
        """Offers a std_srvs/Trigger service.

        Args:
            name: of the service.
            action: called for each request; returns the message of the response, or None for
                `done`, or raises why not (a ComModelError).
            done: message of the response to a request that was met.
            needs_model: refuse while there is no model.
        """

        def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            if needs_model and self.waiting:
                raise ComRosError(self.waiting)
            response.success, response.message = True, action() or done
            return response

        self.create_service(Trigger, name, answer)

    # --- inside ----------------------------------------------------------------------------------
    def _use_model(self, model: RobotModel) -> None:
        if self.config is not None:
            model = self.config.attach(model)
            for warning in config_warnings(model, self.config):
                self.get_logger().warning(warning)
        assumed = self.assumed_joints(model)
        timeout_s = self._timeout("joint_timeout")
        joints = JointInput(model.joint_names, timeout_s, assumed)
        self.use_model(model)
        self.joints, self._bounded_model = joints, model
        self._set_bounds(self.parameters)

    def _on_watch(self) -> None:
        self.description.warn_while_waiting()
        if self._joint_states is not None:
            self._watch_joints(self._joint_states.topic)
        self.watch()
        if self._joint_states is not None:
            self.lockstep.watch(self.joints is not None)

    def _watch_joints(self, topic: str) -> None:
        watch = self.joint_watch
        if watch.timed_out():
            age = f"none for {watch.age_s:.2f} s"
            self._flush()
            self.on_joints_timeout(f"{topic} timed out, {age}: check its driver")
        elif watch.stale and not watch.ever_received:
            self.log.warn(
                "joint_states",
                f"no joint_states yet on {topic}: start the robot's driver or its "
                "joint_state_broadcaster, or remap the topic",
            )

    def _on_diagnostics(self) -> None:
        self._simulated_time = self.get_parameter("use_sim_time").value
        found, name = self.diagnose(), self.robot_name
        values = {
            **self.meter.read(time.monotonic_ns()),
            **found.values,
            **self.faults.counts,
        }
        values["skipped"] = sum(backlog.skipped for backlog in self._backlogs)
        if name:
            values["model"] = name
        level, text = found.level, found.text
        for fault in (self.too_slow, self.faults.pop_recent()):
            if fault and fault not in text:
                level, text = max(level, diagnostics.WARN), f"{text}; {fault}"
        self._diagnostics.publish(level, text, values, name)
