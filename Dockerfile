# The suite on ROS 2 Jazzy: docker build -t center_of_mass . && docker run -it --net=host center_of_mass
# This file is checked as a file (names, packages), it is not built by our tests.
FROM ros:jazzy-ros-base
SHELL ["/bin/bash", "-c"]
ENV PIP_BREAK_SYSTEM_PACKAGES=1
WORKDIR /ws/src/center_of_mass
COPY src src
COPY launch launch
COPY tools/COLCON_IGNORE tools/COLCON_IGNORE
COPY tools/compile_kernels.py tools/compile_kernels.py
# rosdep takes MuJoCo and rosbags from PyPI, since apt has neither; Ubuntu 24.04's numba is too old
# where it is older than 0.59. It does not know viser.
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-pip \
    && rosdep update \
    && rosdep install --from-paths src launch --ignore-src -y --skip-keys "rviz2 python3-viser-pip" \
    && pip install 'numba>=0.59' 'numpy<2' 'viser>=1.1,<1.2' \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /ws
RUN source /opt/ros/jazzy/setup.bash && colcon build
# Kernels are compiled at the first start of a node, once; here, so that no container waits for it.
RUN source install/setup.bash && python3 src/center_of_mass/tools/compile_kernels.py
ENTRYPOINT ["/bin/bash", "-c", "source /ws/install/setup.bash && exec \"$@\"", "--"]
CMD ["ros2", "launch", "com_bringup", "hoap2.launch.xml", "rviz:=false", "sway:=true"]
