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

import re
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import measure
import numpy as np
import papers_three
import peers
import problems

import jaxalign

# EMBOSS -------------------------------------------------------------------------------
# X1.3: jaxalign beside EMBOSS needleall and water, and whether the scores agree.
#
# The paper takes the start of the process off by a run on 1-residue sequences, and so
# does this. All ordered pairs of a set are aligned, because that is what needleall does
# with one file given twice; water takes one query a process. Both write scores only,
# which is the least text that EMBOSS can write. EMBOSS is serial.


# The paper has ten sets of growing size with lengths in one range.
EMBOSS_SIZES, EMBOSS_SIZES_QUICK = tuple(range(5, 55, 5)), (3, 6)
EMBOSS_LENGTH = 300
SCORE_LINE = re.compile(r"^(\S+) (\S+) \d+ \((-?[\d.]+)\)$", re.MULTILINE)
COMMON = ["-sprotein1", "-sprotein2", "-datafile", "EBLOSUM62", "-auto"]
COMMON += ["-gapopen", str(peers.GAP_OPEN), "-gapextend", str(peers.GAP_EXTEND)]
PROGRAMS = {"needleall": "semiglobal", "water": "local"}


def beside_emboss(options) -> list[dict]:
    """One row a set and program."""
    if not all(map(shutil.which, PROGRAMS)):
        raise FileNotFoundError("EMBOSS is not installed (Debian package emboss)")
    sizes = EMBOSS_SIZES_QUICK if options.quick else EMBOSS_SIZES
    sets = [problems.near_length(f"emboss-{n}", EMBOSS_LENGTH, n) for n in sizes]
    return [_row(one, tool, options) for one in sets for tool in PROGRAMS]


def _row(problem, program: str, options) -> dict:
    """Seconds of both tools on all ordered pairs, and the scores that differ."""
    mode, n = PROGRAMS[program], len(problem.texts)
    calls = {"emboss": lambda: run_emboss(program, problem)}
    calls["jaxalign"] = all_ordered(problem, mode, options)
    timed = measure.in_turns(calls, options.repeats)
    single = problems.Problem("start", ("a",), ("W",))
    start = measure.median_seconds(lambda: run_emboss(program, single))
    net = timed["emboss"]["seconds"] - start * (1 if program == "needleall" else n)
    cells = int(problem.lengths.sum()) ** 2
    ordered = [(a, b) for a in problem.names for b in problem.names]
    ours = dict(zip(ordered, timed["jaxalign"]["result"]["score"], strict=True))
    theirs = timed["emboss"]["result"]  # without pairs that EMBOSS did not print
    return {
        "program": program,
        "mode": mode,
        "n": n,
        "pairs": n**2,
        "EMBOSS s": net,
        "jaxalign s": timed["jaxalign"]["seconds"],
        "EMBOSS GCUPS": measure.gcups(cells, net),
        "jaxalign GCUPS": measure.gcups(cells, timed["jaxalign"]["seconds"]),
        "speed-up": net / timed["jaxalign"]["seconds"],
        "differ": sum(theirs.get(pair) != float(x) for pair, x in ours.items()),
    }


def all_ordered(problem, mode: str, options):
    """jaxalign on every (i, j), self pairs and both orders included."""
    scoring = jaxalign.Scoring("BLOSUM62", peers.GAP_OPEN, peers.GAP_EXTEND)
    n, records = len(problem.texts), problem.records
    queries = [records[i] for i in range(n) for _ in range(n)]
    shared = {"mode": mode, "output": "alignment", "threads": options.threads}
    return lambda: jaxalign.align_pairs(queries, records * n, scoring, **shared)


def run_emboss(program: str, problem) -> dict:
    """(query, target) -> score, from as few processes as the program allows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        problems.write_fasta(folder / "all.fasta", problem.records)
        if program == "needleall":
            return _one_process(program, folder, "all.fasta")
        scores = {}
        for record in problem.records:
            problems.write_fasta(folder / "query.fasta", [record])
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


# Many pairs at once -------------------------------------------------------------------
# X3.1 and X3.2: many pairs at once, length 2000, linear gap.
#
# X3.1 moves what each design moves and computes nothing. *naive* (the GPU code that the
# paper improves on) sends, for every pair, an N x M matrix of substitution scores and
# an (N+1) x (M+1) matrix with its borders filled, and fetches that matrix back; *paper*
# sends letters, lengths and the small table and fetches the matrix; *jaxalign* sends
# the same and fetches a score a pair. On the CPU device the times are those of copies
# in memory (aliasing is off), so only the bytes carry over to a GPU.

LENGTH = 2000
PAIRS, PAIRS_QUICK = (1, 2, 4, 8, 16, 32, 64), (1, 2)
GAP = 8  # linear; parasail's striped kernels are wrong for these, so scan is beside


def transfers(options) -> list[dict]:
    """X3.1: one row a number of pairs."""
    import jax

    made = designs()
    rows = []
    for pairs in PAIRS_QUICK if options.quick else PAIRS:
        row = {"device": jax.devices()[0].device_kind, "pairs": pairs}
        calls = {name: _mover(*d, pairs) for name, d in made.items()}
        timed = measure.in_turns(calls, options.repeats)
        for name, (sent, fetched, at_once) in made.items():
            row[f"{name} MB"] = _bytes(sent, fetched, at_once, pairs) / 1e6
            row[f"{name} ms"] = 1e3 * timed[name]["seconds"]
        rows.append(row)
    return rows


def designs() -> dict:
    """name -> (arrays sent a pair, array fetched a pair, arrays sent once)."""
    matrix = np.zeros((LENGTH + 1, LENGTH + 1), np.int32)
    reference = np.zeros((LENGTH, LENGTH), np.int32)
    letters = np.zeros(2 * LENGTH, np.uint8)
    lengths, table = np.zeros(2, np.int32), np.zeros((24, 24), np.int32)
    return {
        "naive": ([reference, matrix], matrix, []),
        "paper": ([letters, lengths], matrix, [table]),
        "jaxalign": ([letters, lengths], np.zeros((), np.int32), [table]),
    }


def _bytes(sent, fetched, at_once, pairs: int) -> int:
    each = sum(a.nbytes for a in sent) + fetched.nbytes
    return pairs * each + sum(a.nbytes for a in at_once)


def _mover(sent, fetched, at_once, pairs: int):
    """Host -> device -> host. Small arrays go as one batch, matrices pair by pair."""
    import jax

    small = fetched.nbytes < 1000
    batch = [np.stack([a] * pairs) for a in sent] if sent[0].nbytes < 1e6 else None
    result = jax.device_put(np.stack([fetched] * pairs) if small else fetched)

    def put(arrays) -> None:
        moved = [jax.device_put(a, may_alias=False) for a in arrays]
        jax.block_until_ready(moved)

    def move() -> None:
        put(at_once)
        for _ in range(1 if batch else pairs):
            put(batch or sent)
        # A fresh copy, because a JAX array keeps what was once read. On a GPU the copy
        # costs a hundredth of the transfer; on the CPU it is the transfer.
        for _ in range(1 if small else pairs):
            np.asarray(result.copy())

    return move


def many_pairs(options) -> list[dict]:
    """X3.2: GCUPS of one call on k pairs, score only and with the path."""
    linear = jaxalign.Scoring("BLOSUM62", GAP, GAP)
    counts = PAIRS_QUICK if options.quick else PAIRS
    whole = problems.exact_length(LENGTH, 2 * max(counts))
    rows = []
    for pairs in counts:
        queries, targets = whole.texts[:pairs], whole.texts[-pairs:]
        sides = list(queries), list(targets)

        def ours(output: str, sides=sides):
            shared = {"mode": "global", "output": output, "threads": options.threads}
            return lambda: jaxalign.align_pairs(*sides, linear, **shared)

        def theirs(path: bool, sides=sides):
            return lambda: parasail_pairs(*sides, path, options.threads)

        calls = {
            "jaxalign score": ours("score"),
            "jaxalign path": ours("alignment"),
            "parasail score": theirs(False),
            "parasail path": theirs(True),
        }
        timed = measure.in_turns(calls, options.repeats)
        cells = pairs * LENGTH * LENGTH
        speeds = {k: measure.gcups(cells, t["seconds"]) for k, t in timed.items()}
        row = {"pairs": pairs} | {f"{k} GCUPS": v for k, v in speeds.items()}
        table, scores = (
            timed[f"{x} score"]["result"] for x in ("jaxalign", "parasail")
        )
        differ = np.asarray(table["score"]) != np.array(scores)
        rows.append(row | {"differ": int(differ.sum())})
    return rows


def parasail_pairs(queries, targets, path: bool, threads: int) -> list[int]:
    """Scores of pair k = (queries[k], targets[k]); no profile can be shared here."""
    import parasail

    align = parasail.nw_trace_scan_16 if path else parasail.nw_scan_16

    def one(query: str, target: str) -> int:
        result = align(query, target, GAP, GAP, parasail.blosum62)
        if path:
            _ = result.cigar.decode
        return result.score

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, queries, targets))


# The experiments ----------------------------------------------------------------------

MODES = ("global", "semiglobal", "local")
# X1.6: the paper has n = 16, 32, ... 1024; powers of two show the same knee.
LOADS, LOADS_QUICK = (2, 4, 8, 16, 32, 64, 128, 256), (2, 8, 24)


def align_all(problem, mode: str, output: str, options):
    """The call that the X1 rows measure: all pairs, self pairs included."""
    scoring = jaxalign.Scoring("BLOSUM62", peers.GAP_OPEN, peers.GAP_EXTEND)
    shared = {"mode": mode, "output": output, "threads": options.threads}
    call = partial(jaxalign.align_all, include_self=True, **shared)
    return lambda: call(problem.records, scoring)


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
    parasail = partial(peers.parasail_call, problem, "local")
    threads = {"threads": options.threads, "first": 0}
    calls = {
        "jaxalign": align_all(problem, "local", "alignment", options),
        "parasail+path": parasail("scan", "trace_", **threads),
        "parasail score": parasail("striped", "", **threads),
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


def groups_without(ending: str, options) -> list[dict]:
    """X1.1 without GCUPS, X1.2 without seconds."""
    return [
        {key: value for key, value in row.items() if not key.endswith(ending)}
        for row in groups(options)
    ]


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


def three(table, options) -> list[dict]:
    """X2: a table of the paper's sizes; its two largest take a GPU."""
    sizes = papers_three.SIZES[: 1 if options.quick else 3]
    return list(table(sizes, options.repeats))


ROWS = {
    "X1.1": partial(groups_without, "GCUPS"),
    "X1.2": partial(groups_without, " s"),
    "X1.3": beside_emboss,
    "X1.6": load,
    "X1.8": backtracking,
    "X2.1": partial(three, papers_three.table_1),
    "X2.2": partial(three, papers_three.table_2),
    "X2.3": partial(three, papers_three.sweep),
    "X3.1": transfers,
    "X3.2": many_pairs,
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


def main() -> None:
    parser = measure.arguments(__doc__, "quick", "json", threads=1, repeats=3)
    parser.add_argument("names", nargs="+", choices=list(ROWS), metavar="NAME")
    options = parser.parse_args()
    pinned, machine = measure.pin(options.threads), measure.machine()
    print(f"# {pinned}; BLOSUM62; medians of {options.repeats}")
    names = options.names
    if {"X1.1", "X1.2"} <= set(names):  # one run serves both
        ROWS["X1.1 X1.2"] = groups
        names = ["X1.1 X1.2", *(x for x in names if x not in ("X1.1", "X1.2"))]
    rows = {name: run(name, options) for name in names}
    measure.save(options.json, {"machine": machine, "pinned": pinned, "rows": rows})


if __name__ == "__main__":
    main()
