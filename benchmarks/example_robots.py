"""The robots of the package example-robot-data, without the libraries that tests need beside it."""

from importlib.metadata import distribution
from pathlib import Path


def example_urdfs() -> dict[str, Path]:
    """The URDFs of the package example-robot-data, by their path below its robots/ folder."""
    files = distribution("example-robot-data").files or []
    paths = sorted(
        Path(str(file.locate())).resolve() for file in files if file.suffix == ".urdf"
    )
    return {str(path).split("/robots/", 1)[1]: path for path in paths}
