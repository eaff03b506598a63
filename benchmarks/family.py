"""Iterated search beside jackhmmer and MMseqs2: a table of Markdown.

    python -m benchmarks.family [--proteins 2500] [--queries 3] [--decoys reversed]
    python -m benchmarks.family --speed [--positions 300]
    python -m benchmarks.family --large 1.7e9 [--positions 400]      # on a GPU
    python -m benchmarks.family --pairs 200 [--positions 300]

The rows of the Pfam seeds that ship with the project are hidden among proteins of
Swiss-Prot (``python benchmarks/fetch.py``) and as many decoys: the same proteins
reversed, or with their letters in random orders. Some rows of each seed are queries,
and the other rows of their seed are to be found in three passes. A decoy is a false
hit; a protein may be a relative, and counts as nothing.

``above n`` is the mean over queries of the part of the relatives with smaller E-values
than all decoys but n. ``seen`` are decoys a query with E-values up to 1, and up to 10;
``expected`` is their share of the database times that. Processor seconds are those of
one thread, of ours with all that is compiled.

``--speed`` compares the processor seconds of one query, and is run in one process.
``--large`` hides 2,000 relatives of 25 to 75 % identity among random proteins of so
many residues, all in memory, and prints the seconds of two calls. ``--pairs`` pairs so
many complexes of two sequences, each with 10,000 hits, and writes the first one.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import measure
import numpy as np
import problems

import jaxalign
from jaxalign.family import pairing
from jaxalign.family.pairing import EntityHits
from jaxalign.io import fasta
from jaxalign.model.alphabet import Sequences

LOOSE = 10.0  # hits up to this E-value are compared
HITS = 10_000  # of a sequence, of which pairs are made


class FamilyHit(NamedTuple):
    query: str
    target: str
    evalue: float


def write_problem(folder: Path, proteins: int, queries: int, decoys: str) -> float:
    """``db.fa`` and ``q.fa``; returns the decoys' share of the residues."""
    alphabet = jaxalign.Scoring().alphabet
    rng = np.random.default_rng(0)
    real = fasta.read(str(problems.SWISSPROT), alphabet, "mask")
    fitting = np.flatnonzero((real.lengths >= 30) & (real.lengths <= 1000))
    total, of_decoys = 0, 0
    with (folder / "db.fa").open("w") as out, (folder / "q.fa").open("w") as asking:
        for name, family in fasta.pfam().items():
            rows = [alphabet.decode(row[row >= 0]) for row in family.codes]
            for k, row in enumerate(rows):
                out.write(f">fam_{name}_{k}\n{row}\n")
                total += len(row)
            for k in rng.choice(len(rows), min(queries, len(rows)), replace=False):
                asking.write(f">fam_{name}_{k}\n{rows[k]}\n")
        for k in rng.choice(fitting, proteins, replace=False):
            text = real.text(k)
            other = text[::-1]
            if decoys == "shuffled":
                other = "".join(rng.permutation(list(text)))
            out.write(f">real_{k}\n{text}\n>decoy_{k}\n{other}\n")
            total, of_decoys = total + 2 * len(text), of_decoys + len(text)
    return of_decoys / total


def ours(folder: Path) -> list[FamilyHit]:
    families = jaxalign.search_family(
        folder / "q.fa", folder / "db.fa", max_evalue=LOOSE, threads=1
    )
    return [
        FamilyHit(x.name, x.names[k + 1], evalue)
        for x in families
        for k, evalue in enumerate(x.table["evalue"].tolist())
    ]


def by_jackhmmer(folder: Path) -> list[FamilyHit]:
    command = "jackhmmer -N 3 --cpu 0 --noali -o out --tblout hits q.fa db.fa"
    subprocess.run(command.split(), cwd=folder, check=True)
    lines = (folder / "hits").read_text().splitlines()
    words = (line.split() for line in lines if not line.startswith("#"))
    return [FamilyHit(x[2], x[0], float(x[4])) for x in words]


def by_mmseqs(folder: Path) -> list[FamilyHit]:
    command = (
        "mmseqs easy-search q.fa db.fa hits.m8 tmp -s 7.5 --num-iterations 3 -v 1 "
        f"-e {LOOSE} --threads 1 --max-seqs 10000 --format-output query,target,evalue"
    )
    subprocess.run(command.split(), cwd=folder, check=True)
    lines = (folder / "hits.m8").read_text().splitlines()
    words = (line.split("\t") for line in lines)
    return [FamilyHit(a, b, float(c)) for a, b, c in words]


def row(hits: list[FamilyHit], share: float, folder: Path) -> str:
    """The cells of a row of the table."""
    best: dict[str, dict[str, float]] = defaultdict(dict)
    for query, target, evalue in hits:
        known = best[query].get(target, np.inf)
        best[query][target] = min(known, evalue)
    names = [x[1:] for x in (folder / "db.fa").read_text().splitlines() if x[0] == ">"]
    queries = [x[1:] for x in (folder / "q.fa").read_text().splitlines() if x[0] == ">"]
    parts, seen = [], []
    for query in queries:
        seed = query.rsplit("_", 1)[0] + "_"
        relatives = sum(name.startswith(seed) for name in names) - 1
        of_query = best[query].items()
        true = [e for t, e in of_query if t.startswith(seed) and t != query]
        false = sorted(e for t, e in of_query if t.startswith("decoy_"))
        cuts = [false[n] if len(false) > n else np.inf for n in (0, 1, 5)]
        parts.append([sum(e < cut for e in true) / relatives for cut in cuts])
        seen.append([sum(e <= bound for e in false) for bound in (1, 10)])
    cells = [f"{x:.3f}" for x in np.mean(parts, 0)]
    pairs = zip(np.mean(seen, 0), (share, 10 * share), strict=True)
    return " | ".join(cells + [f"{a:.2f} ({b:.2f})" for a, b in pairs])


def recall(options: argparse.Namespace, folder: Path) -> None:
    tools = {"jaxalign": ours}
    if shutil.which("jackhmmer"):
        tools["jackhmmer -N 3"] = by_jackhmmer
    if shutil.which("mmseqs"):
        tools["MMseqs2"] = by_mmseqs
    about = options.proteins, options.queries, options.decoys
    share = write_problem(folder, *about)
    print("| | above 0 | above 1 | above 5 | seen, to 1 | to 10 | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for tool, search in tools.items():
        _, cpu, hits = measure.timed(search, folder)
        print(f"| {tool} | {row(hits, share, folder)} | {cpu:.0f} |", flush=True)


def speed(options: argparse.Namespace, folder: Path) -> None:
    """One query against 32,071 proteins, three passes; ours twice, the second without
    what is compiled and read once."""
    alphabet = jaxalign.Scoring().alphabet
    texts: list[tuple[str, str]] = []
    for path in problems.SETS:
        some = fasta.read(str(path), alphabet, "mask")
        texts += [(f"{path.name[0]}{k}", text) for k, text in enumerate(some.texts())]
    length = options.positions
    query = next(text for _, text in texts if length <= len(text) <= length + 5)
    problems.write_fasta(folder / "db.fa", texts)
    problems.write_fasta(folder / "q.fa", [("q", query[:length])])
    jaxalign.index_database(folder / "db.fa", folder / "db")
    database = jaxalign.open_database(folder / "db")

    def call() -> list:
        (family,) = jaxalign.search_family(folder / "q.fa", database)
        return [(one.hits, round(one.seconds, 1)) for one in family.passes]

    calls = {"jaxalign, call 1": call, "jaxalign, call 2": call}
    if shutil.which("jackhmmer"):
        calls["jackhmmer -N 3"] = lambda: len(by_jackhmmer(folder))
    print("| | CPU s | s | |\n|---|---|---|---|")
    for tool, call in calls.items():
        seconds, cpu, result = measure.timed(call)
        print(f"| {tool} | {cpu:.1f} | {seconds:.1f} | {result} |", flush=True)


class _Names(Sequence[str]):
    """Names of many sequences, their numbers."""

    def __init__(self, numbers: range):
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, k):
        some = self.numbers[k]
        return str(some) if isinstance(some, int) else _Names(some)


def large(options: argparse.Namespace, folder: Path) -> None:
    rng, letters = np.random.default_rng(1), 20
    alphabet = jaxalign.Scoring().alphabet
    query = rng.integers(0, letters, options.positions, dtype=np.uint8)
    relatives = [_relative(rng, query, letters) for _ in range(2000)]
    lengths = rng.gamma(2.5, 130, int(options.large / 325)).astype(np.int64) + 20
    lengths[: len(relatives)] = [len(x) for x in relatives]
    codes = rng.integers(0, letters, int(lengths.sum()), dtype=np.uint8)
    hidden = np.concatenate(relatives)
    codes[: len(hidden)] = hidden
    codes.flags.writeable = False  # so a GPU keeps what fits
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    database = Sequences(_Names(range(len(lengths))), codes, offsets, alphabet)
    one = Sequences(("query",), query, np.array([0, len(query)]), alphabet)
    print(f"{len(lengths):,} proteins, {len(codes):,} residues", flush=True)

    def search():
        (family,) = jaxalign.search_family(one, database)
        family.write(folder / "out.a3m", force=True)
        return family

    for call in (1, 2):
        seconds, _, family = measure.timed(search)
        passes = [(x.hits, round(x.seconds, 2)) for x in family.passes]
        rows = (folder / "out.a3m").read_text().count(">")
        print(f"call {call}: {seconds:.2f} s, {passes}, {rows} rows", flush=True)


def _relative(rng: np.random.Generator, query: np.ndarray, letters: int) -> np.ndarray:
    """A copy with 25 to 75 % of its letters, and as many insertions as deletions."""
    copy = query.copy()
    other = rng.random(len(copy)) > rng.uniform(0.25, 0.75)
    copy[other] = rng.integers(0, letters, other.sum())
    for at in rng.integers(0, len(copy), 4).tolist():
        size = int(rng.integers(1, 6))
        more = rng.integers(0, letters, size, dtype=np.uint8)
        copy = np.insert(np.delete(copy, slice(at, at + size)), at // 2, more)
    return copy


def pairs(options: argparse.Namespace, folder: Path) -> None:
    """Processor seconds of the pairs alone, of taxa as uneven as those of UniProt."""
    rng, positions = np.random.default_rng(0), options.positions
    letters = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV-", np.uint8)
    drawn = letters[rng.integers(0, 21, (HITS, positions))]
    rows = np.array([row.tobytes().decode() for row in drawn], object)
    names = [f"UniRef100_{k}" for k in range(HITS)]

    def entity(chain: int) -> EntityHits:
        taxa = rng.zipf(1.3, HITS).clip(max=40_000).astype(np.int32)
        taxa[rng.random(HITS) < 0.1] = fasta.NO_TAXON
        bits, shown = np.sort(rng.random(HITS))[::-1], np.arange(0, HITS, 2)
        about = lambda hits: rows[hits].tolist(), taxa, bits, shown
        return EntityHits((chain,), "M" * positions, names, *about)

    complexes = [(entity(0), entity(1)) for _ in range(options.pairs)]
    for strategy in ("greedy", "complete"):
        start = time.process_time()
        paired = [pairing.paired(entities, strategy) for entities in complexes]
        seconds, count = time.process_time() - start, sum(map(len, paired))
        print(f"{strategy}: {count:,} rows paired, {seconds:.2f} s")
    start = time.process_time()
    first = pairing.ComplexAlignment("first", ("A", "B"), (), complexes[0], paired[0])
    first.write(folder / "first")
    size = sum(path.stat().st_size for path in (folder / "first").iterdir())
    print(f"files of one: {size:,} bytes, {time.process_time() - start:.2f} s")


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--proteins", type=int, default=2500, help="and decoys")
    parser.add_argument("--queries", type=int, default=3, help="of each seed")
    parser.add_argument(
        "--decoys", choices=("reversed", "shuffled"), default="reversed"
    )
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--positions", type=int, default=300)
    parser.add_argument("--large", type=float, metavar="RESIDUES")
    parser.add_argument("--pairs", type=int, metavar="COMPLEXES")
    options = parser.parse_args()
    run = large if options.large else speed if options.speed else recall
    run = pairs if options.pairs else run
    with tempfile.TemporaryDirectory() as folder:
        run(options, Path(folder))


if __name__ == "__main__":
    main()
