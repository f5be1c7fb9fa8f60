"""Make a virtual environment with ROS 2 wheels look like an installed ROS distribution.

Usage: fix_wheels.py (run by the environment's own Python, by tools/setup.sh).

Three things are changed below sys.prefix, all again and again with the same result:

* The message packages' CMake exports name the Python and numpy headers of the machine
  that built the wheels; they are replaced by the headers of this Python.
* local_setup.* and setup.* put the environment on the paths that ament and colcon read,
  so that `colcon build` takes it for an underlay and sourcing install/setup.bash suffices.
* coverage, which colcon's wheels bring for their own tests, is removed: numba imports it where
  it is found, an eighth of a node's start.
"""

from __future__ import annotations

import re
import shutil
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy

INCLUDE_LINE = re.compile(r'INTERFACE_INCLUDE_DIRECTORIES "[^"]*"')

SETUP = """\
# Written by tools/fix_wheels.py: makes this environment an ament prefix.
_com_prepend() {{
  eval "_com_value=\\${{$1:-}}"
  case ":$_com_value:" in *":$2:"*) return 0 ;; esac
  export "$1=$2${{_com_value:+:$_com_value}}"
}}
_com_prepend AMENT_PREFIX_PATH "{prefix}"
_com_prepend CMAKE_PREFIX_PATH "{prefix}"
_com_prepend PATH "{prefix}/bin"
{libraries}
unset -f _com_prepend
unset _com_value
# The wheels' start-up hook re-executes Python to set the library path; it is set above.
export _ROS_WHEELS_BOOTSTRAP_COMPLETE=1
export ROS_DISTRO=jazzy
export ROS_VERSION=2
export ROS_PYTHON_VERSION=3
"""


def fix_message_exports(prefix: Path) -> int:
    """Point the message packages' CMake exports at this Python's headers; count the files."""
    headers = f"{sysconfig.get_paths()['include']};{numpy.get_include()}"
    line = f'INTERFACE_INCLUDE_DIRECTORIES "{headers}"'
    exports = list(
        prefix.glob("share/*/cmake/export_*__rosidl_generator_pyExport.cmake")
    )
    for path in exports:
        text = path.read_text()
        fixed = INCLUDE_LINE.sub(lambda _: line, text)
        if fixed != text:
            path.unlink()  # uv links files of its cache, which other environments share
            path.write_text(fixed)
    return len(exports)


def write_setup_files(prefix: Path) -> None:
    """Write the shell files that colcon chains an underlay with."""
    packages = Path(sysconfig.get_paths()["platlib"])
    libraries = [*sorted(packages.glob("ros_*.libs"), reverse=True), prefix / "lib"]
    text = SETUP.format(
        prefix=prefix,
        libraries="\n".join(
            f'_com_prepend LD_LIBRARY_PATH "{path}"' for path in libraries
        ),
    )
    for name in ("local_setup.sh", "local_setup.bash", "setup.sh", "setup.bash"):
        (prefix / name).write_text(text)


def remove(distribution: str) -> None:
    """Remove the modules and the metadata of a distribution, if it is installed."""
    packages = Path(sysconfig.get_paths()["platlib"])
    try:
        names = {path.parts[0] for path in files(distribution) or ()} - {".."}
    except PackageNotFoundError:
        return
    for path in (packages / name for name in sorted(names)):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def main() -> int:
    """Apply the fixes to the environment of the running Python."""
    prefix = Path(sys.prefix)
    if prefix == Path(sys.base_prefix):
        print(
            "fix_wheels: run me with the Python of a virtual environment",
            file=sys.stderr,
        )
        return 1
    if not fix_message_exports(prefix):
        print(
            "fix_wheels: no ROS message packages found in this environment",
            file=sys.stderr,
        )
        return 1
    write_setup_files(prefix)
    for distribution in ("pytest-cov", "coverage"):
        remove(distribution)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
