"""``purge`` by identity and coverage of local alignments: seconds, and what it misses.

    python -m benchmarks.purge_gpu FOLDER --write 3e8
    python -m benchmarks.purge_gpu FOLDER

The rule is that of Open-Athena/MarinFold#225 and #245: at least 0.3 of the residues of
the shorter sequence are identical in an alignment that reaches the score of a link, and
it covers at least half of the shorter. ``--write`` makes queries and a corpus as
``nearest_gpu`` does, in which there are, of each query, a relative at 30 to 95 %
identity, a fragment of half its length, and the same fragment between random flanks.
Purges with and without the coverage run twice in turns, the first of them with
compiling. Whatever is planted and passes the rule with its own query, by an alignment
of the two, must be removed.
"""

import argparse
import json
import time
from pathlib import Path

import nearest_gpu
import numpy as np
import problems

import jaxalign

IDENTITY, COVERAGE, LOW, HIGH = 0.3, 0.5, 0.30, 0.95
Planted = list[tuple[str, bytes, float]]


def parts_and_relatives(some: list[tuple[str, bytes]]) -> Planted:
    """A relative of each query, a fragment, and the fragment between flanks."""
    random, planted = np.random.default_rng(554), []

    def changed(text: bytes) -> tuple[bytes, float]:
        identity = float(random.uniform(LOW, HIGH))
        copy = nearest_gpu.relative(text, identity, random)
        at = int(random.integers(len(copy)))
        return np.delete(
            copy, slice(at, at + int(random.integers(4)))
        ).tobytes(), identity

    for name, text in some:
        half, at = len(text) // 2, int(random.integers(len(text) // 2))
        part, share = changed(text[at : at + half])
        left, right = random.choice(nearest_gpu.RESIDUES, (2, half))
        between = left.tobytes() + part + right.tobytes()
        planted.append((f"relative {name}", *changed(text)))
        planted += [(f"part {name}", part, share), (f"between {name}", between, share)]
    return planted


def passing(some, planted: Planted, least: float, gated: bool) -> set[str]:
    """Names of what is planted that passes the rule with its own query."""
    texts = dict(some)
    ours = [texts[name.split(" ", 1)[1]].decode() for name, *_ in planted]
    theirs = [text.decode() for _, text, _ in planted]
    passed = np.zeros(len(planted), bool)
    options = {"mode": "local", "implementation": "sweep"}
    if not gated:
        rows = jaxalign.align_pairs(ours, theirs, output="identity", **options)
        share = rows["max_identities"] / np.minimum(*rows.lengths())
        passed = (rows["score"] >= least) & (share >= IDENTITY)
    for sides in ((ours, theirs), (theirs, ours)) if gated else ():
        rows = jaxalign.align_pairs(*sides, output="stats", **options)
        m, n = rows.lengths()
        spans = [rows[f"{x}_end"] - rows[f"{x}_start"] for x in ("query", "target")]
        span = np.select([m < n, m > n], spans, np.maximum(*spans))
        reached = (rows["score"] >= least) & (span >= COVERAGE * np.minimum(m, n))
        passed |= reached & (rows["identities"] >= IDENTITY * np.minimum(m, n))
    names = [name for name, *_ in planted]
    return {name for name, passes in zip(names, passed, strict=True) if passes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=float, help="residues of the corpus")
    parser.add_argument("--queries", type=int, default=554, help="of ``--write``")
    given = parser.parse_args()
    folder = given.folder
    if given.write:
        plant = parts_and_relatives
        nearest_gpu.write(folder, given.write, given.queries, plant=plant)
        return
    records = problems.read_fasta(folder / "queries.fasta")
    some = [(name, text.encode()) for name, text in records]
    planted = parts_and_relatives(some)
    lines = (folder / "planted.tsv").read_text().splitlines()
    places = dict(line.split("\t")[1::-1] for line in lines)
    rule = {"min_identity": IDENTITY, "link": "local", "unknown": "X"}
    gate = {"min_cov": COVERAGE, "coverage": "shorter"}
    sides = folder / "corpus", folder / "queries.fasta"
    seconds: dict[str, list[float]] = {"ungated": [], "gated": []}
    for _ in range(2):
        for name, options in (("ungated", rule), ("gated", rule | gate)):
            began = time.perf_counter()
            clean = jaxalign.purge(*sides, **options)
            seconds[name].append(round(time.perf_counter() - began, 2))
            removed = {places[x] for x in clean.names if x in places}
            least = clean.cut.options.min_score
            wanted = passing(some, planted, least, name == "gated")
            about = {"rule": name, "seconds": seconds[name][-1]}
            about |= {"residues": clean.info["residues"], "removed": len(clean)}
            about |= {"planted": len(planted), "pass": len(wanted)}
            about |= {"missed": sorted(wanted - removed)}
            print(json.dumps(about), flush=True)


if __name__ == "__main__":
    main()
