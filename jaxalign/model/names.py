r"""Names in text: a control character in a name cannot end a field, a row or a line.

A name is written as it stands, unless it holds a control character (C0, DEL, C1, one of
Unicode's two line separators, or a surrogate, which stands for a byte that is no UTF-8)
or something that would be read back as an escape. In such a name a tab is ``\t``, a
line feed ``\n``, a carriage return ``\r``, any other control character ``\xHH`` or
``\uHHHH``, and a backslash is doubled. ``read_back`` gives every name back as it was,
written in either way.
"""

import re
from collections.abc import Sequence

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:([tnr\\])|x([0-9a-f]{2})|u([0-9a-f]{4}))")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_LONG = {escape[1]: letter for letter, escape in _SHORT.items()}


def written(name: str) -> str:
    r"""A name as text files and messages hold it, on one line and in one field.

    Parameters
    ----------
    name : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(written("sp|P69905"), written("a\tb\\c"))
    sp|P69905 a\tb\\c
    """
    if not (CONTROL.search(name) or _ESCAPE.search(name)):
        return name
    doubled = name.replace("\\", "\\\\")
    return CONTROL.sub(lambda match: _escape(match[0]), doubled)


def all_written(names: Sequence[str]) -> Sequence[str]:
    """Escape many names as ``written`` does; no copy if none needs it."""
    text = "".join(names)
    if "\\" not in text and not CONTROL.search(text):
        return names
    return tuple(map(written, names))


def visible(text: str) -> str:
    r"""Text that a terminal prints and does not obey: control characters are escapes,
    but for tabs and line feeds, and nothing else changes.

    Examples
    --------
    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    return CONTROL.sub(
        lambda match: match[0] if match[0] in "\t\n" else _escape(match[0]), text
    )


def read_back(text: str) -> str:
    r"""Undo ``written``.

    Examples
    --------
    >>> read_back(written("a\tb\\t\n")) == "a\tb\\t\n"
    True
    """
    return _ESCAPE.sub(_letter, text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return _SHORT.get(letter) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _letter(match: re.Match) -> str:
    short, two, four = match.groups()
    return _LONG[short] if short else chr(int(two or four, 16))
