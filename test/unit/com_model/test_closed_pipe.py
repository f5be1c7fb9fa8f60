"""A reader that has seen enough, as `| head`, does not make a command fail."""

import subprocess
import sys

import pytest

COMMANDS = ["com_model.commands.audit", "com_identification.commands.identify"]


@pytest.mark.parametrize("module", COMMANDS)
def test_a_command_whose_output_nobody_reads_ends_quietly(module: str) -> None:
    command = [sys.executable, "-m", module, "--help"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
