"""Writes state messages of Unitree's robots in their full layout, with numpy alone."""

import sqlite3
from pathlib import Path

import numpy as np
import yaml

KINDS = {
    # type: size; offsets behind the four bytes in front of: quaternion, q of the first motor, the
    # next motor, tick, mode_pr
    "unitree_go/msg/LowState": (1180, 24, 80, 48, 1096, None),
    "unitree_hg/msg/LowState": (2092, 16, 72, 56, 12, 8),
}


def message(
    kind: str,
    tick: int,
    motors: dict[int, tuple[float, float, float]],
    quaternion: np.ndarray,
    gyro: np.ndarray,
    force: np.ndarray,
    mode_pr: int = 0,
    extra: int = 0,
) -> bytes:
    """Bytes of one message.

    Args:
        kind: Of KINDS.
        tick: ms.
        motors: Position, velocity and torque by number.
        quaternion: w, x, y, z.
        gyro: rad/s.
        force: m/s^2.
        mode_pr: 1: motors in place of joints.
        extra: Bytes that a newer firmware appends.
    """
    size, imu, q, stride, at, mode = KINDS[kind]
    data = np.zeros(size + extra, np.uint8)
    numbers = np.concatenate((quaternion, gyro, force)).astype("<f4")
    data[imu : imu + 40] = numbers.view(np.uint8)
    for slot, (position, velocity, torque) in motors.items():
        start = q + stride * slot
        four = np.array([position, velocity, 0.0, torque], "<f4")
        data[start : start + 16] = four.view(np.uint8)
    data[at : at + 4] = np.array([tick], "<u4").view(np.uint8)
    if mode is not None:
        data[mode] = mode_pr
    return b"\0\1\0\0" + data.tobytes()


def write_humble(path: Path, topic: str, kind: str, messages: list) -> None:
    """Write a bag as ROS 2 Humble does: sqlite3, without definitions of types.

    Args:
        path: Folder to make.
        topic: Name of the topic.
        kind: Its type.
        messages: Time of recording in ns, and bytes of each.
    """
    path.mkdir(parents=True)
    with sqlite3.connect(path / "bag_0.db3") as database:
        database.executescript(
            "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
            "serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL);"
            "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, "
            "timestamp INTEGER NOT NULL, data BLOB NOT NULL);"
        )
        database.execute(
            "INSERT INTO topics VALUES (1, ?, ?, 'cdr', '')", (topic, kind)
        )
        rows = [(1, time, data) for time, data in messages]
        insert = "INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)"
        database.executemany(insert, rows)
    database.close()
    about = {
        "version": 5,
        "storage_identifier": "sqlite3",
        "relative_file_paths": ["bag_0.db3"],
        "message_count": len(messages),
    }
    text = yaml.safe_dump({"rosbag2_bagfile_information": about})
    (path / "metadata.yaml").write_text(text)
