"""A rosbag2 recording that grows by whole mcap files: what kills the recorder loses only the last.

A file is written out of sight, brought to the disk and renamed. There is no metadata.yaml, which
Bag does not need; `ros2 bag reindex` makes it.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from com_model.files import sync


def append_messages(
    folder: Path, types: Mapping[str, str], messages: Sequence[tuple[str, int, bytes]]
) -> Path:
    """Adds a file of messages: topic, time of recording in ns, CDR bytes; returns its path.

    The first one makes the folder; types are by topic. Raises OSError where it cannot be written;
    what is there stays as it is.
    """
    folder.mkdir(exist_ok=True)
    file = folder / f"{folder.name}_{len(list(folder.glob('*.mcap'))):04d}.mcap"
    store = get_typestore(Stores.ROS2_JAZZY)
    with tempfile.TemporaryDirectory(prefix=".part.", dir=folder) as hidden:
        part = Path(hidden) / "part"
        with Writer(part, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            connections = {
                topic: writer.add_connection(topic, kind, typestore=store)
                for topic, kind in types.items()
            }
            for topic, time, payload in messages:
                writer.write(connections[topic], time, payload)
        sync(part / "part.mcap")
        os.replace(part / "part.mcap", file)
    sync(folder)
    return file
