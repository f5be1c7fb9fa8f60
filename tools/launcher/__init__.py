"""Starts launch files in ROS 2's XML format where the ROS launch system is not installed.

Modules, from the file to the processes:
    document       XML text -> elements that know their line
    schema         which elements and attributes are understood; all others are refused
    substitutions  grammar of $(...) in attribute values
    expansion      their values
    values         types of parameter values
    interpreter    elements -> the nodes to start
    nodes          one node: where it is, its command line, its parameter files
    arguments      the arguments that a file declares
    supervisor     processes: start, prefix their output, report deaths, stop without orphans
    cli            the command line of tools/run_launch
"""
