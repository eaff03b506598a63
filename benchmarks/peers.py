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
from dataclasses import dataclass
from pathlib import Path

import measure
import problems
import tools

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
        call = tools.biopython_call(problem, mode, few, path=False)
        entries.append(Contestant("Biopython", "score", few, call))
        call = tools.biopython_call(problem, mode, few, path=True)
        entries.append(Contestant("Biopython", "alignment", few, call))
        call = tools.biotite_call(problem, mode, few)
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
            tools.parasail_call(problem, mode, kernel, variant, threads, bits=bits),
        )
        for name, kernel, bits in kernels
    ]
    calls.append(("jaxalign", tools.jaxalign_call(problem, mode, output, threads)))
    if output == "alignment":
        call = tools.jaxalign_call(problem, mode, "cigar", threads)
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
