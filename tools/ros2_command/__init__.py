"""The part of ROS 2's command line that the documentation uses, for machines without ROS.

Syntax and output are those of ros2cli and rosbag2; what is not here is refused by name. Never
installed: tools/in_env puts it on the PATH where there is no other ros2.

| module        | what                                                            |
|---------------|-----------------------------------------------------------------|
| session       | one node, its executor, what it finds of the others             |
| messages      | types by name; messages from YAML and to YAML                   |
| topics        | topic list, info, type, echo, hz, pub                           |
| calls         | service list, type, call; action list, send_goal                |
| parameters    | param list, get, set, describe, dump; node list                 |
| bags          | bag record, play, info                                          |
| cli           | the words of the command line; run and launch                   |
"""
