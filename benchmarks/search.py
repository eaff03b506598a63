"""Database search: the table of Liu et al. (2006), queries of eight lengths.

    python -m benchmarks.search --quick          # does it run? too small for figures
    python -m benchmarks.search --threads 2 --json search.json
    python -m benchmarks.search --peers none     # a machine without the other tools
    python -m benchmarks.search --gpu            # kernel time on a GPU

Queries are the beginnings of real proteins, of exactly 63, 127, 255, 361, 511, 1023,
2047 and 4095 residues; the database are the 32,071 proteins that ``fetch.py`` gets
(12,071 Swiss-Prot, 20,000 UniProt). BLOSUM62, gap(k) = 11 + (k - 1), local scores, the
best 10 of each query.

Rows: all queries in one call, then each alone, for every tool. ``seconds`` is the
median of calls in turns after one that is not counted; GCUPS are the sum of len * len
over seconds over 1e9. jaxalign's row ``scan`` has the database encoded, as an index is;
``scan of FASTA`` reads the file, ``search`` aligns the best, too. parasail's query
profile is built once a query (``--kernel``, default striped: costs are affine), on a
pool of threads; ssearch36 reads files and is timed as a process, ``-T`` threads, with
and without alignments of the best. ``differ`` counts queries whose ten best scores are
not jaxalign's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import measure
import numpy as np
import peers
import problems

import jaxalign

LENGTHS = (63, 127, 255, 361, 511, 1023, 2047, 4095)
TOP, QUICK = 10, 400


def database(quick: bool) -> list[tuple[str, str]]:
    """(name, text) of all proteins; letters that BLOSUM62 lacks become X."""
    paths = [path for path in problems.SETS if path.exists()] or problems.SETS
    records = [r for path in paths for r in problems.read_fasta(path, masked="UOJ")]
    records = records[:: max(1, len(records) // QUICK)] if quick else records
    return [(f"{k}_{name}", text) for k, (name, text) in enumerate(records)]


def queries(records, lengths) -> list[tuple[str, str]]:
    """The beginning of the first protein that is at least as long, for each length."""
    longest = max(records, key=lambda record: len(record[1]))[1]
    texts = {n: next((t for _, t in records if n <= len(t) <= n + 40), longest)
             for n in lengths}  # fmt: skip
    return [(f"q{n}", text[:n]) for n, text in texts.items() if len(text) >= n]


def jaxalign_calls(query_list, fasta: Path, index: Path, threads: int) -> dict:
    """Name -> function: the best scores of each query."""
    encoded = jaxalign.open_database(index)
    options = {"top": TOP, "threads": threads}

    def best(table):
        numbers = range(len(query_list))
        return [table["score"][table["query"] == q].tolist() for q in numbers]

    def scan(database):
        return best(jaxalign.search(query_list, database, align_top=False, **options))

    return {
        "jaxalign scan": lambda: scan(encoded),
        "jaxalign scan of FASTA": lambda: scan(fasta),
        "jaxalign search": lambda: best(jaxalign.search(query_list, fasta, **options)),
    }


def parasail_call(query_list, records, threads: int, kernel: str):
    """One profile a query; pieces of the database on a pool of threads."""
    import parasail

    align = getattr(parasail, f"sw_{kernel}_profile_sat")
    texts = [text for _, text in records]
    pieces = [texts[k :: 8 * threads] for k in range(8 * threads)]

    def call():
        best = []
        for _, query in query_list:
            profile = parasail.profile_create_sat(query, parasail.blosum62)

            def some(piece, profile=profile):
                costs = peers.GAP_OPEN, peers.GAP_EXTEND
                return [align(profile, text, *costs).score for text in piece]

            with ThreadPoolExecutor(threads) as pool:
                scores = [score for part in pool.map(some, pieces) for score in part]
            best.append(sorted(scores, reverse=True)[:TOP])
        return best

    return call


def ssearch_call(query_list, fasta: Path, folder: Path, threads: int, aligned: int):
    """ssearch36 as a process; its gap costs leave the first residue out."""
    own = folder / f"queries{len(query_list)}_{query_list[0][0]}.fa"
    problems.write_fasta(own, query_list)
    costs = f"-f -{peers.GAP_OPEN - peers.GAP_EXTEND} -g -{peers.GAP_EXTEND}"
    words = f"{costs} -b ={TOP} -d {aligned} -E 1e9 -z -1 -T {threads}"
    command = f"ssearch36 -q -p -s BL62 {words}".split() + [str(own), str(fasta)]

    def call():
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [_listed(part) for part in out.split("The best scores are:")[1:]]

    return call


def _listed(text: str) -> list[int]:
    """The scores of ssearch36's list: ``name (length) score``."""
    lines = text.strip().splitlines()[1 : TOP + 1]
    scores = [line.rsplit(")", 1)[1].split()[0] for line in lines if ")" in line]
    return [int(score) for score in scores]


def contestants(query_list, records, files, arguments) -> dict:
    """The tools of ``--peers`` that are installed: name -> call."""
    fasta, index, folder = files
    calls = jaxalign_calls(query_list, fasta, index, arguments.threads)
    if "parasail" in arguments.peers and find_spec("parasail"):
        call = parasail_call(query_list, records, arguments.threads, arguments.kernel)
        calls["parasail"] = call
    if "ssearch36" in arguments.peers and shutil.which("ssearch36"):
        arguments_of = query_list, fasta, folder, arguments.threads
        calls["ssearch36"] = ssearch_call(*arguments_of, 0)
        calls["ssearch36 aligned"] = ssearch_call(*arguments_of, TOP)
    return calls


def rows(query_list, records, files, arguments, name: str) -> list[dict]:
    """One problem: all tools in turns."""
    calls = contestants(query_list, records, files, arguments)
    timed = measure.in_turns(calls, arguments.repeats)
    cells = sum(len(q) for _, q in query_list) * sum(len(t) for _, t in records)
    want = timed["jaxalign scan"]["result"]
    report = []
    for tool, times in timed.items():
        differ = sum(a != b for a, b in zip(want, times["result"], strict=True))
        report.append({
            "queries": name, "tool": tool, "seconds": times["seconds"],
            "GCUPS": measure.gcups(cells, times["seconds"]), "spread": times["spread"],
            "cores": times["cores"], "first": times["first"], "differ": differ,
        })  # fmt: skip
    return report


# On a GPU -----------------------------------------------------------------------------
# Rows of ``--gpu``: what the scan of a database takes.
#
# ``device`` is the sum of kernel times of a call in a profiler trace, copies left out:
# all kernels, the choice of the best hits and the layout of letters too. ``TCUPS`` are
# the sum of len * len over that, ``wall TCUPS`` over the median of whole calls.
# ``right``: hits have the scores that one pair at a time has on the CPU (the sweep).


def gpu_rows(problems: dict, index, repeats: int):
    """A row a problem: name -> queries."""
    import gpu

    held = jaxalign.open_database(index)
    residues = int(held.lengths.sum())
    for name, asked in problems.items():

        def scan(asked=asked):
            return jaxalign.search(asked, held, top=TOP, align_top=False)

        run = measure.in_turns({0: scan}, repeats)[0]
        first, seconds, table = (run[x] for x in ("first", "seconds", "result"))
        traced = gpu.traced(scan)
        device = traced.get("device_seconds", float("nan"))
        cells = sum(len(text) for _, text in asked) * residues
        yield {
            "queries": name, "seconds": seconds, "device": device,
            "TCUPS": cells / device / 1e12 if device else float("nan"),
            "wall TCUPS": cells / seconds / 1e12, "first": first,
            "launches": table.info["windows"], "dtype": "/".join(table.info["dtypes"]),
            "right": gpu.check(table, 6), "largest": traced.get("largest"),
            "best": [table["score"][table["query"] == q].tolist()
                     for q in range(len(asked))],
        }  # fmt: skip


def whole(asked, fasta, repeats: int) -> dict:
    """From the FASTA file to aligned hits."""
    calls = {0: lambda: jaxalign.search(asked, fasta, top=TOP)}
    run = measure.in_turns(calls, repeats)[0]
    table = run["result"]
    rescored = [table.alignment(k).rescore() for k in range(len(table))]
    return {"queries": "all, FASTA to alignments", "seconds": run["seconds"],
            "first": run["first"], "aligning": table.info["align_seconds"],
            "right": bool((np.array(rescored) == table["score"]).all())}  # fmt: skip


# The table ----------------------------------------------------------------------------


def run(arguments) -> dict:
    """The whole table, printed as it comes."""
    pinned = "not pinned"
    if arguments.threads is not None:
        pinned = measure.pin(arguments.threads)
    arguments.threads = arguments.threads or len(os.sched_getaffinity(0))
    machine = measure.machine()
    print(f"# {pinned}")
    records = database(arguments.quick)
    query_list = queries(records, arguments.lengths)
    residues = sum(len(text) for _, text in records)
    print(
        f"# {len(records)} sequences, {residues} residues; queries {arguments.lengths}"
    )
    report = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)  # the database as FASTA and as an index
        files = folder / "database.fa", folder / "database.jaxdb", folder
        problems.write_fasta(files[0], records)
        jaxalign.index_database(*files[:2])
        problems_of = {"all": query_list} if len(query_list) > 1 else {}
        if not arguments.all_only:
            problems_of |= {name[1:]: [(name, text)] for name, text in query_list}
        if arguments.gpu:
            for row in gpu_rows(problems_of, files[1], arguments.repeats):
                report.append(row)
                aside = "best", "largest"
                measure.show([{k: v for k, v in row.items() if k not in aside}])
            asked = next(iter(problems_of.values()))
            report.append(whole(asked, files[0], arguments.repeats))
            measure.show(report[-1:])
        for name, some in problems_of.items() if not arguments.gpu else ():
            report += (table := rows(some, records, files, arguments, name))
            measure.show(table)
    return {"machine": machine, "pinned": pinned, "rows": report}


def main() -> None:
    parser = measure.arguments(__doc__, "quick", "threads", "json", repeats=3)
    parser.add_argument("--lengths", type=measure.numbers, default=list(LENGTHS))
    parser.add_argument("--peers", default="parasail,ssearch36", help="or none")
    parser.add_argument("--kernel", default="striped", choices=("striped", "scan"))
    parser.add_argument("--gpu", action="store_true", help="kernel times")
    parser.add_argument("--all-only", action="store_true", help="no query alone")
    arguments = parser.parse_args()
    report = run(arguments)
    measure.save(arguments.json, {"command": sys.argv[1:], **report})


if __name__ == "__main__":
    main()
