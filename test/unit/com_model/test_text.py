"""Texts of messages are short, whatever a file contains."""

from com_model import ConfigError
from com_model.text import MAX_MESSAGE, columns, quote, shorten


def test_a_long_message_keeps_its_beginning_and_its_end():
    text = f"the key is wrong: {'x' * 5000}. Give a number"
    short = shorten(text)
    assert len(short) == MAX_MESSAGE
    assert short.startswith("the key is wrong: xxx")
    assert short.endswith("xxx. Give a number")
    assert " ... " in short
    assert shorten("short") == "short"


def test_errors_and_quoted_names_are_bounded():
    assert len(str(ConfigError("y" * 10**6, "robot.yaml"))) <= MAX_MESSAGE
    assert len(quote("\U0010ffff" * 1000)) < 130
    assert quote("knee") == "'knee'"


def test_columns_are_aligned_and_move_no_cursor():
    text = columns(("name", "kg"), [("a\x1b[2J", "1.5"), ("leg", "12.25")])
    assert text.splitlines() == ["name      kg", "a\ufffd[2J    1.5", "leg    12.25"]
