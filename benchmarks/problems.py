"""The named problems that the benchmarks measure: seeded, so every run has the same.

    python benchmarks/problems.py          # list them
    python benchmarks/problems.py --quick  # the small versions

A problem is one set of proteins, aligned all against all.
"""

from dataclasses import dataclass
from pathlib import Path

import measure
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "benchmarks" / "data"
# What ``fetch.py`` gets.
SETS = SWISSPROT, UNIPROT = DATA / "swissprot12071.fasta", DATA / "uniprot20000.fasta"
# Frequencies of the 20 residues in Swiss-Prot, per mille, in the order of LETTERS.
LETTERS = "ARNDCQEGHILKMFPSTWYV"
FREQUENCY = np.array(
    [83, 55, 41, 55, 14, 39, 67, 71, 23, 59, 97, 58, 24, 39, 47, 66, 53, 11, 29, 69]
)
# name -> (length, sequences, sequences of the quick version)
RANDOM = {
    "random-100": (100, 1000, 24),
    "random-300": (300, 512, 16),
    "random-1000": (1000, 256, 6),
}
MIXED = {"mixed": (512, 12)}
# X1.1 and X1.2: the average lengths of the 2011 paper's six groups of human proteins;
# its sets are scaled down so that all eighteen take a few minutes on two CPU cores.
GROUP_LENGTHS = (51, 154, 257, 459, 608, 1103)
GROUP_SIZES = (40, 80, 160)
GROUP_SIZES_QUICK = (6, 12, 24)


@dataclass(frozen=True)
class Problem:
    """A set of sequences to align all against all."""

    name: str
    names: tuple[str, ...]
    texts: tuple[str, ...]

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64."""
        return np.array([len(text) for text in self.texts], np.int64)

    @property
    def records(self) -> list[tuple[str, str]]:
        """(name, text) pairs, as jaxalign takes them."""
        return list(zip(self.names, self.texts, strict=True))

    def pairs(self, include_self: bool = False) -> list[tuple[int, int]]:
        """(i, j) with i < j (or i <= j), row by row."""
        n, first = len(self.texts), 0 if include_self else 1
        return [(i, j) for i in range(n) for j in range(i + first, n)]

    def head(self, count: int) -> "Problem":
        """The first sequences, for tools too slow for the whole set."""
        return Problem(self.name, self.names[:count], self.texts[:count])


def names(quick: bool = False) -> list[str]:
    """Every name that ``problem`` takes, in order."""
    sizes = GROUP_SIZES_QUICK if quick else GROUP_SIZES
    groups = [f"group-{length}-{n}" for length in GROUP_LENGTHS for n in sizes]
    return [*RANDOM, *MIXED, *groups]


def problem(name: str, quick: bool = False) -> Problem:
    """The problem of that name.

    Raises
    ------
    KeyError
        No such problem.
    FileNotFoundError
        It consists of real proteins, and ``fetch.py`` has not been run.
    """
    if name in RANDOM:
        length, full, small = RANDOM[name]
        return random_proteins(name, length, small if quick else full)
    if name in MIXED:  # real proteins of all lengths: what padding must cope with
        records = [r for r in read_fasta(SWISSPROT) if len(r[1]) <= 2000]
        count = MIXED[name][1 if quick else 0]
        return _draw(name, records, count, seed=count)
    if name not in names(quick):
        raise KeyError(f"no problem {name!r}; there are {', '.join(names(quick))}")
    _, length, size = name.split("-")
    return near_length(name, int(length), int(size))


def random_texts(rng: np.random.Generator, lengths, uniform: bool = False) -> list[str]:
    """Random proteins of these lengths, residues as frequent as in Swiss-Prot."""
    lengths = np.asarray(lengths)
    letters = np.frombuffer(LETTERS.encode(), np.uint8)
    frequency = None if uniform else FREQUENCY / FREQUENCY.sum()
    text = rng.choice(letters, lengths.sum(), p=frequency).tobytes().decode()
    ends = zip(lengths.tolist(), np.cumsum(lengths).tolist(), strict=True)
    return [text[end - length : end] for length, end in ends]


def random_proteins(name: str, length: int, count: int, seed: int = 0) -> Problem:
    """Random proteins of lengths about N(length, length / 6), as biology spreads."""
    rng = np.random.default_rng([seed, length])
    lengths = rng.normal(length, length / 6, count).round().clip(1, None).astype(int)
    texts = random_texts(rng, lengths)
    return Problem(name, tuple(f"r{i}" for i in range(count)), tuple(texts))


def exact_length(length: int, count: int, seed: int = 0) -> Problem:
    """Random proteins of one length, for the rows of the paper on many pairs."""
    texts = random_texts(np.random.default_rng([seed, length, 1]), [length] * count)
    return Problem(
        f"exact-{length}", tuple(f"e{i}" for i in range(count)), tuple(texts)
    )


def near_length(name: str, length: int, count: int) -> Problem:
    """Real proteins drawn from the 2 x count whose lengths lie nearest to ``length``.

    B and Z are rare enough to keep; other letters than the matrix has do not occur.
    """
    records = read_fasta(SWISSPROT)
    by_distance = sorted(records, key=lambda r: (abs(len(r[1]) - length), r[0]))
    return _draw(name, by_distance[: 2 * count], count, seed=length)


def _draw(name: str, records, count: int, seed: int) -> Problem:
    rng = np.random.default_rng([seed, count])
    chosen = [records[i] for i in rng.permutation(len(records))[:count]]
    found, texts = zip(*chosen, strict=True)
    return Problem(name, found, texts)


def read_fasta(path: Path, field: int = 1, masked: str = "") -> list[tuple[str, str]]:
    """(name, text) pairs; a reader apart from the one under test. Of a heading with
    bars the name is that field: the accession, or 2, the entry. ``masked`` letters,
    those that BLOSUM62 lacks, are read as X."""
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: python benchmarks/fetch.py")
    swap, records = str.maketrans(masked, "X" * len(masked), "\n"), []
    for block in ("\n" + path.read_text()).split("\n>")[1:]:
        head, _, body = block.partition("\n")
        word = head.split()[0]
        name = word.split("|")[field] if "|" in word else word
        records.append((name, body.translate(swap)))
    return records


def write_fasta(path: Path, records) -> None:
    """Write (name, text) pairs, a text a line."""
    with open(path, "w") as file:
        file.writelines(f">{name}\n{text}\n" for name, text in records)


def main() -> None:
    """List the problems with their sizes."""
    quick = measure.arguments(__doc__, "quick").parse_args().quick
    for name in names(quick):
        made = problem(name, quick)
        mean = made.lengths.mean()
        print(f"{name:16} {len(made.texts):4} sequences, mean length {mean:.0f}")


if __name__ == "__main__":
    main()
