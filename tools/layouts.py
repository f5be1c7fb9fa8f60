"""Writes launch/layouts/: what PlotJuggler and Lichtblick or Foxglove show of com, trot and walk.

One table for both: plots of numbers of messages, beside the robot in three dimensions.

    tools/in_env python tools/layouts.py
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

FOLDER = Path(__file__).resolve().parents[1] / "launch/layouts"
LAYOUTS: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "com": (
        ("/com/markers", "/com/support"),
        {
            "CoM in the root link (m)": tuple(
                f"/com.position.{axis}" for axis in "xyz"
            ),
            "its velocity (m/s)": tuple(f"/com.velocity.{axis}" for axis in "xyz"),
            "support margin (m)": ("/com.support_margin",),
            "status: 0 UNKNOWN, 4 DEGRADED, 5 OK": ("/com.status",),
        },
    ),
    "trot": (
        ("/trunk_com/markers", "/com/markers"),
        {
            "trunk's CoM minus the URDF's (m)": tuple(
                f"/trunk_com.offset_from_urdf.{axis}" for axis in "xyz"
            ),
            "trunk's mass and its std (kg)": ("/trunk_com.mass", "/trunk_com.mass_std"),
            "ground on the feet, upwards (N)": tuple(
                f"/ground_reaction.forces[{leg}].z" for leg in range(4)
            ),
            "status: 1 ESTIMATING, 2 USABLE, 3 CONVERGED, 4 DEGRADED": (
                "/trunk_com.status",
            ),
        },
    ),
    "walk": (
        ("/gait/markers", "/com/markers"),
        {
            "forwards: planned and measured CoM, ZMP (m)": tuple(
                f"/gait/state.{name}.x"
                for name in ("com_reference", "com", "zmp_reference", "zmp")
            ),
            "to the left: planned and measured CoM, ZMP (m)": tuple(
                f"/gait/state.{name}.y"
                for name in ("com_reference", "com", "zmp_reference", "zmp")
            ),
            "DCM to the left (m)": ("/gait/dcm_reference.point.y", "/gait/dcm.point.y"),
            "error of the CoM (m)": ("/gait/state.com_error",),
            "state: 1 READY, 5 WALKING, 6 STOPPING, 7 FALLEN": ("/gait/state.state",),
        },
    ),
}
COLORS = (
    "#d55e00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
)  # colour-blind safe [Okabe and Ito 2008]
SECONDS = 20.0


def plotjuggler(plots: dict[str, tuple[str, ...]]) -> str:
    """A layout of PlotJuggler."""
    make = ElementTree.SubElement
    root = ElementTree.Element("root")
    window = make(
        root, "tabbed_widget", {"parent": "main_window", "name": "Main Window"}
    )
    tab = make(window, "Tab", tab_name="centre of mass", containers="1")
    sizes = ";".join([f"{1.0 / len(plots):.6f}"] * len(plots))
    split = make(
        make(tab, "Container"),
        "DockSplitter",
        orientation="-",
        sizes=sizes,
        count=str(len(plots)),
    )
    for title, paths in plots.items():
        area = make(split, "DockArea", name=title)
        plot = make(
            area,
            "plot",
            mode="TimeSeries",
            style="Lines",
            flip_x="false",
            flip_y="false",
        )
        make(plot, "limitY")
        for path, color in zip(paths, COLORS, strict=False):
            make(plot, "curve", name=path.replace(".", "/"), color=color)
    make(window, "currentTabIndex", index="0")
    make(root, "use_relative_time_offset", enabled="1")
    make(root, "previouslyLoaded_Streamer", name="ROS2 Topic Subscriber")
    plugin = make(make(root, "Plugins"), "plugin", ID="ROS2 Topic Subscriber")
    make(plugin, "use_header_stamp", value="true")
    topics = make(plugin, "selected_topics")
    for topic in sorted(
        {path.partition(".")[0] for paths in plots.values() for path in paths}
    ):
        make(topics, "topic", name=topic)
    ElementTree.indent(root, " ")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def foxglove(shown: tuple[str, ...], plots: dict[str, tuple[str, ...]]) -> str:
    """A layout of Lichtblick and Foxglove."""
    robot = {
        "layerId": "foxglove.Urdf", "instanceId": "robot", "label": "robot", "visible": True,
        "sourceType": "topic", "topic": "/robot_description",
    }  # fmt: skip
    panels: dict[str, Any] = {
        "3D!robot": {
            "followTf": "odom",
            "topics": {topic: {"visible": True} for topic in shown},
            "layers": {"robot": robot},
        }
    }
    names = []
    for title, paths in plots.items():
        names.append("Plot!" + re.sub(r"\W+", "_", title))
        panels[names[-1]] = {
            "title": title,
            "paths": [
                {
                    "value": path,
                    "color": color,
                    "timestampMethod": "headerStamp",
                    "enabled": True,
                }
                for path, color in zip(paths, COLORS, strict=False)
            ],
            "showLegend": True,
            "legendDisplay": "floating",
            "isSynced": True,
            "xAxisVal": "timestamp",
            "followingViewWidth": SECONDS,
        }
    column: Any = names[-1]
    for number, name in enumerate(reversed(names[:-1]), start=2):
        fraction = round(100.0 / number)
        column = {
            "first": name, "second": column, "direction": "column", "splitPercentage": fraction,
        }  # fmt: skip
    layout = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {
            "first": "3D!robot", "second": column, "direction": "row", "splitPercentage": 55,
        },
    }  # fmt: skip
    return json.dumps(layout, indent=1) + "\n"


def files() -> dict[Path, str]:
    """The text of all files."""
    found = {}
    for name, (shown, plots) in LAYOUTS.items():
        found[FOLDER / f"{name}.plotjuggler.xml"] = plotjuggler(plots)
        found[FOLDER / f"{name}.foxglove.json"] = foxglove(shown, plots)
    return found


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in files().items():
        path.write_text(text)
