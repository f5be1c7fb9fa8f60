"""The viewer beside a demo."""

import argparse
from contextlib import contextmanager

import pytest

from com_demos import demonstration
from com_demos.demonstration import Times, listen


class Launch:
    """Ends after some looks at it."""

    def __init__(self, looks):
        self.looks = looks

    @property
    def exit_code(self):
        self.looks -= 1
        return None if self.looks > 0 else 0


class Released:
    """A monitor of which nothing else is asked, as it does not record."""

    def release(self):
        pass


@pytest.fixture
def demo(monkeypatch, tmp_path):
    """demo(view): the command that was started, and how many looks the launch still has."""

    def demo(view):
        started, launch = [], Launch(looks=4)

        @contextmanager
        def launched(command, log):
            started.extend(command)
            yield launch

        monkeypatch.setattr(demonstration, "launched", launched)
        monkeypatch.setattr(demonstration, "record", lambda *_: None)
        options = argparse.Namespace(view=view, output=tmp_path)
        listen(["launch"], Released, Times(1.0), "robot: stands", options)
        return started, launch.looks

    return demo


def test_it_stays_until_the_launch_ends_when_asked_for(demo, capsys):
    pytest.importorskip("viser")
    command, looks = demo("stay")
    assert command[1] == "viewer:=true"
    assert looks == 0
    port = command[2].removeprefix("viewer_port:=")
    said = capsys.readouterr().out
    token = command[3].removeprefix("viewer_token:=")
    assert f"viewer: http://127.0.0.1:{port}/?token={token}\n" in said
    assert len(token) > 16
    assert "the viewer stays until Ctrl-C" in said


def test_otherwise_the_demo_ends_by_itself(demo, capsys):
    pytest.importorskip("viser")
    assert demo("on")[1] == 4
    assert "viewer: http://127.0.0.1:" in capsys.readouterr().out
    command, looks = demo("off")
    assert (command, looks) == (["launch"], 4)
    assert "http" not in capsys.readouterr().out
