"""Recordings as streams of arrays, without ROS: rosbag2, ROS 1, tables, robots' own messages.

Open a Bag, find_topics() in it, and iterate over the blocks() of a SensorReader.
"""

from typing import TYPE_CHECKING

from com_model.public_names import import_when_used

if TYPE_CHECKING:
    from com_bags.bag import Bag, Block, Topic, append_messages
    from com_bags.channels import IMU, JOINT_STATE, POINT, WRENCH
    from com_bags.exceptions import (
        BagError,
        DefinitionError,
        MarksError,
        TableError,
        TopicError,
        UnitError,
    )
    from com_bags.log_format import LogFormat, add_log_options
    from com_bags.sensors import (
        SensorBlock,
        SensorReader,
        SensorTopics,
        TopicRequest,
        find_topics,
        read_walk,
    )
    from com_bags.storage import Message
    from com_bags.streams import DecodedBlock, JointReader, TopicReader, UpReader
    from com_bags.tables import Table, is_table, read_table
    from com_bags.unit_checks import check_units
    from com_bags.walk_log import WalkLog, even_times, in_bursts, spread_bursts

__getattr__, __all__ = import_when_used(__name__, __file__)
