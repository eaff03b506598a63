"""X1.3: jaxalign beside EMBOSS needleall and water, and whether the scores agree.

The paper takes the start of the process off by a run on 1-residue sequences, and so
does this. All ordered pairs of a set are aligned, because that is what needleall does
with one file given twice; water takes one query a process. Both write scores only,
which is the least text that EMBOSS can write. EMBOSS is serial.
"""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import measure
import problems
import tools

# The paper has ten sets of growing size with lengths in one range.
SIZES, SIZES_QUICK = tuple(range(5, 55, 5)), (3, 6)
LENGTH = 300
SCORE_LINE = re.compile(r"^(\S+) (\S+) \d+ \((-?[\d.]+)\)$", re.MULTILINE)
COMMON = ["-sprotein1", "-sprotein2", "-datafile", "EBLOSUM62", "-auto"]
COMMON += ["-gapopen", str(tools.GAP_OPEN), "-gapextend", str(tools.GAP_EXTEND)]
PROGRAMS = {"needleall": "semiglobal", "water": "local"}


def beside_emboss(options) -> list[dict]:
    """One row a set and program."""
    if not all(map(shutil.which, PROGRAMS)):
        raise FileNotFoundError("EMBOSS is not installed (Debian package emboss)")
    sizes = SIZES_QUICK if options.quick else SIZES
    sets = [problems.near_length(f"emboss-{n}", LENGTH, n) for n in sizes]
    return [_row(one, tool, options) for one in sets for tool in PROGRAMS]


def _row(problem, program: str, options) -> dict:
    """Seconds of both tools on all ordered pairs, and the scores that differ."""
    mode = PROGRAMS[program]
    calls = {"emboss": lambda: run_emboss(program, problem)}
    calls["jaxalign"] = all_ordered(problem, mode, options)
    timed = measure.in_turns(calls, options.repeats)
    net = timed["emboss"]["seconds"] - _start(program, len(problem.texts))
    cells = int(problem.lengths.sum()) ** 2
    return {
        "program": program,
        "mode": mode,
        "n": len(problem.texts),
        "pairs": len(problem.texts) ** 2,
        "EMBOSS s": net,
        "jaxalign s": timed["jaxalign"]["seconds"],
        "EMBOSS GCUPS": measure.gcups(cells, net),
        "jaxalign GCUPS": measure.gcups(cells, timed["jaxalign"]["seconds"]),
        "speed-up": net / timed["jaxalign"]["seconds"],
        "differ": _differing(problem, timed),
    }


def all_ordered(problem, mode: str, options):
    """jaxalign on every (i, j), self pairs and both orders included."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.api import align_pairs

    scoring = Scoring("BLOSUM62", tools.GAP_OPEN, tools.GAP_EXTEND)
    n, records = len(problem.texts), problem.records
    queries = [records[i] for i in range(n) for _ in range(n)]
    shared = {"mode": mode, "output": "alignment", "threads": options.threads}
    return lambda: align_pairs(queries, records * n, scoring, **shared)


def run_emboss(program: str, problem) -> dict:
    """(query, target) -> score, from as few processes as the program allows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "all.fasta", problem.records)
        if program == "needleall":
            return _one_process(program, folder, "all.fasta")
        scores = {}
        for record in problem.records:
            _write(folder / "query.fasta", [record])
            scores |= _one_process(program, folder, "query.fasta")
        return scores


def _one_process(program: str, folder: Path, queries: str) -> dict:
    command = [program, "-asequence", queries, "-bsequence", "all.fasta", *COMMON]
    command += ["-aformat3", "score", "-outfile", "out.txt"]
    if program == "needleall":  # its default leaves out every pair that scores below 1
        command += ["-minscore", "-10"]
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    found = SCORE_LINE.findall((folder / "out.txt").read_text())
    return {(query, target): float(score) for query, target, score in found}


def _write(path: Path, records) -> None:
    path.write_text("".join(f">{name}\n{text}\n" for name, text in records))


def _start(program: str, n: int) -> float:
    """Seconds that starting the program's processes takes, by 1-residue sequences."""
    processes = 1 if program == "needleall" else n
    single = problems.Problem("start", ("a",), ("W",))
    rounds = []
    for _ in range(5):
        begun = time.perf_counter()
        run_emboss(program, single)
        rounds.append(time.perf_counter() - begun)
    return processes * sorted(rounds)[2]


def _differing(problem, timed) -> int:
    """Pairs whose scores differ, or that EMBOSS did not print."""
    ordered = [(a, b) for a in problem.names for b in problem.names]
    ours = dict(zip(ordered, timed["jaxalign"]["result"]["score"], strict=True))
    theirs = timed["emboss"]["result"]
    return sum(theirs.get(pair) != float(score) for pair, score in ours.items())
