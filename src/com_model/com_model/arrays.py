"""Arrays as the models keep them: copies, contiguous, read-only; and checks of arguments."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from com_model.exceptions import ComModelError, ShapeError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


def freeze(instance: Any) -> None:
    """Replaces every array of a frozen dataclass by a read-only copy."""
    for field in dataclasses.fields(instance):
        value = getattr(instance, field.name)
        if isinstance(value, np.ndarray):
            copy = np.array(value, order="C")
            copy.setflags(write=False)
            object.__setattr__(instance, field.name, copy)


class FrozenArrays:
    """Base of frozen dataclasses whose arrays are read-only copies."""

    def __post_init__(self) -> None:
        freeze(self)


def as_array(
    name: str, value: ArrayLike, shape: tuple[int | None, ...], hint: str = ""
) -> Array:
    """Converts an argument to float64 and checks its shape.

    Args:
        name: Name of the argument, for messages.
        value: Numbers; the result is the argument itself where it is an array of float64 already.
        shape: Expected lengths; None matches any.
        hint: What helps to correct the argument, for messages.

    Returns:
        The array.

    Raises:
        ShapeError: It has another shape, or is made of something else than numbers.
    """
    expected = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    expected = (
        expected.replace(",)", ")") if len(shape) != 1 else f"({expected[1:-1]},)"
    )
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            name, f"numbers of shape {expected}", f"{error}", hint
        ) from error
    if len(array.shape) != len(shape) or any(
        want is not None and want != got
        for want, got in zip(shape, array.shape, strict=True)
    ):
        raise ShapeError(name, f"shape {expected}", f"{array.shape}", hint)
    return array


def as_rotation(name: str, value: ArrayLike) -> Array:
    """Checks a proper rotation matrix (to 1e-6).

    Args:
        name: Name of the argument, for messages.
        value: (3, 3).

    Returns:
        The matrix as float64.

    Raises:
        ShapeError: It is not (3, 3).
        ComModelError: It is not orthonormal, or a reflection.
    """
    R = as_array(name, value, (3, 3))
    if not (np.abs(R @ R.T - np.eye(3)).max() < 1e-6 and np.linalg.det(R) > 0.0):
        raise ComModelError(
            f"{name} is not a rotation: its columns must be orthonormal and right-handed, got "
            f"{np.array2string(R, precision=6)}"
        )
    return R
