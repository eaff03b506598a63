"""7,000 jobs and digests of their results: what a change of structure has to keep.

A job is one pair (or triple) under its options, and all that the library says of it:
score, spans, counts, identities, CIGAR; or an entry of a matrix, the tables of a pair,
what a command writes. Jobs of one call, or of a few alike, are a group, and
``golden/jobs.json`` has a digest for each group.

What may change is left out: the text of messages, of ``str`` and of ``repr``, times,
versions, plans. So is soft alignment, whose floats differ in their last digits from one
JAX to the next: ``test_soft.py`` holds them against an enumeration, with a tolerance.

    python tests/golden_jobs.py --check tests/golden/jobs.json [--quick]
    python tests/golden_jobs.py --write tests/golden/jobs.json
    python tests/golden_jobs.py --show K       the rows of group K, from 0

Only public names are used, so that everything behind them can move.
"""

import argparse
import json
import sys
import tempfile
import time
from itertools import cycle
from pathlib import Path

import golden_commands
import golden_rows
import jax
from golden_groups import END_SETS, Group
from golden_pairs import (
    accurate,
    biotite_and_back,
    cells,
    distances,
    every_pair,
    flat_arrays,
    matrix_file,
    one_to_all,
    pairs,
    parts,
    preset,
    scores,
    single,
)
from golden_search import hits, hits_in_parts, unknown_letters
from golden_three import three, triples

from jaxalign.runtime import programs

MODES = ("global", "semiglobal", "local")
OUTPUTS = ("alignment", "stats", "score", "identity")
MAPS = 30_000  # memory maps of a process with too many compiled programs


def groups() -> list[Group]:
    """All groups, the quick ones first."""
    return [
        *quick(),
        *_free_ends(),
        *_modes(),
        *_windows_and_filters(),
        *_single_pairs(),
        *_sets(),
        *_long_ones(),
        *_databases(),
        *_triples(),
        *golden_commands.others(),
    ]


def quick() -> list[Group]:
    """About a tenth of the groups, with few programs to compile, for `make test`."""
    scorings = ("half", "skew", "linear", "ties", "flat")
    return [
        *(pairs("affine", 40, free_ends=ends, output="alignment")
          for ends in END_SETS[::4]),
        *(pairs(scoring, 40, free_ends=ends, output="alignment")
          for scoring, ends in zip(scorings, END_SETS[1::3], strict=True)),
        pairs("free", 40, mode="local", output="alignment"),
        pairs("ties", 40, mode="local", output="alignment"),
        preset("ssearch", mode="local", output="alignment"),
        pairs("dna", 50, mode="semiglobal", output="alignment"),
        pairs("affine", 50, min_score=20, output="identity"),
        accurate("global"),
        every_pair("affine", mode="semiglobal", output="stats"),
        scores("affine", True),
        hits("affine", mode="local"),
        triples("affine", gap_model="quasi-natural"),
        *golden_commands.quick(),
    ]  # fmt: skip


def _free_ends():
    """All 16 sets, each with two scorings, outputs in turn."""
    for k, ends in enumerate(END_SETS):
        if k % 4:
            yield pairs("affine", 40, free_ends=ends, output="alignment")
    scorings = cycle(("skew", "dna ties", "half", "linear", "ties", "flat", "dna"))
    outputs = cycle(("alignment", "stats", "score"))
    for ends, scoring in zip(END_SETS, scorings, strict=False):
        yield pairs(scoring, 40, free_ends=ends, output=next(outputs))


def _modes():
    """All scorings in all modes."""
    outputs = cycle(("stats", "alignment", "score", "identity"))
    for scoring in ("linear", "flat", "half", "skew", "dna", "dna ties"):
        for mode in MODES:
            yield pairs(scoring, 40, mode=mode, output=next(outputs))
    for scoring in ("dna full", "rna", "fine", "free"):
        yield pairs(scoring, 40, mode="semiglobal", output="alignment")
    for scoring in ("dna full", "rna", "fine", "skew"):
        yield pairs(scoring, 40, mode="local", output="alignment")
    for mode in MODES:
        yield pairs("five", 40, 100, mode=mode, output="alignment")
    for mode in MODES[:2]:
        yield pairs("large", 40, mode=mode, output="alignment")
    yield pairs("large", 40, mode="local", output="identity")
    for tool in ("blastp", "blastn", "mmseqs", "parasail"):
        yield preset(tool, mode="local", output="alignment")
    yield preset("needle", mode="semiglobal", output="alignment")
    yield matrix_file(mode="local", output="alignment")


def _windows_and_filters():
    """Several windows, small budgets, other fills; rows that are dropped."""
    yield pairs("ties", 50, window=16, output="alignment", mode="local")
    yield pairs("affine", 50, window=16, threads=1, output="alignment")
    yield pairs("skew", 50, memory_budget="6MB", output="alignment")
    yield pairs("affine", 20, window=7, devices="all", output="score", mode="local")
    for output in OUTPUTS:
        yield pairs("ties", 40, implementation="wavefront", output=output)
    yield pairs(
        "half", 40, implementation="wavefront", mode="local", output="alignment"
    )
    yield pairs("dna", 40, implementation="wavefront", mode="semiglobal")
    yield pairs("affine", 50, min_score=20)
    yield pairs("affine", 50, mode="local", min_identity=0.5, output="alignment")
    yield pairs("dna", 50, min_identity=0.4, identity="shorter", output="identity")
    yield pairs("half", 50, mode="semiglobal", min_cov=0.6, coverage="query")


def _single_pairs():
    """One pair a call, one sequence against others, tables, posteriors, other forms."""
    for mode in MODES:
        yield single(mode, ("affine", "linear", "half", "ties"))
    for mode in MODES[1:]:
        yield accurate(mode)
    for side in ("query", "target"):
        yield one_to_all("affine", side, output="alignment")
        yield one_to_all("dna ties", side, mode="local", output="stats")
    for mode in MODES:
        yield cells(mode)
    yield biotite_and_back("affine")
    yield biotite_and_back("dna full")
    yield flat_arrays()


def _sets():
    """All pairs of a set, whole, in parts, as matrices."""
    yield every_pair("affine", output="alignment")
    yield every_pair("affine", output="score", mode="local")
    yield every_pair("affine", output="identity")
    yield every_pair("affine", output="alignment", mode="semiglobal")
    yield every_pair("affine", output="stats", mode="local")
    yield every_pair("skew", output="alignment", free_ends=END_SETS[6])
    yield every_pair("skew", output="alignment", mode="local", include_self=True)
    yield every_pair("ties", output="alignment", mode="semiglobal", include_self=True)
    yield every_pair("dna", output="alignment", window=4, threads=2)
    yield every_pair("affine", output="stats", memory_budget="6MB")
    yield every_pair("half", output="stats", min_identity=0.3, identity="longer")
    yield every_pair("affine", output="alignment", mode="local", min_cov=0.5)
    kept = {"min_identity": 0.2, "identity": "shorter"}
    yield every_pair("ties", output="identity", include_self=True, **kept)
    yield every_pair("linear", output="identity", implementation="wavefront")
    yield every_pair("affine", 20, 60, output="stats", window=5)
    yield parts("affine", 10, output="alignment")
    yield parts("half", 20, mode="local")
    yield parts("skew", 15, shards=3, include_self=True, output="score")
    yield parts("affine", 20, min_score=0, mode="semiglobal", output="alignment")
    yield scores("half", True)
    yield scores("skew", False)
    yield scores("skew", True, mode="local")
    yield scores("dna", False, free_ends=END_SETS[7])
    for identity in ("shorter", "longer", "mean"):
        yield distances("affine", identity=identity)
    yield distances("dna", identity="shorter", mode="local")


def _long_ones():
    """Up to 3,000 residues: longer buckets, pairs alone, strips under a budget."""
    yield pairs("affine", 40, 500, output="alignment")
    yield pairs("affine", 12, 900, output="alignment")
    yield pairs("half", 6, 3000, output="alignment", mode="local")
    yield pairs("ties", 6, 2500, output="alignment", memory_budget="5MB")
    yield pairs("skew", 6, 1500, output="stats", memory_budget="5MB", mode="local")
    yield pairs("dna", 6, 2000, output="identity", mode="semiglobal")
    yield pairs("flat", 6, 2000, output="score", memory_budget="9MB")
    yield every_pair("affine", 5, 1200, output="alignment", mode="semiglobal")


def _databases():
    """The best of a database; many targets tie."""
    yield hits("affine", mode="global")
    yield hits("affine", mode="semiglobal")
    yield hits("ties", mode="local", count=90)
    yield hits("dna ties", "file", mode="semiglobal")
    yield hits("half", "gz", 9, top=300)
    yield hits("dna", "index", top=12)
    yield hits("affine", "index", top=5, align_top=False)
    yield hits("skew", "file", align_top=False, free_ends=END_SETS[8], mode="global")
    yield hits("affine", implementation="wavefront", top=8, mode="global")
    yield hits("affine", window=16, threads=2)
    yield hits("ties", memory_budget="3MB", top=1)
    yield hits_in_parts("affine", "list", 20)
    yield hits_in_parts("affine", "file", 9)
    yield hits_in_parts("ties", "index", 30, mode="semiglobal")
    yield unknown_letters("X", "UOJ")
    yield unknown_letters("mask", "UOJ")


def _triples():
    """Three sequences: gap models, modes, schedules and tracebacks."""
    yield triples("affine", gap_model="natural")
    yield triples("dna", mode="local")
    yield triples("dna", gap_model="natural", mode="local", low=0, high=14)
    yield triples("dna", mode="semiglobal")
    yield triples("linear", gap_model="linear")
    yield triples("dna linear", gap_model="linear", mode="local", low=0, high=14)
    yield triples("half", low=0, high=14)
    yield triples("dna", low=0, high=14, traceback=None)
    for schedule in ("sloped", "layered"):
        for model, scoring in (("quasi-natural", "affine"), ("linear", "linear")):
            yield three(scoring, gap_model=model, schedule=schedule)
    yield three("dna", gap_model="natural")
    yield three("affine", mode="semiglobal")
    yield three("affine", 2, mode="local")
    yield three("linear", 2, gap_model="linear", traceback="split")
    for way in ("bt1", "bt2", "bt3"):
        yield three("linear", gap_model="linear", traceback=way, chunk=16, height=8)
    yield three("affine", traceback="bt1", schedule="layered", chunk=16)
    yield three("dna", traceback="bt3", schedule="layered", chunk=20, height=10)
    yield three("half", traceback=None)


# Digests ------------------------------------------------------------------------------


def lines_of(group: Group) -> tuple[list[str], list[str]]:
    """(headings, rows) of a group; a row is a job."""
    with tempfile.TemporaryDirectory() as folder:
        results = group.run(Path(folder))
        headings = [line for x in results for line in golden_rows.heading(x)]
        return headings, [line for x in results for line in golden_rows.rows(x)]


def entry(group: Group) -> dict:
    """What the file of digests says of a group."""
    headings, rows = lines_of(group)
    digest = golden_rows.digest(headings + rows)
    return {"name": group.name, "jobs": len(rows), "digest": digest}


def read(path) -> dict[str, dict]:
    """Name -> entry."""
    return {one["name"]: one for one in json.loads(Path(path).read_text())["groups"]}


def write(path, entries: list[dict]) -> None:
    """A group a line, so that a difference is read at once."""
    lines = ",\n".join(json.dumps(one) for one in entries)
    jobs = sum(one["jobs"] for one in entries)
    Path(path).write_text(f'{{"jobs": {jobs}, "groups": [\n{lines}\n]}}\n')


def entries(some: list[Group]):
    """An entry after the other."""
    for k, group in enumerate(some):
        began = time.perf_counter()
        one = entry(group)
        seconds = time.perf_counter() - began
        print(f"{k:4} {seconds:6.2f} s {one['jobs']:4} {group.name}", file=sys.stderr)
        yield one
        if len(Path("/proc/self/maps").read_text().splitlines()) > MAPS:
            programs.clear()
            jax.clear_caches()


def check(path, some: list[Group]) -> int:
    """Print the groups whose digests differ from those of the file."""
    known = read(path)
    wrong = [one["name"] for one in entries(some) if one != known.get(one["name"])]
    for name in wrong:
        print(f"differs: {name}")
    print(f"{len(some) - len(wrong)} of {len(some)} groups are as in {path}")
    return 1 if wrong else 0


def show(group: Group) -> int:
    headings, rows = lines_of(group)
    print("\n".join([group.name, *headings, *rows]))
    return 0


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    words.add_argument("--check", metavar="FILE")
    words.add_argument("--write", metavar="FILE")
    words.add_argument("--quick", action="store_true", help="the quick groups alone")
    words.add_argument("--show", metavar="K", type=int)
    asked = words.parse_args()
    some = quick() if asked.quick else groups()
    if asked.show is not None:
        return show(some[asked.show])
    if asked.check:
        return check(asked.check, some)
    if asked.write:
        write(asked.write, list(entries(some)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
