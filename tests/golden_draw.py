"""Sequences for ``golden_jobs``: the same with every version of Python and NumPy.

Only the raw bits of PCG64 are asked of NumPy; ``choice``, ``integers`` and ``random``
may change from one version to the next.
"""

from zlib import crc32

from numpy.random import PCG64

PROTEIN = "ACDEFGHIKLMNPQRSTVWY"
RARE = PROTEIN + "XBZ*"
DNA = "ACGT"
AMBIGUOUS = "ACGTACGTACGTNRYS"
RNA = "ACGU"


class Draw:
    """A stream of numbers that belongs to a text, the name of a group."""

    def __init__(self, name: str):
        self.stream = PCG64(crc32(name.encode()))

    def numbers(self, count: int, below: int) -> list[int]:
        """``count`` integers from 0 to ``below`` - 1."""
        return [raw % below for raw in self.stream.random_raw(count).tolist()]

    def number(self, below: int) -> int:
        return self.numbers(1, below)[0]

    def text(self, length: int, letters: str) -> str:
        return "".join(letters[k] for k in self.numbers(length, len(letters)))

    def repeats(self, length: int, letters: str) -> str:
        """One to three letters again and again: the most ties."""
        unit = self.text(1 + self.number(3), letters)
        return (unit * length)[:length]

    def relative(self, text: str, letters: str, longest: int) -> str:
        """A copy with substitutions, a deletion and an insertion of 0 to 9 residues."""
        fresh, dice = self.text(len(text), letters), self.numbers(len(text), 10)
        copy = "".join(y if d < 3 else x
                       for x, y, d in zip(text, fresh, dice, strict=True))  # fmt: skip
        cut, size = self.number(len(copy) + 1), self.number(10)
        copy = copy[:cut] + copy[cut + size :]
        place = self.number(len(copy) + 1)
        return (copy[:place] + self.text(self.number(10), letters) + copy[place:])[
            :longest
        ]

    def piece(self, text: str, letters: str, longest: int) -> str:
        """A piece of a text between two unrelated flanks: ends hang over."""
        start = self.number(len(text) + 1)
        middle = text[start : start + longest // 3]
        flanks = [self.text(self.number(longest // 4 + 1), letters) for _ in range(2)]
        return (flanks[0] + middle + flanks[1])[:longest]

    def pair(self, letters: str, longest: int) -> tuple[str, str]:
        """Half of the pairs are related; the others are unrelated, contained in each
        other, repetitive, or empty, equal, single residues."""
        # Short lengths are as frequent as long ones.
        query = self.text(self.number(1 + self.number(longest) + 1), letters)
        kind = self.number(16)
        if kind < 8:
            return query, self.relative(query, letters, longest)
        if kind < 10:
            return query, self.text(self.number(longest + 1), letters)
        if kind < 12:
            return query, self.piece(query, letters, longest)
        if kind < 14:
            few = letters[:2] + letters[-1:]
            lengths = self.numbers(2, longest // 2 + 1)
            first, second = (self.repeats(length, few) for length in lengths)
            return first, second
        special = [("", query), (query, ""), ("", ""), (query, query)]
        special += [(query, letters[0]), (letters[-1], query)]
        return special[self.number(len(special))]

    def pairs(self, count: int, letters: str, longest: int):
        """(queries, targets): the last pair has ``longest`` residues a side, so that
        all groups of one ``longest`` share their compiled programs."""
        pairs = [self.pair(letters, longest) for _ in range(count - 1)]
        last = self.text(longest, letters)
        pairs.append((last, self.relative(last + last, letters, longest)))
        return [query for query, _ in pairs], [target for _, target in pairs]

    def family(self, count: int, letters: str, longest: int) -> list[str]:
        """Sequences of some families, an empty one, two that are equal."""
        seeds = [self.text(longest, letters) for _ in range(3)]
        texts = [
            self.relative(seeds[k % 3][: self.number(longest) + 1], letters, longest)
            for k in range(count - 3)
        ]
        return [*texts, "", texts[0], seeds[0]]
