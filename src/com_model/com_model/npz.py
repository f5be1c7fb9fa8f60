"""npz files from anywhere: arrays of numbers and text, of a bounded size, without pickle."""

import zipfile
from os import PathLike
from typing import BinaryIO

import numpy as np

from com_model.arrays import Array

MAX_BYTES = 2**30


def read_npz(
    source: str | PathLike[str] | BinaryIO, most: int = MAX_BYTES
) -> dict[str, Array]:
    """Reads the arrays of an npz file.

    Args:
        source: Path or open file.
        most: Bytes that all arrays together may have.

    Returns:
        The arrays by name.

    Raises:
        ValueError: They have more bytes, or the file is damaged, or holds Python objects.
        OSError: The file cannot be read.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > most:
                raise ValueError(f"its arrays have {size} bytes, more than {most}")
        with np.load(source, allow_pickle=False) as stored:
            arrays = dict(stored)
    except (OSError, ValueError):
        raise
    except Exception as error:  # zipfile, zlib and numpy raise many types
        raise ValueError(f"{type(error).__name__}: {error}") from error
    if others := [name for name, a in arrays.items() if not isinstance(a, np.ndarray)]:
        raise ValueError(f"{others[0]!r} is no array")
    return arrays
