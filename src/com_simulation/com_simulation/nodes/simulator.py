"""MuJoCo in the place of a robot and its drivers.

Publishes
    joint_states (sensor_msgs/JointState): position, velocity, effort of the servos
    imu (sensor_msgs/Imu): orientation, angular velocity, specific force of the IMU's link
    <foot>/wrench (geometry_msgs/WrenchStamped): force of the ground on each foot of robot_config
    ground_truth/com (com_msgs/CenterOfMass): the true CoM in the root link's frame, without noise
    ground_truth/trunk_com (com_msgs/CenterOfMass): the same for the root body with its payload
    ground_truth/events (com_msgs/Culprit, latched): each event that begins (named) or ends (not
        named), with the parameters of physics.events.Event; kind UNKNOWN: a push
    /tf: odom -> root link; /clock and robot_description on request; /diagnostics
    All of one instant carry the same stamp: the time at the start plus the simulated time, or with
    publish_clock the simulated time alone.
Subscribes
    joint_trajectory (trajectory_msgs/JointTrajectory): joints by name, cubics where every point has
        velocities, else lines; a stamp of 0 starts it immediately
    joint_commands (std_msgs/Float64MultiArray): one target per joint, in the order of joint_states
    lockstep (std_msgs/Header): with lockstep.nodes, their answers; see com_ros.lockstep
    robot_description (std_msgs/String): when neither of the parameters contains the robot
Services
    ~/hoist (std_srvs/SetBool): lift the robot off the ground by its root, or put it on its soles
    ~/payload (std_srvs/SetBool): put the payload on the trunk, or take it off
    ~/tilt (std_srvs/Trigger): begin to tilt the floor now, not at tilt.start
    ~/push (std_srvs/Trigger): begin pushes and events without a time now
Parameters: see simulator_parameters.Parameters.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from mujoco import MjSpec
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from com_model import RobotModel
from com_model.dynamics import GRAVITY
from com_msgs.msg import CenterOfMass, Culprit
from com_ros import conversions as cv
from com_ros import diagnostics, lockstep, qos
from com_ros.conversions import NS_PER_S, ns_to_stamp, stamp_to_ns
from com_ros.diagnostics import Diagnosis
from com_ros.exceptions import ComRosError
from com_ros.markers import FramePublisher
from com_ros.robot_node import RobotNode
from com_ros.stream import RateLimit
from com_simulation.exceptions import CommandError
from com_simulation.nodes.simulator_parameters import Parameters
from com_simulation.physics.events import Event, find_events
from com_simulation.physics.motion import read_targets, read_trajectory
from com_simulation.physics.pacing import Lockstep, Pacer
from com_simulation.physics.sensors import NoiseLevels, Reading
from com_simulation.physics.servo import Drive, backlash
from com_simulation.physics.simulation import Simulation
from com_simulation.physics.suspension_rig import LIFT_TIME
from com_simulation.physics.true_errors import true_robot, write_urdf
from com_simulation.physics.world_builder import World, build_world
from com_simulation.physics.worlds import find_world, lay_ground, walking_noise

# number of events that later subscribers receive
LATCHED_EVENTS = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class SensorOutput:
    """Publishes joint_states, imu, the feet's wrenches and the true CoM of robot and trunk.

    Args:
        node: that publishes.
        world: the simulated robot, for names and frames.
        noise: for the IMU's covariances.
    """

    def __init__(self, node: Node, world: World, noise: NoiseLevels) -> None:
        def make(
            kind: type, topic: str, frame: str = "", **fields: Any
        ) -> tuple[Publisher, Any]:
            """A publisher with the message that it reuses.

            Args:
                kind: type of the message.
                topic: its topic.
                frame: of its header.
                **fields: of the message, which stay.
            """
            msg = kind(**fields)
            msg.header.frame_id = frame
            return node.create_publisher(kind, topic, qos.RESULT), msg

        self._names, root = list(world.robot.joint_names), world.robot.root_link
        self._joints = make(JointState, "joint_states", name=self._names)
        self._imu = make(Imu, "imu", world.imu_link, **noise.imu_covariances())
        self._wrenches = [
            make(WrenchStamped, foot.wrench_topic, foot.wrench_frame)
            for foot in world.feet
        ]
        # The ground truth does not include the ground.
        known: dict[str, Any] = {
            "status": CenterOfMass.STATUS_OK,
            "support_margin": math.nan,
        }
        known["projection"] = cv.numpy_to_point(np.full(3, np.nan))
        self._truth = make(CenterOfMass, "ground_truth/com", root, **known)
        self._trunk = make(CenterOfMass, "ground_truth/trunk_com", root, **known)

    def publish(self, reading: Reading, stamp: Time) -> None:
        """Publishes one instant; joint_states last, as nodes combine them with earlier messages.

        Args:
            reading: of all sensors, and the truth.
            stamp: of the instant.
        """
        truth, trunk, imu = self._truth[1], self._trunk[1], self._imu[1]
        truth.mass, trunk.mass = reading.mass, reading.trunk_mass
        truth.position = cv.numpy_to_point(reading.com)
        truth.velocity = cv.numpy_to_vector3(reading.com_velocity)
        truth.gravity = cv.numpy_to_vector3(reading.gravity)
        trunk.position = cv.numpy_to_point(reading.trunk_com)
        trunk.gravity = cv.numpy_to_vector3(reading.gravity)
        imu.orientation = cv.numpy_to_quaternion(reading.imu_orientation)
        imu.angular_velocity = cv.numpy_to_vector3(reading.angular_velocity)
        imu.linear_acceleration = cv.numpy_to_vector3(reading.specific_force)
        for (_, msg), wrench in zip(self._wrenches, reading.wrenches, strict=True):
            msg.wrench = cv.numpy_to_wrench(wrench)
        joints = reading.position, reading.velocity, reading.effort
        cv.numpy_to_joint_state(self._names, *joints, stamp, self._joints[1])
        for publisher, msg in (
            self._truth,
            self._trunk,
            self._imu,
            *self._wrenches,
            self._joints,
        ):
            msg.header.stamp = stamp
            publisher.publish(msg)


LATE = 0.1  # s behind the wall clock from which on the machine counts as too slow


class Simulator(RobotNode[Parameters]):
    """ROS 2 node `simulator`: MuJoCo in the place of a robot and its drivers.

    The simulation runs in its own thread; the executor's thread handles the commands. The
    module's docstring lists topics and services, simulator_parameters.Parameters the parameters.

    Args:
        **options: passed on to RobotNode and rclpy's Node, such as parameter_overrides.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("simulator", Parameters, subject="simulation", **options)
        self.parameters.check()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._error_published = False
        self._late_reports = 0
        self._commands: deque[Callable[[], None]] = deque()
        robot = self.parameters.model()
        if robot is not None:
            self.use_model(robot)
        else:
            self.follow_robot_description()

    def destroy_node(self) -> None:
        """Stops the simulation, then destroys the node."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        super().destroy_node()

    @property
    def robot_name(self) -> str:
        """Name of the simulated robot; empty before the start."""
        return "" if self._thread is None else self._simulation.world.robot.name

    # --- start ---------------------------------------------------------------------------------
    def use_model(self, model: RobotModel) -> None:
        """Builds the world of the first robot, and starts the simulation.

        Args:
            model: the robot that the nodes assume; the simulated one may have errors.

        Raises:
            ComModelError: a robot is being simulated already, or this one cannot be.
        """
        if self._thread is not None:
            raise ComRosError(
                "a robot is being simulated: start another simulator for this one"
            )
        options = self.parameters
        try:
            self._around = find_world(options.world)
            robot = true_robot(model, options.true_errors, options.true_urdf_file)
            if options.true_urdf_output:
                write_urdf(robot, options.true_urdf_output)
            world, self._drive = self._build(robot), None
            events = find_events(options.event, world, self.config)
            if options.max_acceleration:
                self._drive = Drive(
                    robot, robot.velocity_limits, options.max_acceleration
                )
        except OSError as error:
            raise ComRosError(str(error)) from error
        noise = options.noise.levels()
        if self._around.noise:
            noise = walking_noise(robot.mass * GRAVITY)
        flexible = self._around.flexible or noise.flexibility
        zeros = self._around.zeros or noise.position_bias
        noise = replace(noise, position_bias=zeros, flexibility=flexible)
        errors = options.seed, options.payload, options.tilt
        self._simulation = Simulation(
            world, 1.0 / options.publish_rate_hz, noise, *errors, self._drive, events
        )
        self._log_start(world)
        self._sensors = SensorOutput(self, world, noise)
        self._events = self.create_publisher(
            Culprit, "ground_truth/events", LATCHED_EVENTS
        )
        self._told = tuple[Event, ...]()
        self._clock_output = None
        if options.publish_clock:
            self._clock_output = self.create_publisher(Clock, "/clock", qos.RESULT)
        self._pose = (
            FramePublisher(self, options.frame_prefix)
            if options.publish_odom_tf
            else None
        )
        self._pose_rate = RateLimit(50.0)
        if options.publish_robot_description:
            latched = self.create_publisher(String, "robot_description", qos.LATCHED)
            latched.publish(String(data=model.xml))
        self._command_inputs = (
            self.create_subscription(
                JointTrajectory, "joint_trajectory", self._on_trajectory, qos.RESULT
            ),
            self.create_subscription(
                Float64MultiArray, "joint_commands", self._on_targets, qos.RESULT
            ),
        )
        mass, angle = options.payload.mass, options.tilt.angle_deg
        no_payload = "" if mass else "there is no payload: give payload.mass"
        fixed = (
            "" if world.floating else "the robot's root is fixed: it need not be lifted"
        )
        even = "" if angle else "the floor does not tilt: give tilt.angle_deg"
        texts = f"{mass:g} kg on the trunk", f"{mass:g} kg off the trunk"
        self._offer(
            SetBool, "~/payload", no_payload, self._simulation.set_payload, *texts
        )
        texts = f"goes up in {LIFT_TIME:g} s", f"goes down in {LIFT_TIME:g} s"
        self._offer(SetBool, "~/hoist", fixed, self._simulation.set_lifted, *texts)
        tilt = self._simulation.tilt
        self._offer(
            Trigger, "~/tilt", even, lambda _: tilt(), f"tilts to {angle:g} deg", ""
        )
        self._start_ns = (
            0 if options.publish_clock else self.get_clock().now().nanoseconds
        )
        timed = all(math.isfinite(event.begin) for event in events)
        unpushed = "no event is without a time: give event" if timed else ""
        begin = self._simulation.begin
        self._offer(Trigger, "~/push", unpushed, lambda _: begin(), "begins", "")
        late = round(self._around.delay / self._simulation.sample_period)
        self._past: deque[tuple[Reading, Time]] = deque(maxlen=late + 1)
        self._pacer = Pacer(options.real_time_factor)
        self._lockstep = Lockstep(options.lockstep.nodes)
        if options.lockstep.nodes:
            self.create_subscription(
                Header, lockstep.TOPIC, self._on_answer, qos.RESULT
            )
        self._thread = threading.Thread(
            target=self._run, name="simulation", daemon=True
        )
        self._thread.start()

    def _build(self, robot: RobotModel) -> World:
        options, around = self.parameters, self._around
        corners = (
            self.config.feet[0].corners if self.config and self.config.feet else ()
        )
        # feet without soles get tiles and steps for soles of 0.1 m
        sole = float(np.ptp(np.array(corners)[:, 0])) if len(corners) else 0.1
        ground, width = (
            lay_ground(around, sole, options.seed),
            around.backlash or options.backlash,
        )
        play = backlash(robot, width)

        def edit(spec: MjSpec) -> None:
            ground(spec)
            play(spec)

        world = build_world(
            robot,
            self.config,
            base=options.base,
            ground_slope=around.slope or float(np.deg2rad(options.ground_slope_deg)),
            step=options.physics_step,
            urdf_path=options.urdf_file or None,
            integrator=options.integrator,
            contact="soft" if around.soft else options.contact,
            trunk_com_offset=options.trunk_com_offset,
            joint_friction=options.joint_friction,
            viscous_friction=options.viscous_friction,
            load_friction=options.load_friction,
            edit=edit,
        )
        world.mj.geom_friction[:, 0] *= around.friction
        return world

    def _log_start(self, world: World) -> None:
        base = "standing" if world.floating else "with a fixed base"
        self.get_logger().info(
            f"simulating '{world.robot.name}' {base}: {world.robot.n_joints} joints, "
            f"{world.robot.mass:.6g} kg, {len(world.feet)} feet, IMU in '{world.imu_link}', "
            f"{1.0 / self._simulation.sample_period:g} samples a second"
        )
        for note in world.notes:
            self.get_logger().warning(note)

    # --- the simulation's thread ---------------------------------------------------------------
    def _run(self) -> None:
        try:
            if self.parameters.lockstep.nodes:
                begin = time.monotonic()
                self._wait_for_nodes(0, self.parameters.lockstep.start_timeout)
                busy = 0.3 * (time.monotonic() - begin)
                # for the other side of the connections, when the nodes have theirs: 0.5 s, on a
                # busy machine 0.3 of the time that took in addition, and 10 s at most
                time.sleep(min(max(busy, 0.5), 10.0))
                self._simulation.advance()  # stamp 0 means no stamp
            while not self._stop.is_set() and self.context.ok():
                self._advance()
        except Exception as error:
            if (
                self.context.ok()
            ):  # else ROS was shut down while a message was on its way
                self._error = error

    def _advance(self) -> None:
        while self._commands:
            try:
                self._commands.popleft()()
            except CommandError as error:
                self.log.warn("joint_trajectory", f"joint_trajectory refused: {error}")
        reading = self._simulation.advance()
        self._pacer.wait(reading.time)
        stamp = ns_to_stamp(self._start_ns + round(reading.time * NS_PER_S))
        if self._clock_output is not None:
            self._clock_output.publish(Clock(clock=stamp))
        if self._pose is not None and self._pose_rate.due(stamp_to_ns(stamp)):
            R = cv.quaternion_to_rotation(
                cv.numpy_to_quaternion(reading.root_orientation)
            )
            root = self._simulation.world.robot.root_link
            self._pose.send(stamp, "odom", [(root, reading.root_position, R)])
        self._tell(self._simulation.acting)
        self._past.append((reading, stamp))  # sensors that are late keep their stamps
        if len(self._past) < (self._past.maxlen or 0):
            return
        self._sensors.publish(*self._past[0])
        if self.parameters.lockstep.nodes:
            self._wait_for_nodes(
                stamp_to_ns(self._past[0][1]), self.parameters.lockstep.timeout
            )

    def _tell(self, acting: tuple[Event, ...]) -> None:
        """Publishes each event that has begun or ended."""
        for event in sorted({*acting} ^ {*self._told}, key=lambda e: e in acting):
            msg = Culprit(
                kind=getattr(Culprit, event.kind), name=event.name, parts=[event.part]
            )
            msg.named, msg.lasting = event in acting, math.isinf(event.duration)
            msg.probability = float(msg.named)
            msg.onset = ns_to_stamp(self._start_ns + round(event.begin * NS_PER_S))
            msg.parameters = event.vector.tolist()
            self._events.publish(msg)
        self._told = acting

    def _wait_for_nodes(self, stamp_ns: int, timeout: float) -> None:
        """Waits until lockstep.nodes have answered the sample of a stamp; 0: are ready."""
        begin = time.monotonic()
        while not self._stop.is_set() and self.context.ok():
            # every 0.25 s it checks whether the simulation should end
            missing = self._lockstep.wait(stamp_ns, 0.25)
            waited = time.monotonic() - max(begin, self._lockstep.newest)
            if not missing:
                return
            what = (
                f"the sample of {self._simulation.time:.3f} s"
                if stamp_ns
                else "the start"
            )
            if waited > timeout:
                self._lockstep.continue_without(missing)
                self.get_logger().error(
                    f"no answer of {', '.join(missing)} to {what} within {timeout:g} s: the "
                    "simulation goes on without; see the log of the node"
                )
            elif waited > 3.0:  # s
                self.log.warn(
                    "lockstep", f"waits for {', '.join(missing)} to answer {what}"
                )

    # --- the executor's thread -----------------------------------------------------------------
    def _on_trajectory(self, msg: JointTrajectory) -> None:
        try:
            trajectory = read_trajectory(
                self._simulation.world.robot.joint_names,
                msg.joint_names,
                [
                    p.time_from_start.sec + p.time_from_start.nanosec / NS_PER_S
                    for p in msg.points
                ],
                [p.positions for p in msg.points],
                [p.velocities for p in msg.points],
            )
            start = self._time_of(msg.header.stamp)
            self._commands.append(lambda: self._simulation.follow(trajectory, start))
        except CommandError as error:
            self.log.warn("joint_trajectory", f"joint_trajectory refused: {error}")

    def _on_answer(self, msg: Header) -> None:
        # What the node commanded before has come, but the executor may have looked too early.
        for subscription in self._command_inputs:
            handle = subscription.handle
            with handle:
                while (
                    taken := handle.take_message(subscription.msg_type, False)
                ) is not None:
                    subscription.callback(taken[0])
        self._lockstep.answer(msg.frame_id, stamp_to_ns(msg.stamp))

    def _on_targets(self, msg: Float64MultiArray) -> None:
        try:
            targets = read_targets(self._simulation.world.robot.joint_names, msg.data)
            self._commands.append(lambda: self._simulation.command(targets))
        except CommandError as error:
            self.log.warn("joint_commands", f"joint_commands refused: {error}")

    def _offer(
        self,
        kind: type,
        name: str,
        refusal: str,
        act: Callable[[bool], None],
        on: str,
        off: str,
    ) -> None:
        """Offers a Trigger or SetBool service, carried out in the simulation's thread."""

        def answer(request: Any, response: Any) -> Any:
            """Queues the command for the simulation's thread, or refuses it.

            Args:
                request: of the service; `data` says on or off where it has one.
                response: filled.
            """
            if refusal:
                raise ComRosError(refusal)
            wanted = getattr(request, "data", True)
            self._commands.append(lambda: act(wanted))
            response.success, response.message = True, on if wanted else off
            return response

        self.create_service(kind, name, answer)

    def _time_of(self, stamp: Time) -> float | None:
        """Simulated time (s) of a trajectory's stamp; None for 0, which means immediately."""
        stamp_ns = stamp_to_ns(stamp)
        if stamp_ns == 0:
            return None
        time = (stamp_ns - self._start_ns) / NS_PER_S
        ahead = time - self._simulation.time
        # a trajectory that begins more than a minute later was stamped by another clock
        if ahead > 60.0:
            raise CommandError(
                f"it begins in {ahead:.3g} s: stamp it by the clock of joint_states, or leave its "
                "stamp 0 to start at once"
            )
        return time

    def watch(self) -> None:
        """Ends the node when the simulation has failed, once /diagnostics shows why."""
        if self._error is not None and self._error_published:
            raise self._error

    def diagnose(self) -> Diagnosis:
        """Status for /diagnostics: whether the simulation keeps up with the wall clock.

        Returns:
            OK, WARN when it is too slow or a node does not answer, ERROR when it has failed.
        """
        if self._error is not None:
            self._error_published = True
            return Diagnosis(diagnostics.ERROR, str(self._error))
        return (
            Diagnosis(diagnostics.WARN, self.waiting)
            if self._thread is None
            else self._report()
        )

    def _report(self) -> Diagnosis:
        time = self._simulation.time
        pace = self._pacer.report(time)
        level, message = diagnostics.OK, "simulating"
        # With a clock of its own being slow is no fault: nothing is old by it.
        waits = bool(self.parameters.lockstep.nodes) or self.parameters.publish_clock
        self._late_reports = (
            self._late_reports + 1 if pace.drift > LATE and not waits else 0
        )
        if self._lockstep.late:
            level = diagnostics.WARN
            message = f"goes on without {', '.join(self._lockstep.late)}, which did not answer"
        elif self._late_reports:
            level = diagnostics.WARN
            message = (
                f"the machine is too slow: {pace.drift:.3g} s behind, "
                f"{pace.real_time_factor:.2f} times real time; lower publish_rate_hz, raise "
                "physics_step, or set publish_clock here and use_sim_time in the other nodes"
            )
            # one a second; fewer in a row are a hiccup that is caught up, and not logged
            if self._late_reports >= 3:
                self.log.warn("drift", message)
        for key, text in self._drive.excess().items() if self._drive else ():
            self.log.warn(" ".join(key), text)
        values: dict[str, object] = {
            "simulated_time_s": time,
            "real_time_factor": pace.real_time_factor,
            "drift_s": pace.drift,
            "load": pace.load,
            "rate_hz": 1.0 / self._simulation.sample_period,
        }
        return Diagnosis(level, message, values)
