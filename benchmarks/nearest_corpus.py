"""A synthetic corpus of any size: lengths as UniRef50's, relatives of queries in it.

    python -m benchmarks.nearest_corpus FOLDER --residues 1e9

Writes FOLDER/queries.fasta, FOLDER/planted.tsv and FOLDER/corpus/part-00.fasta …; the
same for the same numbers, whatever the number of processes.
"""

import argparse
from multiprocessing import get_context
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
QUERIES = ROOT / "benchmarks" / "data" / "swissprot12071.fasta"  # benchmarks/fetch.py
LETTERS = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)
# Frequencies of the 20 residues in Swiss-Prot, per mille, in the order of LETTERS.
FREQUENCY = np.array(
    [83, 55, 41, 55, 14, 39, 67, 71, 23, 59, 97, 58, 24, 39, 47, 66, 53, 11, 29, 69]
)
# Lengths have this median and this deviation of their logarithm: 240 on average, as
# 17e9 residues in 70.9 million sequences.
MEDIAN, DEVIATION, SHORTEST, LONGEST = 187, 0.7, 11, 35_000
MEAN = 240
PARTS, LINE, BATCH = 16, 60, 2**15
IDENTITIES = 0.20, 0.95  # of the planted relatives


def queries(path: Path, count: int, length: int = 200) -> list[tuple[str, bytes]]:
    """Real proteins of a file, those whose lengths are nearest to a length."""
    records: list[tuple[str, bytes]] = []
    for record in path.read_text().split("\n>"):
        name, _, text = record.removeprefix(">").partition("\n")
        letters = text.replace("\n", "").encode()
        if not set(letters) - set(LETTERS.tolist()):
            records.append((name.split()[0], letters))
    records.sort(key=lambda record: (abs(len(record[1]) - length), record[0]))
    return records[:count]


def relative(query: bytes, identity: float, random) -> np.ndarray:
    """A copy in which so many residues are others."""
    letters = np.frombuffer(query, np.uint8).copy()
    some = random.permutation(len(letters))[: round((1 - identity) * len(letters))]
    old = np.searchsorted(np.sort(LETTERS), letters[some]) % len(LETTERS)
    new = (old + random.integers(1, len(LETTERS), len(some))) % len(LETTERS)
    letters[some] = np.sort(LETTERS)[new]
    return letters


def write_part(folder: str, part: int, sequences: int, planted: list) -> int:
    """Write a part of the corpus; its residues."""
    random, residues = np.random.default_rng([7, part]), 0
    table = np.repeat(LETTERS, np.round(FREQUENCY * 65536 / 1000 + 1).astype(int))
    places = sorted(random.choice(sequences, len(planted), replace=False).tolist())
    waiting = dict(zip(places, planted, strict=True))
    path = Path(folder) / "corpus" / f"part-{part:02}.fasta"
    with open(path, "wb", 2**22) as out:
        for first in range(0, sequences, BATCH):
            count = min(BATCH, sequences - first)
            lengths = np.exp(random.normal(np.log(MEDIAN), DEVIATION, count))
            lengths = np.clip(lengths, SHORTEST, LONGEST).astype(int)
            draws = random.integers(0, 2**16, int(lengths.sum()), dtype=np.uint16)
            text = table[draws].tobytes()
            at, lines = 0, []
            for k, length in enumerate(lengths.tolist()):
                one, at = text[at : at + length], at + length
                if first + k in waiting:
                    one = waiting[first + k][1]
                residues += len(one)
                lines.append(b">p%02d_%d synthetic\n" % (part, first + k))
                lines += [one[i : i + LINE] + b"\n" for i in range(0, len(one), LINE)]
            out.writelines(lines)
    with open(Path(folder) / f"planted-{part:02}.tsv", "w") as out:
        for place, (name, _, identity) in waiting.items():
            print(name, f"p{part:02}_{place}", f"{identity:.3f}", sep="\t", file=out)
    return residues


def write(
    folder: Path, residues: float, count: int, processes: int = 4, path: Path = QUERIES
) -> int:
    """Write a corpus and its queries; its residues."""
    (folder / "corpus").mkdir(parents=True, exist_ok=True)
    some = queries(path, count)
    records = [f">{name}\n{text.decode()}\n" for name, text in some]
    (folder / "queries.fasta").write_text("".join(records))
    random, low, high = np.random.default_rng(3), *IDENTITIES
    planted = []
    for k, (name, text) in enumerate(some):
        identity = low + (high - low) * k / max(count - 1, 1)
        planted.append((name, relative(text, identity, random).tobytes(), identity))
    sequences = max(int(residues / MEAN / PARTS), count)
    jobs = [(str(folder), k, sequences, planted[k::PARTS]) for k in range(PARTS)]
    with get_context("spawn").Pool(processes) as pool:
        total = sum(pool.starmap(write_part, jobs))
    lines = [(folder / f"planted-{k:02}.tsv").read_text() for k in range(PARTS)]
    (folder / "planted.tsv").write_text("".join(lines))
    return total


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--residues", type=float, default=1e8)
    parser.add_argument("--queries", type=int, default=554)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--path", type=Path, default=QUERIES, help="of the queries")
    chosen = parser.parse_args()
    numbers = chosen.residues, chosen.queries, chosen.processes, chosen.path
    print(f"{write(chosen.folder, *numbers):,} residues")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
