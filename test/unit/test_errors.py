"""Errors as workers hand them to the process that started them."""

import importlib
import pickle

import pytest

from com_bags.exceptions import BagError, DefinitionError, TopicError
from com_control.exceptions import MotionError, PlanError
from com_demos.exceptions import RenderError
from com_identification.exceptions import CaptureRefused, PostureError, RefusedFitError
from com_model import exceptions as of_the_model
from com_simulation.exceptions import DivergedError

ERRORS = [
    of_the_model.ComModelError("no"),
    of_the_model.UrdfError("has no mass", "<link> 'arm' (line 3)", "Give it one"),
    of_the_model.UnknownNameError("joint", "knee", ["l_knee", "r_knee"]),
    of_the_model.ShapeError("q", "(3,)", "(2,)", "Give three"),
    of_the_model.ConfigError("is missing", "robot.yaml", "feet"),
    of_the_model.MeshError("a/b.stl", "is empty"),
    of_the_model.UnknownRobotError("dog", ("go2",), "is not there"),
    BagError("is damaged", "walk"),
    TopicError("is not there", "imu", "IMU"),
    DefinitionError("is empty", "a/msg/B"),
    MotionError("too far", 3),
    PlanError("too long", 2),
    PostureError("is not finite", 4),
    CaptureRefused("It moves.", "Stand still."),
    RefusedFitError("a", "b"),
    DivergedError(1.5, 0.001),
    RenderError(OSError("no EGL")),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_between_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


@pytest.mark.parametrize("package", ["bags", "control", "identification", "simulation"])
def test_every_package_s_errors_have_one_root(package):
    module = importlib.import_module(f"com_{package}.exceptions")
    own = [
        kind
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, Exception)
        and kind.__module__ == module.__name__
    ]
    assert own
    assert [
        kind for kind in own if not issubclass(kind, of_the_model.ComModelError)
    ] in (
        [],
        [getattr(module, "StorageError", None)],
    )
