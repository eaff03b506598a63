"""Edit distances of one pair: each word of ``edit_bits`` is one integer of any length.

Rows that are kept give a path too. Nothing is compiled, and any hashable values are
letters.
"""

from collections.abc import Hashable, Iterator, Sequence

Letters = Sequence[Hashable]


def _rows(query: Letters, target: Letters) -> Iterator[tuple[int, int, int]]:
    """D, U and V of each row; bit 0 is the column of the first letter of the target."""
    everywhere = (1 << len(target)) - 1
    match: dict[Hashable, int] = {}
    for j, letter in enumerate(target):
        match[letter] = match.get(letter, 0) | 1 << j
    p, n = everywhere, 0
    for letter in query:
        equal = match.get(letter, 0)
        d = ((((equal & p) + p) ^ p) | equal | n) & everywhere
        up, down = n | (everywhere ^ (d | p)), d & p
        yield d, up, down
        h = (up << 1 | 1) & everywhere
        p, n = (down << 1 & everywhere) | (everywhere ^ (d | h)), d & h


def distance(query: Letters, target: Letters) -> int:
    """Edit distance of two sequences."""
    if len(query) > len(target):  # a row costs little more where it is longer
        query, target = target, query
    if not query:
        return len(target)
    last, total = len(target) - 1, len(target)
    for _, up, down in _rows(query, target):
        total += (up >> last) - (down >> last)
    return total


def path(query: Letters, target: Letters) -> tuple[int, bytes]:
    """Edit distance and the operations of an alignment that has it.

    Returns
    -------
    int
    bytes
        One letter of ``=XID`` a column. Of several alignments it is the one by the
        usual rule of ties from the end: diagonal, up (I), left (D).
    """
    rows = [(d, up) for d, up, _ in _rows(query, target)]
    i, j, steps = len(query), len(target), bytearray()
    while i and j:
        d, up = (row >> (j - 1) & 1 for row in rows[i - 1])
        if query[i - 1] == target[j - 1]:
            steps += b"="
        elif not d:  # the table rises along the diagonal
            steps += b"X"
        else:
            steps += b"I" if up else b"D"
        i -= steps[-1] != ord("D")
        j -= steps[-1] != ord("I")
    steps += b"I" * i + b"D" * j
    steps.reverse()
    return len(steps) - steps.count(b"="), bytes(steps)
