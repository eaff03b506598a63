"""jaxalign beside parasail, biotite and Biopython: same pairs, same cores, one run.

    python benchmarks/peers.py --quick      # does it run? too small to fill the lanes
    python benchmarks/peers.py --threads 1,2 --json peers.json

Every tool aligns the same set all against all with BLOSUM62 and gap(k) = 11 + (k - 1);
biotite and Biopython get an even sample of those pairs, because they are 20 to 100
times slower. Tools take turns, three timed rounds after one call that is not counted;
figures are medians. All include reading the letters from Python strings.

- parasail builds a query's profile once and uses it for all its targets, in both the
  striped and the scan kernels (not for "stats"), and decodes the CIGAR to text where
  there is one. Rows of queries run on a thread pool: ctypes releases the interpreter
  lock in the kernels, but not between them, so short pairs gain little from threads
  (see ``cores``). "8 first" is striped, and tries 8 bits before 16; local mode alone.
- jaxalign's output "alignment" is start, end, counts and operations as arrays; the row
  "cigar" also turns every one of them into CIGAR text, as parasail's rows do.
- Each number of threads runs in a process of its own, pinned to that many cores.

Columns: ``ratio`` is GCUPS over the fastest parasail row of the same problem, mode and
output; ``cores`` CPU seconds per second; ``first`` the seconds of the first call, which
compiles; ``differ`` how many scores differ from parasail's scan kernel.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import measure
import problems

# One function a tool ------------------------------------------------------------------
# It prepares a problem and returns the call that is timed. Every call scores with
# BLOSUM62 and gap(k) = 11 + (k - 1), and returns the scores of its pairs in order,
# jaxalign's its table.

GAP_OPEN, GAP_EXTEND = 11, 1
PREFIX = {"local": "sw", "global": "nw", "semiglobal": "sg"}


def parasail_call(
    problem, mode, kernel: str, variant: str, threads: int, first=1, bits: str = "16"
):
    """All pairs i < j, or i <= j with ``first=0``.

    ``variant`` is ``""``, ``"stats_"`` or ``"trace_"``; ``bits`` "sat" tries 8 first.
    """
    import parasail

    # The stats kernels crash on a profile in parasail-python 1.3.4.
    plain = variant == "stats_"
    kind = bits if plain else f"profile_{bits}"
    profile = getattr(parasail, f"profile_create_{bits}")
    align = getattr(parasail, f"{PREFIX[mode]}_{variant}{kernel}_{kind}")
    last = (GAP_OPEN, GAP_EXTEND, parasail.blosum62)[: 3 if plain else 2]

    def one(query, target: str) -> int:  # a result is read and freed before the next
        return _read(align(query, target, *last), variant)

    def one_query(i: int) -> list[int]:
        query = problem.texts[i]
        if not plain:
            query = profile(query, parasail.blosum62)
        return [one(query, target) for target in problem.texts[i + first :]]

    return lambda: _in_threads(one_query, len(problem.texts), threads)


def _read(result, variant: str) -> int:
    """The score, once what the variant is for has been read too."""
    if variant == "trace_":
        _ = result.cigar.decode
    if variant == "stats_":
        _ = result.matches, result.length
    return result.score


def _in_threads(work, count: int, threads: int) -> list:
    """The lists of ``work(0..count-1)`` joined; the longest rows come first."""
    if threads == 1:
        return [score for i in range(count) for score in work(i)]
    with ThreadPoolExecutor(threads) as pool:
        return [score for row in pool.map(work, range(count)) for score in row]


def jaxalign_call(problem, mode: str, output: str, threads: int):
    """All pairs i < j in one call; returns the table."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.api import align_all

    scoring = Scoring("BLOSUM62", GAP_OPEN, GAP_EXTEND)
    options = {"mode": mode, "threads": threads}
    options["output"] = "alignment" if output == "cigar" else output

    def call():
        table = align_all(problem.records, scoring, **options)
        if output == "cigar":
            _ = [table.cigar(i) for i in range(len(table))]
        return table

    return call


def biotite_call(problem, mode: str, pairs):
    """One alignment a pair, with the path."""
    from biotite.sequence import ProteinSequence
    from biotite.sequence.align import SubstitutionMatrix, align_optimal

    matrix = SubstitutionMatrix.std_protein_matrix()
    options = {"gap_penalty": (-GAP_OPEN, -GAP_EXTEND), "max_number": 1}
    options |= {"local": mode == "local", "terminal_penalty": mode != "semiglobal"}

    def one(i: int, j: int) -> int:
        a, b = ProteinSequence(problem.texts[i]), ProteinSequence(problem.texts[j])
        return align_optimal(a, b, matrix, **options)[0].score

    return lambda: [one(i, j) for i, j in pairs]


def biopython_call(problem, mode: str, pairs, path: bool):
    """One alignment a pair, or its score only."""
    from Bio.Align import PairwiseAligner, substitution_matrices

    aligner = PairwiseAligner()
    aligner.mode = "local" if mode == "local" else "global"
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    aligner.open_gap_score, aligner.extend_gap_score = -GAP_OPEN, -GAP_EXTEND
    if mode == "semiglobal":
        aligner.end_gap_score = 0

    def one(i: int, j: int) -> float:
        a, b = problem.texts[i], problem.texts[j]
        return aligner.align(a, b)[0].score if path else aligner.score(a, b)

    return lambda: [one(i, j) for i, j in pairs]


# The comparison -----------------------------------------------------------------------

# Cells that a slow tool gets in one call: about a second at 0.03 GCUPS.
SLOW_CELLS, SLOW_CELLS_QUICK = 20_000_000, 500_000


@dataclass(frozen=True)
class Contestant:
    """One tool on one problem: ``call`` returns the scores of ``pairs`` in order."""

    tool: str
    output: str
    pairs: list[tuple[int, int]]
    call: Callable


def sample(problem, cells: int) -> list[tuple[int, int]]:
    """Pairs spread evenly over the problem, with about that many cells in all."""
    pairs = problem.pairs()
    mean = measure.all_pairs_cells(problem.lengths) / len(pairs)
    count = min(len(pairs), max(1, int(cells / mean)))
    return [pairs[k * len(pairs) // count] for k in range(count)]


def contestants(problem, mode: str, outputs, threads: int, few) -> list[Contestant]:
    """Everyone who can do this problem in this mode."""
    every, entries = problem.pairs(), []
    for output in outputs:
        entries += _fast(problem, mode, output, threads, every)
    if threads == 1:  # neither releases the interpreter lock
        call = biopython_call(problem, mode, few, path=False)
        entries.append(Contestant("Biopython", "score", few, call))
        call = biopython_call(problem, mode, few, path=True)
        entries.append(Contestant("Biopython", "alignment", few, call))
        call = biotite_call(problem, mode, few)
        entries.append(Contestant("biotite", "alignment", few, call))
    return entries


def _fast(problem, mode, output, threads, pairs) -> list[Contestant]:
    """jaxalign and parasail's kernels for one output."""
    variant = {"score": "", "stats": "stats_", "alignment": "trace_"}[output]
    kernels = [("parasail scan", "scan", "16"), ("parasail striped", "striped", "16")]
    if mode == "local":  # of global scores most have to be computed again
        kernels.append(("parasail 8 first", "striped", "sat"))
    calls = [
        (
            name,
            parasail_call(problem, mode, kernel, variant, threads, bits=bits),
        )
        for name, kernel, bits in kernels
    ]
    calls.append(("jaxalign", jaxalign_call(problem, mode, output, threads)))
    if output == "alignment":
        call = jaxalign_call(problem, mode, "cigar", threads)
        calls.append(("jaxalign cigar", call))
    return [Contestant(tool, output, pairs, call) for tool, call in calls]


def measure_problem(problem, mode, outputs, threads, few, repeats) -> list[dict]:
    """One table: every contestant on one problem in one mode."""
    entrants = contestants(problem, mode, outputs, threads, few)
    timed = measure.in_turns({k: c.call for k, c in enumerate(entrants)}, repeats)
    rows = [_row(c, problem, mode, threads, timed[k]) for k, c in enumerate(entrants)]
    truth = _scores(entrants[0], timed[0]["result"])
    for row, entrant, times in zip(rows, entrants, timed.values(), strict=True):
        scores = _scores(entrant, times["result"])
        row["ratio"] = row["GCUPS"] / _best_parasail(rows, row["output"])
        row["differ"] = sum(truth[pair] != score for pair, score in scores.items())
    return rows


def _row(entrant: Contestant, problem, mode, threads, times) -> dict:
    lengths, seconds = problem.lengths, times["seconds"]
    cells = sum(int(lengths[i]) * int(lengths[j]) for i, j in entrant.pairs)
    return {
        "tool": entrant.tool,
        "mode": mode,
        "output": entrant.output,
        "threads": threads,
        "problem": problem.name,
        "length": float(lengths.mean()),
        "pairs": len(entrant.pairs),
        "GCUPS": measure.gcups(cells, seconds),
        "pairs/s": len(entrant.pairs) / seconds,
        "ratio": None,
        "spread": times["spread"],
        "cores": times["cores"],
        "first": times["first"],
        "differ": None,
        "how": _how(times["result"]),
    }


def _how(result) -> str:
    """jaxalign's implementation and dtype; nothing for tools that return a list."""
    if isinstance(result, list):
        return ""
    dtypes = result.info.get("dtypes", [])
    return " ".join([result.implementation, *map(str, dtypes)])


def _scores(entrant: Contestant, result) -> dict:
    """(i, j) -> score."""
    scores = result if isinstance(result, list) else result["score"].tolist()
    return dict(zip(entrant.pairs, scores, strict=True))


def _best_parasail(rows, output: str) -> float:
    """GCUPS of the fastest parasail row of this output (score-only as a fallback)."""
    own = [row for row in rows if row["tool"].startswith("parasail")]
    same = [row for row in own if row["output"] == output]
    return max(row["GCUPS"] for row in same or own)


def run(arguments, threads: int) -> dict:
    """All problems and modes on one number of threads, printed as they come."""
    pinned = measure.pin(threads)
    machine = measure.machine()
    measure.show_machine(machine)
    print(f"# {pinned}; BLOSUM62, gap(k) = 11 + (k - 1); parasail in 16 bits")
    rows, few_cells = [], SLOW_CELLS_QUICK if arguments.quick else SLOW_CELLS
    for name in arguments.problems:
        problem = _problem(name, arguments.quick)
        for mode in arguments.modes if problem else ():
            few = sample(problem, few_cells)
            options = (arguments.outputs, threads, few, arguments.repeats)
            rows += (table := measure_problem(problem, mode, *options))
            measure.show(table)
    return {"machine": machine, "pinned": pinned, "rows": rows}


def _problem(name: str, quick: bool):
    try:
        return problems.problem(name, quick)
    except FileNotFoundError as missing:
        print(f"# {name} left out: {missing}")
        return None


def run_each(arguments, command: list[str]) -> list[dict]:
    """One process for each number of threads: a process can be pinned only once."""
    reports = []
    for threads in arguments.threads:
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder) / "part.json"
            own = ["--threads", str(threads), "--json", str(part)]
            subprocess.run([sys.executable, __file__, *command, *own], check=True)
            reports += json.loads(part.read_text())["runs"]
    return reports


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(word) for word in _words(text)]


def parser() -> argparse.ArgumentParser:
    """The options."""
    parser = measure.arguments(__doc__)
    names = [*problems.RANDOM, *problems.MIXED]
    parser.add_argument("--threads", type=_numbers, default=[1], metavar="1,2")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="too small for figures",
    )
    every = ",".join(names)
    parser.add_argument("--problems", type=_words, default=names, metavar=every)
    parser.add_argument("--modes", type=_words, default=["local", "global"])
    parser.add_argument("--outputs", type=_words, default=["score", "alignment"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="PATH", help="write the rows here too")
    return parser


def main() -> None:
    """Command line."""
    command = sys.argv[1:]
    arguments = parser().parse_args(command)
    if len(arguments.threads) == 1:
        runs = [run(arguments, arguments.threads[0])]
    else:
        runs = run_each(arguments, command)  # the last option given wins
    measure.save(arguments.json, {"command": command, "runs": runs})


if __name__ == "__main__":
    main()
