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

import jaxalign

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

    def score(query, target: str) -> int:  # a result is freed before the next
        result = align(query, target, *last)
        if variant == "trace_":
            _ = result.cigar.decode
        if variant == "stats_":
            _ = result.matches, result.length
        return result.score

    def row(i: int) -> list[int]:
        query = problem.texts[i]
        if not plain:
            query = profile(query, parasail.blosum62)
        return [score(query, target) for target in problem.texts[i + first :]]

    def call() -> list[int]:
        count = len(problem.texts)
        if threads == 1:
            return [score for i in range(count) for score in row(i)]
        with ThreadPoolExecutor(threads) as pool:
            return [score for part in pool.map(row, range(count)) for score in part]

    return call


def jaxalign_call(problem, mode: str, output: str, threads: int):
    """All pairs i < j in one call; returns the table."""
    scoring = jaxalign.Scoring("BLOSUM62", GAP_OPEN, GAP_EXTEND)
    options = {"mode": mode, "threads": threads}
    options["output"] = "alignment" if output == "cigar" else output

    def call():
        table = jaxalign.align_all(problem.records, scoring, **options)
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
    kernels = {"scan": ("scan", "16"), "striped": ("striped", "16")}
    if mode == "local":  # of global scores most have to be computed again
        kernels["8 first"] = "striped", "sat"
    entries = []
    for output in outputs:
        variant = {"score": "", "stats": "stats_", "alignment": "trace_"}[output]
        for name, (kernel, bits) in kernels.items():
            call = parasail_call(problem, mode, kernel, variant, threads, bits=bits)
            entries.append((f"parasail {name}", output, call))
        call = jaxalign_call(problem, mode, output, threads)
        entries.append(("jaxalign", output, call))
        if output == "alignment":
            call = jaxalign_call(problem, mode, "cigar", threads)
            entries.append(("jaxalign cigar", output, call))
    every = problem.pairs()
    found = [Contestant(tool, output, every, call) for tool, output, call in entries]
    if threads == 1:  # neither releases the interpreter lock
        for output in ("score", "alignment"):
            call = biopython_call(problem, mode, few, output == "alignment")
            found.append(Contestant("Biopython", output, few, call))
        call = biotite_call(problem, mode, few)
        found.append(Contestant("biotite", "alignment", few, call))
    return found


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
    lengths, seconds, result = problem.lengths, times["seconds"], times["result"]
    cells = sum(int(lengths[i]) * int(lengths[j]) for i, j in entrant.pairs)
    how = ""
    if not isinstance(result, list):  # jaxalign's implementation and dtype
        dtypes = result.info.get("dtypes", [])
        how = " ".join([result.implementation, *map(str, dtypes)])
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
        "how": how,
    }


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
    pinned, machine = measure.pin(threads), measure.machine()
    print(f"# {pinned}; BLOSUM62, gap(k) = 11 + (k - 1); parasail in 16 bits")
    rows, few_cells = [], SLOW_CELLS_QUICK if arguments.quick else SLOW_CELLS
    for name in arguments.problems:
        try:
            problem = problems.problem(name, arguments.quick)
        except FileNotFoundError as missing:
            print(f"# {name} left out: {missing}")
            continue
        for mode in arguments.modes:
            few = sample(problem, few_cells)
            options = (arguments.outputs, threads, few, arguments.repeats)
            rows += (table := measure_problem(problem, mode, *options))
            measure.show(table)
    return {"machine": machine, "pinned": pinned, "rows": rows}


def main() -> None:
    command, words = sys.argv[1:], measure.words
    parser = measure.arguments(__doc__, "quick", "json", repeats=3)
    names = [*problems.RANDOM, *problems.MIXED]
    every = ",".join(names)
    parser.add_argument("--threads", type=measure.numbers, default=[1], metavar="1,2")
    parser.add_argument("--problems", type=words, default=names, metavar=every)
    parser.add_argument("--modes", type=words, default=["local", "global"])
    parser.add_argument("--outputs", type=words, default=["score", "alignment"])
    arguments = parser.parse_args(command)
    runs = []
    if len(arguments.threads) == 1:
        runs = [run(arguments, arguments.threads[0])]
    else:  # one process for each: a process can be pinned only once
        for threads in arguments.threads:
            with tempfile.TemporaryDirectory() as folder:
                part = Path(folder) / "part.json"  # the last option given wins
                own = ["--threads", str(threads), "--json", str(part)]
                subprocess.run([sys.executable, __file__, *command, *own], check=True)
                runs += json.loads(part.read_text())["runs"]
    measure.save(arguments.json, {"command": command, "runs": runs})


if __name__ == "__main__":
    main()
