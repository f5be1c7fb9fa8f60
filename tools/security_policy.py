"""Writes launch/policies/com.policy.xml, access control of SROS 2, from what the nodes really use.

Starts the launch files with all their nodes and options that add topics, asks the ROS graph what
each node publishes, subscribes to, serves and calls, and allows that and nothing else: one enclave
/com/NODE for each node. robot_state_publisher and rviz2, which are no part of the suite, get what
their documentation and the layouts name, and state_adapter the topic of Unitree's robots. Only the
topics of the feet's wrenches depend on the robot: those of all shipped configurations are allowed,
and of further ones that are given.

    tools/in_env python tools/security_policy.py                  write the file
    tools/in_env python tools/security_policy.py --check          compare it with the running nodes
    tools/in_env python tools/security_policy.py --check --only trot    of the launch files named so
    tools/in_env python tools/security_policy.py --config my_robot.yaml --output my.policy.xml

Names are relative to --namespace (/), which must be that of the launch files. docs/security.md.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent
POLICY = ROOT / "launch/policies/com.policy.xml"
ENCLAVES = "/com/"
COMMON = "use_sim_time:=true rviz:=false viewer:=true real_time_factor:=0.2"
LOCKSTEP = f"lockstep:=true {COMMON}"
LAUNCHES = (
    f"robot.launch.xml robot:=hoap2 diagnosis:=true sway:=true use_imu:=true wrenches:=estimated "
    f"{LOCKSTEP}",
    f"walk.launch.xml robot:=g1 {LOCKSTEP}",
    f"trot.launch.xml robot:=scalf2 corrected:=true feedback:=true {LOCKSTEP}",
    f"balance.launch.xml robot:=hoap2 {LOCKSTEP}",
    f"motion.launch.xml robot:=hoap2 {COMMON}",
    f"identification.launch.xml robot:=hoap2 tour:=true keep_feet:=false hoist:=simulator/hoist "
    f"use_effort:=true lockstep:=true storage:=FOLDER {COMMON}",
    f"posture_protocol.launch.xml robot:=hoap2 simulation:=true {LOCKSTEP}",
)
FOUND_S, UNCHANGED_S = 300.0, 20.0
"""Within which a launch file's nodes are there, and how long nothing new must come, s."""
EVERY = 11
"""Uses that every node has, parameters and logs; one with no more is still being set up."""
RULES = ("publish", "subscribe", "reply", "request", "execute", "call")
ELEMENTS = {
    "publish": "topic", "subscribe": "topic", "reply": "service", "request": "service",
    "execute": "action", "call": "action",
}  # fmt: skip
Uses = set[tuple[str, str]]
"""Rule and full name."""


def uses_of(observer: Any, name: str, namespace: str) -> Uses:
    """What the graph says that a node uses; `observer` is any node of rclpy."""
    from rclpy.action import graph

    ask = {
        "publish": observer.get_publisher_names_and_types_by_node,
        "subscribe": observer.get_subscriber_names_and_types_by_node,
        "reply": observer.get_service_names_and_types_by_node,
        "request": observer.get_client_names_and_types_by_node,
        "execute": lambda *a: graph.get_action_server_names_and_types_by_node(
            observer, *a
        ),
        "call": lambda *a: graph.get_action_client_names_and_types_by_node(
            observer, *a
        ),
    }
    found = {
        (rule, used) for rule, get in ask.items() for used, _ in get(name, namespace)
    }
    return {(rule, used) for rule, used in found if "/_action/" not in used}


def allowed(path: Path = POLICY) -> dict[str, Uses]:
    """What a policy allows each node, by its name; full names."""
    result: dict[str, Uses] = {}
    for profile in ElementTree.parse(path).getroot().iter("profile"):  # noqa: S314 (our own)
        node, namespace = profile.get("node", ""), profile.get("ns", "/").rstrip("/")
        uses = result.setdefault(node, set())
        for element in profile:
            for rule in RULES:
                if element.get(rule) == "ALLOW":
                    uses |= {
                        (rule, full_name(e.text or "", node, namespace))
                        for e in element
                    }
    return result


def full_name(text: str, node: str, namespace: str) -> str:
    """The name that an expression of a policy stands for."""
    if text.startswith("~"):
        return f"{namespace}/{node}{text[1:]}"
    return text if text.startswith("/") else f"{namespace}/{text}"


def wrench_topics(configs: Iterable[Path]) -> dict[str, set[str]]:
    """Topics of the feet's wrenches, by name of the robot."""
    from com_model import RobotConfig

    return {
        path.stem: {foot.wrench_topic for foot in RobotConfig.from_file(str(path)).feet}
        for path in configs
    }


def with_all_robots(uses: Uses, topics: Mapping[str, set[str]], namespace: str) -> Uses:
    """The uses, with the wrenches of all robots where those of one are used.

    Who subscribes to measured ones may subscribe to those of foot_forces, and the reverse.
    """
    measured = {
        f"{namespace.rstrip('/')}/{topic}" for part in topics.values() for topic in part
    }
    estimated = {f"{name}_estimate" for name in measured}
    result = set(uses)
    for every in (measured, estimated):
        rules = {rule for rule, name in uses if name in every}
        result |= {(rule, name) for rule in rules for name in every}
        if "subscribe" in rules:
            result |= {("subscribe", name) for name in measured | estimated}
    return result


def foreign(namespace: str) -> dict[str, Uses]:
    """What robot_state_publisher, rviz2 and state_adapter, which reads a robot's topic, may do."""
    base, parameters = namespace.rstrip("/"), ("describe_parameters", "get_parameter_types",
        "get_parameters", "list_parameters", "set_parameters", "set_parameters_atomically",
        "get_type_description")  # fmt: skip
    layouts = [
        path.read_text() for path in sorted((ROOT / "launch/rviz").glob("*.rviz"))
    ]
    shown = {
        name
        for text in layouts
        for name in re.findall(r"^ *Value: ([a-z_/]+)$", text, re.M)
    }
    shown -= {"true", "false"}
    own = {
        "robot_state_publisher": {("publish", name) for name in ("/tf", "/tf_static")}
        | {
            ("publish", f"{base}/robot_description"),
            ("subscribe", f"{base}/joint_states"),
        },
        "rviz2": {("subscribe", full_name(name, "rviz2", base)) for name in shown}
        | {("subscribe", "/tf"), ("subscribe", "/tf_static")},
        "state_adapter": {
            ("publish", name)
            for name in (
                f"{base}/joint_states",
                f"{base}/imu",
                f"{base}/lockstep",
                "/diagnostics",
            )
        }
        | {
            ("subscribe", f"{base}/lowstate"),
            ("subscribe", f"{base}/robot_description"),
        },
    }
    for node, uses in own.items():
        uses |= {("reply", f"{base}/{node}/{name}") for name in parameters}
        uses |= {("publish", "/rosout"), ("publish", "/parameter_events")}
        uses |= {("subscribe", "/clock"), ("subscribe", "/parameter_events")}
    return own


def reads(uses: Uses) -> bool:
    """Whether a node listens to joint states, which it does last where it is slow to start."""
    return any(
        rule == "subscribe" and name.endswith("/joint_states") for rule, name in uses
    )


def watch(words: list[str], domain: int) -> dict[str, Uses]:
    """Starts a launch file, and asks the graph until nothing new comes."""
    sys.path.insert(0, str(TOOLS))
    import rclpy
    from launcher.interpreter import nodes_of

    arguments = dict(word.split(":=", 1) for word in words[1:])
    nodes = nodes_of(ROOT / "launch" / words[0], arguments)
    # robot_state_publisher is not installed everywhere, and foreign() has it
    planned = {node.name or "" for node in nodes} - {"robot_state_publisher"}
    environment = {**os.environ, "ROS_DOMAIN_ID": str(domain)}
    command = [str(TOOLS / "run_launch"), str(ROOT / "launch" / words[0]), *words[1:]]
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=domain)
    observer = rclpy.create_node("_policy", context=context, enable_rosout=False)
    found: dict[str, Uses] = {}
    readers = {
        name for name, uses in allowed().items() if reads(uses)
    }  # as far as is known
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            begin = changed = time.monotonic()
            while time.monotonic() - changed < UNCHANGED_S or not all(
                len(found.get(name, ())) > EVERY
                and (name not in readers or reads(found[name]))
                for name in planned
            ):
                if time.monotonic() - begin > FOUND_S:
                    break
                time.sleep(0.5)
                for name, namespace in observer.get_node_names_and_namespaces():
                    if name not in planned:
                        continue
                    new = uses_of(observer, name, namespace) - found.get(name, set())
                    if new:
                        found[name] = found.get(name, set()) | new
                        changed = time.monotonic()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
            observer.destroy_node()
            rclpy.shutdown(context=context)
    missing = planned - found.keys()
    if missing:
        raise SystemExit(
            f"{words[0]}: {', '.join(sorted(missing))} did not come up: run it by hand"
        )
    print(
        f"{words[0]}: {', '.join(f'{name} {len(u)}' for name, u in sorted(found.items()))}"
    )
    return found


def observe(
    configs: list[Path], namespace: str, domain: int, only: str = ""
) -> dict[str, Uses]:
    """What the nodes of the launch files use, by name of the node."""
    topics, found = wrench_topics(configs), {} if only else foreign(namespace)
    with TemporaryDirectory() as folder:
        for i, line in enumerate(line for line in LAUNCHES if line.startswith(only)):
            words = [word.replace("FOLDER", folder) for word in line.split()]
            words += [f"namespace:={namespace}"] if namespace != "/" else []
            for name, uses in watch(words, domain + i).items():
                uses = with_all_robots(uses, topics, namespace)
                found[name] = found.get(name, set()) | uses
    return found


def write(found: Mapping[str, Uses], namespace: str, path: Path) -> None:
    """Writes the policy."""
    policy = ElementTree.Element("policy", version="0.2.0")
    enclaves = ElementTree.SubElement(policy, "enclaves")
    for node in sorted(found):
        enclave = ElementTree.SubElement(enclaves, "enclave", path=ENCLAVES + node)
        profiles = ElementTree.SubElement(enclave, "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns=namespace, node=node)
        for rule in RULES:
            names = sorted(name for kind, name in found[node] if kind == rule)
            if names:
                kind = ELEMENTS[rule]
                part = ElementTree.SubElement(profile, f"{kind}s", {rule: "ALLOW"})
                for name in names:
                    ElementTree.SubElement(part, kind).text = name
    ElementTree.indent(policy)
    path.write_text(
        ElementTree.tostring(policy, encoding="unicode", xml_declaration=True) + "\n"
    )


def differences(
    found: Mapping[str, Uses], policy: Mapping[str, Uses], whole: bool = True
) -> list[str]:
    """What nodes use and may not and, if all was observed, may and do not use, as lines."""
    lines = []
    for node in sorted(found.keys() | policy.keys()):
        used, may = found.get(node, set()), policy.get(node, set())
        spare = sorted(may - used) if whole else []
        lines += [
            f"{node} may not {rule} {name}, but does"
            for rule, name in sorted(used - may)
        ]
        lines += [f"{node} may {rule} {name}, but does not" for rule, name in spare]
    return lines


def main() -> int:
    """Writes the policy, or checks it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--check", action="store_true", help="compare, and write nothing"
    )
    parser.add_argument(
        "--config", type=Path, action="append", default=[], help="of your robot"
    )
    parser.add_argument(
        "--namespace", default="/", help="absolute; / unless launch files get one"
    )
    parser.add_argument("--output", type=Path, default=POLICY)
    parser.add_argument(
        "--domain", type=int, default=int(os.environ.get("ROS_DOMAIN_ID", "90"))
    )
    parser.add_argument(
        "--only", default="", help="launch files of names that begin so (--check)"
    )
    options = parser.parse_args()
    if options.only and not (
        options.check and any(w.startswith(options.only) for w in LAUNCHES)
    ):
        parser.error(
            f"--only {options.only}: with --check, and the beginning of a launch file"
        )
    shipped = sorted((ROOT / "src/robot_descriptions/config").glob("*.yaml"))
    found = observe(
        shipped + options.config, options.namespace, options.domain, options.only
    )
    if options.check:
        lines = differences(found, allowed(options.output), whole=not options.only)
        print("\n".join(lines) or "the policy is what the nodes use")
        return 1 if lines else 0
    write(found, options.namespace, options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
