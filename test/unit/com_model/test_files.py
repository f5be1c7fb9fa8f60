import os

import pytest

from com_model.files import whole_file, whole_folder, write_file


def test_a_file_is_written_with_its_line_ends_and_nothing_else_stays(tmp_path):
    path = write_file(tmp_path / "a.txt", "µ\r\nb\n")
    assert path.read_bytes() == "µ\r\nb\n".encode()
    write_file(path, b"\x00")
    assert path.read_bytes() == b"\x00"
    assert path.stat().st_mode & 0o444 == 0o444
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_file_is_replaced_only_where_that_is_allowed(tmp_path):
    path = write_file(tmp_path / "a.txt", "old")
    with pytest.raises(FileExistsError, match=r"a.txt exists already: give another"):
        write_file(path, "new", overwrite=False)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = write_file(tmp_path / "a.txt", "old")
    with pytest.raises(ZeroDivisionError), whole_file(path) as part:
        part.write_text(str(1 / 0))
    assert path.read_text() == "old"
    with pytest.raises(FileNotFoundError, match=r"the folder .*no does not exist"):
        write_file(tmp_path / "no" / "a.txt", "")
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "bag") as part:
        part.mkdir(mode=1 // 0)
    assert os.listdir(tmp_path) == []
    with whole_folder(tmp_path / "bag") as part:
        part.mkdir()
        (part / "x").write_text("x")
    assert [p.name for p in tmp_path.rglob("*")] == ["bag", "x"]
    with pytest.raises(FileExistsError, match="bag"), whole_folder(tmp_path / "bag"):
        pass
