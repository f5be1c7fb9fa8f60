"""rosbag2 recordings as streams of arrays, without ROS.

Open a Bag, find_topics() in it, and iterate over the blocks() of a SensorReader.
"""

from com_bags.bag import Bag, Block, Topic
from com_bags.decoding import IMU, JOINT_STATE, WRENCH
from com_bags.exceptions import BagError, DefinitionError, MarksError, TableError, TopicError
from com_bags.sensors import SensorBlock, SensorReader, SensorTopics, TopicRequest, find_topics
from com_bags.storage import Message
from com_bags.streams import DecodedBlock, JointReader, TopicReader, UpReader
from com_bags.tables import Table, is_table, read_table

__all__ = [
    "IMU",
    "JOINT_STATE",
    "WRENCH",
    "Bag",
    "BagError",
    "Block",
    "DecodedBlock",
    "DefinitionError",
    "JointReader",
    "MarksError",
    "Message",
    "SensorBlock",
    "SensorReader",
    "SensorTopics",
    "Table",
    "TableError",
    "Topic",
    "TopicError",
    "TopicReader",
    "TopicRequest",
    "UpReader",
    "find_topics",
    "is_table",
    "read_table",
]
