"""Names with control characters: written on one line, in one field, and read back."""

import itertools

import pytest

from jaxalign.model.names import CONTROL, all_written, read_back, written

PIECES = ("a", "\t", "\n", "\r", "\\", "t", "x09", "\x1b", "\x85", "\u2028", "é")


@pytest.mark.parametrize(
    "name, text",
    [
        ("sp|P69905|HBA_HUMAN", "sp|P69905|HBA_HUMAN"),
        ("a b", "a b"),
        ("C:\\data\\a", "C:\\data\\a"),  # no escape: as it stands
        ("a\tb", "a\\tb"),
        ("a\\tb", "a\\\\tb"),  # would be read as a tab
        ("a\r\n", "a\\r\\n"),
        ("a\x01\x7f\x85", "a\\x01\\x7f\\x85"),
        ("a\u2028b", "a\\u2028b"),
        ("C:\\data\t", "C:\\\\data\\t"),
        ("", ""),
    ],
)
def test_written(name, text):
    assert written(name) == text and read_back(text) == name
    assert list(all_written(["plain", name])) == ["plain", text]


def test_every_name_is_read_back_and_no_two_are_alike():
    names = {
        "".join(some) for k in range(5) for some in itertools.product(PIECES, repeat=k)
    }
    texts = {written(name) for name in names}
    assert len(texts) == len(names)
    for name in names:
        assert read_back(written(name)) == name
        assert not CONTROL.search(written(name))
        assert len(written(name).splitlines()) <= 1


def test_names_that_need_nothing_are_not_copied():
    names = ("a", "b c", "é")
    assert all_written(names) is names
