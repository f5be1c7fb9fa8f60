"""Marked postures."""

import pytest

from com_bags import Bag, MarksError
from com_identification.capture.from_bag import marks_of_topic, read_marks
from com_identification.capture.streams import PostureMark

ORIGIN = 1_700_000_000_000_000_000
S = 1_000_000_000


def test_times_count_from_the_first_joint_state_or_are_stamps(tmp_path):
    file = tmp_path / "marks.csv"
    file.write_text(
        "start,end,label\n\n# a comment\n5,6.5,knees\n1.0,2.0\n1700000009,1700000010,x\n"
    )
    assert read_marks(file, ORIGIN) == [
        PostureMark(ORIGIN + S, ORIGIN + 2 * S, ""),
        PostureMark(ORIGIN + 5 * S, ORIGIN + 6 * S + S // 2, "knees"),
        PostureMark(ORIGIN + 9 * S, ORIGIN + 10 * S, "x"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "contains no marks. Expected lines of start,end,label"),
        ("1,2\nfoo,3", "line 2: expected start,end.* got 'foo,3'"),
        ("3,2", "line 1: .* start before end, got '3,2'"),
        ("1,nan", "line 1: "),
        ("1", "line 1: "),
        ("1,3\n2,4", "2 to 4 s overlaps 1 to 3 s. Marks must not overlap"),
        ("x" * 2**21, "is larger than 1024 KiB"),
        ("1700000002,1700000002.00000001", "line 1: .* start before end"),
        ("1,200000000", "line 1: .* start before end"),
        ("1,1e300", "line 1: .* start before end"),
        ("1,2\n" + "x" * 200_000, "line 2: expected"),
        ("1,2\n1,\x00\U0010ffff" + "\U0010ffff" * 5000, "line 2: expected"),
        ("1,2\n1700000001.5,1700000003", "1.5 to 3 s overlaps 1 to 2 s"),
    ],
)
def test_lines_that_cannot_be_read_are_named(tmp_path, text, words):
    file = tmp_path / "marks.csv"
    file.write_text(text)
    with pytest.raises(MarksError, match=words) as error:
        read_marks(file, ORIGIN)
    assert len(str(error.value)) <= 500


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(MarksError, match="cannot be read: No such file"):
        read_marks(tmp_path / "none.csv", ORIGIN)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\0")
    with pytest.raises(MarksError, match="is not text"):
        read_marks(tmp_path / "binary.csv", ORIGIN)


def test_a_topic_s_marks_have_the_time_of_the_joint_states(write_bag, messages):
    late = 77 * S  # the clock of the recording is another one
    entries = []
    for i in range(100):
        stamp = ORIGIN + i * S // 10
        received = stamp + late + i * S // 10  # and runs at another pace
        entries.append(
            ("/joint_states", received, messages.joints(stamp, ["a"], [0.0]))
        )
        text = {20: "one", 40: "", 60: "two", 80: "three"}.get(i)
        if text is not None:
            entries.append(("/mark", received + 1, messages.text(text)))
    with Bag(write_bag(entries)) as bag:
        marks = marks_of_topic(bag, "/joint_states", "/mark", False)
    assert marks == [
        PostureMark(ORIGIN + 2 * S, ORIGIN + 4 * S - 1, "one"),
        PostureMark(ORIGIN + 6 * S, ORIGIN + 8 * S - 1, "two"),
        PostureMark(ORIGIN + 8 * S, ORIGIN + 99 * S // 10 - 1, "three"),
    ]
