"""The functions of tf_transformations that the suite uses, for machines without ROS."""
