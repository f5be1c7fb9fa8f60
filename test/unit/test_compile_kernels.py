"""What compile_kernels leaves out, a node compiles at its start or, worse, at its first walk."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from com_model.sesc import kernels

pytestmark = pytest.mark.slow

TOOLS = Path(__file__).parents[2] / "tools"
PLAN = """
import sys
import numpy as np
import compile_kernels
from com_control.walking import Biped, Walker, WalkRequest
from com_control.walking.com_ik import ComIk
from com_control.walking.newton_ik import NewtonSolver
from com_control.walking.stabiliser import Stabiliser
from com_model.setup import describe

def kernels():
    modules = {name: vars(module) for name, module in sys.modules.items() if name[:4] == "com_"}
    return {
        (name, key, str(types))
        for name, content in modules.items()
        for key, value in content.items()
        for types in getattr(value, "nopython_signatures", ())
    }

assert compile_kernels.main([]) == 0
known = kernels()
folder = compile_kernels._installed_robots()[0]
for robot, methods in ("itu_biped", ("exact", "refined", "ccgd")), ("hoap2", ("refined",)):
    biped = Biped.from_config(*compile_kernels._load(folder, robot))
    for method in methods:
        walk = Walker(biped).plan(WalkRequest(steps=1, method=method), biped.posture)
    stabiliser = Stabiliser(biped, [500.0, 500.0])
    stabiliser.start(walk.plan, walk.samples, biped.posture)
    upright = np.eye(3), biped.posture, np.zeros((2, 6)), 0.005, 0.005
    stabiliser.update(*upright)
describe(compile_kernels._load(folder, "hoap2")[0])  # what com_setup does
print(sorted(kernels() - known), file=sys.stderr)
"""


@pytest.mark.skipif(
    not hasattr(kernels.com_of_one, "py_func"), reason="nothing is compiled"
)
def test_what_walks_and_com_setup_need_is_compiled_by_compile_kernels():
    call = [sys.executable, "-c", PLAN]
    paths = os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"PYTHONPATH": paths}
    result = subprocess.run(call, capture_output=True, text=True, check=False, env=env)
    assert (result.returncode, result.stderr.strip()) == (0, "[]")
