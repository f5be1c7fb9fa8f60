"""ros2 service and ros2 action."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

from action_msgs.msg import GoalStatus
from rclpy.action import ActionClient, get_action_names_and_types

from ros2_command.messages import fill, find_type, read_values, yaml_text
from ros2_command.session import FOUND_S, CommandError, Session, absolute
from ros2_command.topics import print_names


def show_services(options: argparse.Namespace) -> None:
    """Ros2 service list."""
    with Session() as session:
        found = session.all_of(session.services)
    print_names(found, options.show_types)


def show_type(options: argparse.Namespace) -> None:
    """Ros2 service type."""
    name = absolute(options.service)
    with Session() as session:
        if not session.until(lambda: name in session.services(), FOUND_S):
            raise CommandError(f"there is no service {name}")
        print(*session.services()[name], sep="\n")


def call(options: argparse.Namespace) -> None:
    """Ros2 service call."""
    kind, name = find_type(options.type, "srv"), absolute(options.service)
    request = fill(kind.Request(), read_values(options.values))
    with Session() as session:
        client = session.node.create_client(kind, name)
        if not session.until(client.service_is_ready, 0.3):
            print("waiting for service to become available...", flush=True)
            session.until(client.service_is_ready)
        print(f"requester: making request: {request!r}\n", flush=True)
        answer = session.result(client.call_async(request), name)
        print(f"response:\n{answer!r}\n", flush=True)


def show_actions(options: argparse.Namespace) -> None:
    """Ros2 action list."""
    with Session() as session:
        found = session.all_of(
            lambda: dict(sorted(get_action_names_and_types(session.node)))
        )
    print_names(found, options.show_types)


def send_goal(options: argparse.Namespace) -> None:
    """Ros2 action send_goal; Ctrl-C cancels the goal."""
    kind, name = find_type(options.type, "action"), absolute(options.action)
    goal = fill(kind.Goal(), read_values(options.goal))

    def show(title: str, message: Any) -> None:
        print(f"{title}:\n{textwrap.indent(yaml_text(message), '    ')}", flush=True)

    with Session() as session:
        client = ActionClient(session.node, kind, name)
        print("Waiting for an action server to become available...", flush=True)
        session.until(client.server_is_ready)
        show("Sending goal", goal)
        feedback = (
            (lambda msg: show("Feedback", msg.feedback)) if options.feedback else None
        )
        handle = session.result(
            client.send_goal_async(goal, feedback_callback=feedback), name
        )
        if not handle.accepted:
            raise CommandError("Goal was rejected.")
        print(
            f"Goal accepted with ID: {bytes(handle.goal_id.uuid).hex()}\n", flush=True
        )
        try:
            answer = session.result(handle.get_result_async(), name)
        except KeyboardInterrupt:
            print("Canceling goal...", flush=True)
            session.result(handle.cancel_goal_async(), name, 5.0)
            raise
        show("Result", answer.result)
        print(f"Goal finished with status: {_status(answer.status)}")
        client.destroy()


def _status(number: int) -> str:
    names = {
        getattr(GoalStatus, name): name for name in dir(GoalStatus) if "STATUS_" in name
    }
    return names[number].removeprefix("STATUS_")
