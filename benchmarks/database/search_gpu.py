"""Rows of ``benchmarks.search --gpu``: what the scan of a database takes on a GPU.

``device`` is the sum of kernel times of a call in a profiler trace, copies left out:
all kernels, the choice of the best hits and the layout of letters too. ``TCUPS`` are
the sum of len * len over that, ``wall TCUPS`` over the median of whole calls.
``right``: hits have the scores that one pair at a time has (``pairs.dp.wavefront``).
"""

import statistics
import time

import numpy as np
from pairs import gpu_end_to_end

TOP = 10


def rows(problems: dict, index, repeats: int):
    """A row a problem: name -> queries."""
    import jaxalign

    held = jaxalign.open_database(index)
    residues = int(held.lengths.sum())
    for name, asked in problems.items():

        def scan(asked=asked):
            return jaxalign.search(asked, held, top=TOP, align_top=False)

        first, table = _timed(scan)
        seconds = statistics.median(_timed(scan)[0] for _ in range(repeats))
        traced = gpu_end_to_end.traced(scan)
        device = traced.get("device_seconds", float("nan"))
        cells = sum(len(text) for _, text in asked) * residues
        yield {
            "queries": name, "seconds": seconds, "device": device,
            "TCUPS": cells / device / 1e12 if device else float("nan"),
            "wall TCUPS": cells / seconds / 1e12, "first": first,
            "launches": table.info["windows"], "dtype": "/".join(table.info["dtypes"]),
            "right": right(table), "largest": traced.get("largest"),
            "best": [table["score"][table["query"] == q].tolist()
                     for q in range(len(asked))],
        }  # fmt: skip


def whole(asked, fasta, repeats: int) -> dict:
    """From the FASTA file to aligned hits."""
    import jaxalign

    def search():
        return jaxalign.search(asked, fasta, top=TOP)

    first, table = _timed(search)
    seconds = statistics.median(_timed(search)[0] for _ in range(repeats))
    rescored = [table.alignment(k).rescore() for k in range(len(table))]
    return {"queries": "all, FASTA to alignments", "seconds": seconds, "first": first,
            "aligning": table.info["align_seconds"],
            "right": bool((np.array(rescored) == table["score"]).all())}  # fmt: skip


def _timed(call):
    begin = time.perf_counter()
    result = call()
    return time.perf_counter() - begin, result


def right(table, count=6) -> bool:
    """The scores of some hits against one pair at a time by anti-diagonals."""
    import jaxalign

    at = np.random.default_rng(1).integers(0, len(table), count)
    found = jaxalign.align_pairs(
        table.queries.take(table["query"][at]), table.targets.take(table["target"][at]),
        table.scoring, mode="local", output="score", implementation="wavefront",
    )  # fmt: skip
    return bool((found["score"] == table["score"][at]).all())
