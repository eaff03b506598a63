"""The experiments of the papers, by name, on this machine.

    python benchmarks/papers.py X1.6 --quick
    python benchmarks/papers.py X1.1 X1.8 --threads 2 --json papers.json

gpu-pairalign (Blazewicz et al. 2011, BMC Bioinformatics 12:181):

X1.1   seconds for six groups of lengths x three set sizes, local mode with alignments
X1.2   the same run in GCUPS
X1.3   beside EMBOSS needleall (all end gaps free) and water, start of process taken off
X1.6   milliseconds per alignment against the number of sequences, three modes
X1.8   cost of backtracking: "BT share" = t_alignment / t_score - 1, three modes

three sequences (Li, Ranka and Sahni; sizes, options and the paper's own figures in
`papers_three.py`, which also takes --sizes):

X2.1   seconds and cells a second of the score: sloped and layered, five sizes
X2.2   seconds of the phases, and bytes, of bt1, bt2 and bt3
X2.3   bt3 against s and h

many Needleman-Wunsch pairs at once (Li and Becchi), length 2000, linear gap:

X3.1   bytes and time host -> device -> host against the number of pairs
X3.2   GCUPS against the number of pairs

GCUPS = sum over pairs of len_i * len_j, over t, over 1e9. The 2011 program also
computes each sequence against itself, so rows of X1 do too (pairs i <= j), for every
tool. Times are medians of calls in turns after one that is not counted.
"""

import argparse

import measure
import papers_three
import problems
import tools
from pairs import papers_emboss, papers_transfer
from triples import triple_problems

MODES = ("global", "semiglobal", "local")
# X1.6: the paper has n = 16, 32, ... 1024; powers of two show the same knee.
LOADS, LOADS_QUICK = (2, 4, 8, 16, 32, 64, 128, 256), (2, 8, 24)


def align_all(problem, mode: str, output: str, options):
    """The call that the X1 rows measure: all pairs, self pairs included."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.api import align_all as call

    scoring = Scoring("BLOSUM62", tools.GAP_OPEN, tools.GAP_EXTEND)
    shared = {"include_self": True, "threads": options.threads}
    return lambda: call(problem.records, scoring, mode=mode, output=output, **shared)


def parasail_all(problem, mode: str, kernel: str, variant: str, options):
    """The same pairs by parasail."""
    threads = options.threads
    return tools.parasail_call(problem, mode, kernel, variant, threads, first=0)


def groups(options) -> list[dict]:
    """X1.1 and X1.2 come from one run; one row a set."""
    sizes = problems.GROUP_SIZES_QUICK if options.quick else problems.GROUP_SIZES
    return [
        _group(problems.near_length(f"{length}-{n}", length, n), options)
        for length in problems.GROUP_LENGTHS
        for n in sizes
    ]


def _group(problem, options) -> dict:
    """One set: seconds and GCUPS of jaxalign and of parasail's fastest kernels."""
    calls = {
        "jaxalign": align_all(problem, "local", "alignment", options),
        "parasail+path": parasail_all(problem, "local", "scan", "trace_", options),
        "parasail score": parasail_all(problem, "local", "striped", "", options),
    }
    timed = measure.in_turns(calls, options.repeats)
    cells = measure.all_pairs_cells(problem.lengths, include_self=True)
    row = _set_columns(problem)
    row |= {f"{tool} s": times["seconds"] for tool, times in timed.items()}
    speeds = {tool: measure.gcups(cells, t["seconds"]) for tool, t in timed.items()}
    row |= {f"{tool} GCUPS": speed for tool, speed in speeds.items()}
    return row | {"ratio": speeds["jaxalign"] / speeds["parasail+path"]}


def _set_columns(problem) -> dict:
    n, mean = len(problem.texts), float(problem.lengths.mean())
    return {"length": round(mean, 1), "n": n, "pairs": n * (n + 1) // 2}


def times_table(options) -> list[dict]:
    """X1.1: seconds."""
    return [_without(row, "GCUPS") for row in groups(options)]


def gcups_table(options) -> list[dict]:
    """X1.2: GCUPS."""
    return [_without(row, " s") for row in groups(options)]


def _without(row: dict, ending: str) -> dict:
    return {key: value for key, value in row.items() if not key.endswith(ending)}


def load(options) -> list[dict]:
    """X1.6: milliseconds per alignment against n."""
    length, loads = (100, LOADS_QUICK) if options.quick else (300, LOADS)
    whole = problems.random_proteins("load", length, max(loads))
    rows = []
    for n in loads:
        part = whole.head(n)
        calls = {mode: align_all(part, mode, "alignment", options) for mode in MODES}
        timed = measure.in_turns(calls, options.repeats)
        row = _set_columns(part)
        each = {m: 1e3 * t["seconds"] / row["pairs"] for m, t in timed.items()}
        rows.append(row | {f"{mode} ms/alignment": ms for mode, ms in each.items()})
    return rows


def backtracking(options) -> list[dict]:
    """X1.8: with and without alignments; counts alone (stats) beside."""
    length, n = (100, 16) if options.quick else (300, 96)
    problem = problems.random_proteins("backtracking", length, n)
    rows = []
    for mode in MODES:
        outputs = ("score", "identity", "stats", "alignment")
        calls = {o: align_all(problem, mode, o, options) for o in outputs}
        timed = measure.in_turns(calls, options.repeats)
        seconds = {output: timed[output]["seconds"] for output in outputs}
        row = {"mode": mode} | _set_columns(problem)
        row |= {f"{output} s": value for output, value in seconds.items()}
        rows.append(row | {"BT share": seconds["alignment"] / seconds["score"] - 1})
    return rows


def _sizes(options):
    """X2: the paper's sizes; its two largest take a GPU."""
    return triple_problems.SIZES[: 1 if options.quick else 3]


ROWS = {
    "X1.1": times_table,
    "X1.2": gcups_table,
    "X1.3": papers_emboss.beside_emboss,
    "X1.6": load,
    "X1.8": backtracking,
    "X2.1": lambda options: list(
        papers_three.table_1(_sizes(options), options.repeats)
    ),
    "X2.2": lambda options: list(
        papers_three.table_2(_sizes(options), options.repeats)
    ),
    "X2.3": lambda options: list(
        papers_three.sweep(_sizes(options)[-1], options.repeats)
    ),
    "X3.1": papers_transfer.transfers,
    "X3.2": papers_transfer.many_pairs,
}


def run(name: str, options) -> list[dict]:
    """One experiment, printed; X1.1 and X1.2 asked for together run once."""
    print(f"# {name}", flush=True)
    try:
        rows = ROWS[name](options)
    except FileNotFoundError as missing:
        print(f"# {name} left out: {missing}")
        return []
    measure.show(rows)
    return rows


def run_all(names, options) -> dict:
    """Experiments by name; one run serves X1.1 and X1.2."""
    if {"X1.1", "X1.2"} <= set(names):
        both = {"X1.1 X1.2": groups}
        ROWS.update(both)
        names = [*both, *(name for name in names if name not in ("X1.1", "X1.2"))]
    return {name: run(name, options) for name in names}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="+", choices=list(ROWS), metavar="NAME")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="too small for figures",
    )
    parser.add_argument("--threads", type=int, default=1, help="cores, all tools")
    parser.add_argument("--repeats", type=int, default=3, help="timed rounds")
    parser.add_argument("--json", metavar="PATH", help="write the rows here too")
    options = parser.parse_args()
    pinned = measure.pin(options.threads)
    machine = measure.machine()
    measure.show_machine(machine)
    print(f"# {pinned}; BLOSUM62; medians of {options.repeats}")
    rows = run_all(options.names, options)
    measure.save(options.json, {"machine": machine, "pinned": pinned, "rows": rows})


if __name__ == "__main__":
    main()
