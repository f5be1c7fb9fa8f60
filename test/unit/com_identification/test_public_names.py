"""The package's public names."""

import subprocess
import sys

import pytest

import com_identification


def test_public_names_can_be_imported():
    for name in com_identification.__all__:
        assert getattr(com_identification, name).__module__.startswith("com_identification.")
    assert sorted(com_identification._MODULE_OF) == sorted(com_identification.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'identity'"):
        _ = com_identification.identity


def test_the_package_alone_does_not_load_numpy():
    code = "import sys, com_identification; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
