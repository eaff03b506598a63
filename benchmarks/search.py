"""Database search: the table of Liu et al. (2006), queries of eight lengths.

    python -m benchmarks.search --quick          # does it run? too small for figures
    python -m benchmarks.search --threads 2 --json search.json
    python -m benchmarks.search --peers none     # a machine without the other tools
    python -m benchmarks.search --stages         # where a long subject goes: CPU
    python -m benchmarks.search --gpu            # kernel time on a GPU (search_gpu)

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

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import measure
import problems
import tools

LENGTHS = (63, 127, 255, 361, 511, 1023, 2047, 4095)
SETS = ("swissprot12071.fasta", "uniprot20000.fasta")
TOP, QUICK = 10, 400


def database(quick: bool) -> list[tuple[str, str]]:
    """(name, text) of all proteins; letters that BLOSUM62 lacks become X."""
    swap = str.maketrans("UOJ", "XXX")
    paths = [problems.HERE / "data" / name for name in SETS]
    found = [r for path in paths if path.exists() for r in problems.read_fasta(path)]
    if not found:
        raise FileNotFoundError(f"{paths[0]} is missing: python benchmarks/fetch.py")
    found = found[:: max(1, len(found) // QUICK)] if quick else found
    return [
        (f"{k}_{name}", text.translate(swap)) for k, (name, text) in enumerate(found)
    ]


def queries(records, lengths) -> list[tuple[str, str]]:
    """The beginning of the first protein that is at least as long, for each length."""
    longest = max(records, key=lambda record: len(record[1]))[1]
    texts = {n: next((t for _, t in records if n <= len(t) <= n + 40), longest)
             for n in lengths}  # fmt: skip
    return [(f"q{n}", text[:n]) for n, text in texts.items() if len(text) >= n]


def jaxalign_calls(asked, fasta: Path, index: Path, threads: int) -> dict:
    """Name -> function: the best scores of each query."""
    import jaxalign

    held, options = jaxalign.open_database(index), {"top": TOP, "threads": threads}

    def best(table):
        return [table["score"][table["query"] == q].tolist() for q in range(len(asked))]

    def scan(database):
        return best(jaxalign.search(asked, database, align_top=False, **options))

    return {
        "jaxalign scan": lambda: scan(held),
        "jaxalign scan of FASTA": lambda: scan(fasta),
        "jaxalign search": lambda: best(jaxalign.search(asked, fasta, **options)),
    }


def parasail_call(asked, records, threads: int, kernel: str):
    """One profile a query; pieces of the database on a pool of threads."""
    import parasail

    align = getattr(parasail, f"sw_{kernel}_profile_sat")
    texts = [text for _, text in records]
    pieces = [texts[k :: 8 * threads] for k in range(8 * threads)]

    def call():
        found = []
        for _, query in asked:
            profile = parasail.profile_create_sat(query, parasail.blosum62)

            def some(piece, profile=profile):
                costs = tools.GAP_OPEN, tools.GAP_EXTEND
                return [align(profile, text, *costs).score for text in piece]

            with ThreadPoolExecutor(threads) as pool:
                scores = [score for part in pool.map(some, pieces) for score in part]
            found.append(sorted(scores, reverse=True)[:TOP])
        return found

    return call


def ssearch_call(asked, fasta: Path, folder: Path, threads: int, aligned: int):
    """ssearch36 as a process; its gap costs leave the first residue out."""
    own = folder / f"queries{len(asked)}_{asked[0][0]}.fa"
    own.write_text("".join(f">{name}\n{text}\n" for name, text in asked))
    costs = [
        "-f",
        f"-{tools.GAP_OPEN - tools.GAP_EXTEND}",
        "-g",
        f"-{tools.GAP_EXTEND}",
    ]
    shown = ["-b", f"={TOP}", "-d", str(aligned), "-E", "1e9", "-z", "-1"]
    command = ["ssearch36", "-q", "-p", "-s", "BL62", *costs, *shown]
    command += ["-T", str(threads), str(own), str(fasta)]

    def call():
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [_listed(part) for part in out.split("The best scores are:")[1:]]

    return call


def _listed(text: str) -> list[int]:
    """The scores of ssearch36's list: ``name (length) score``."""
    lines = text.strip().splitlines()[1 : TOP + 1]
    scores = [line.rsplit(")", 1)[1].split()[0] for line in lines if ")" in line]
    return [int(score) for score in scores]


def contestants(asked, records, files, arguments) -> dict:
    """Everyone asked for who is there: name -> call."""
    fasta, index, folder = files
    calls = jaxalign_calls(asked, fasta, index, arguments.threads)
    if "parasail" in arguments.peers and find_spec("parasail"):
        made = parasail_call(asked, records, arguments.threads, arguments.kernel)
        calls["parasail"] = made
    if "ssearch36" in arguments.peers and shutil.which("ssearch36"):
        given = asked, fasta, folder, arguments.threads
        calls["ssearch36"] = ssearch_call(*given, 0)
        calls["ssearch36 aligned"] = ssearch_call(*given, TOP)
    return calls


def rows(asked, records, files, arguments, name: str) -> list[dict]:
    """One problem: all tools in turns."""
    calls = contestants(asked, records, files, arguments)
    timed = measure.in_turns(calls, arguments.repeats)
    cells = sum(len(q) for _, q in asked) * sum(len(t) for _, t in records)
    want = timed["jaxalign scan"]["result"]
    made = []
    for tool, times in timed.items():
        differ = sum(a != b for a, b in zip(want, times["result"], strict=True))
        made.append({
            "queries": name, "tool": tool, "seconds": times["seconds"],
            "GCUPS": measure.gcups(cells, times["seconds"]), "spread": times["spread"],
            "cores": times["cores"], "first": times["first"], "differ": differ,
        })  # fmt: skip
    return made


def stages(repeats: int) -> list[dict]:
    """Seconds of a long subject: in a full block of lanes, and alone."""
    import numpy as np

    import jaxalign

    rng = np.random.default_rng(0)
    letters = list(problems.LETTERS)

    def text(n):
        return "".join(rng.choice(letters, n))

    asked, made = [text(511)], []
    for length in (1024, 4096):
        lanes = [text(length - 16) for _ in range(128)]
        cases = {"sweep": lanes, "wavefront": lanes[:1], "striped": lanes[:1]}
        calls = {
            name: lambda name=name, some=some: jaxalign.search(
                asked, some, align_top=False, threads=1, implementation=name
            )
            for name, some in cases.items()
        }
        for name, times in measure.in_turns(calls, repeats).items():
            cells = 511 * (length - 16) * len(cases[name])
            busy = times["seconds"] * times["cores"]  # others may use the machine
            made.append({
                "subject": length, "form": name, "subjects": len(cases[name]),
                "GCUPS a core": measure.gcups(cells, busy),
                "ns a column and row": busy / 511 / (length - 16) * 1e9,
                "spread": times["spread"],
            })  # fmt: skip
    return made


def run(arguments) -> dict:
    """The whole table, printed as it comes."""
    pinned = (
        "not pinned" if arguments.threads is None else measure.pin(arguments.threads)
    )
    arguments.threads = arguments.threads or len(os.sched_getaffinity(0))
    found = measure.machine()
    measure.show_machine(found)
    print(f"# {pinned}")
    if arguments.stages:
        made = stages(arguments.repeats)
        measure.show(made)
        return {"machine": found, "pinned": pinned, "rows": made}
    records = database(arguments.quick)
    asked = queries(records, arguments.lengths)
    residues = sum(len(text) for _, text in records)
    print(
        f"# {len(records)} sequences, {residues} residues; queries {arguments.lengths}"
    )
    made = []
    with tempfile.TemporaryDirectory() as folder:
        files = _files(records, Path(folder))
        problems_of = {"all": asked} if len(asked) > 1 else {}
        if not arguments.all_only:
            problems_of |= {name[1:]: [(name, text)] for name, text in asked}
        if arguments.gpu:
            made = on_gpu(problems_of, files, arguments.repeats)
            return {"machine": found, "pinned": pinned, "rows": made}
        for name, some in problems_of.items():
            made += (table := rows(some, records, files, arguments, name))
            measure.show(table)
    return {"machine": found, "pinned": pinned, "rows": made}


def on_gpu(problems_of, files, repeats: int) -> list[dict]:
    """The rows of a GPU, printed as they come."""
    from database import search_gpu

    made = []
    for row in search_gpu.rows(problems_of, files[1], repeats):
        made.append(row)
        measure.show([{k: v for k, v in row.items() if k not in ("best", "largest")}])
    made.append(search_gpu.whole(next(iter(problems_of.values())), files[0], repeats))
    measure.show(made[-1:])
    return made


def _files(records, folder: Path):
    """The database as FASTA and as an index."""
    import jaxalign

    fasta, index = folder / "database.fa", folder / "database.jaxdb"
    fasta.write_text("".join(f">{name}\n{text}\n" for name, text in records))
    jaxalign.index_database(fasta, index)
    return fasta, index, folder


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--threads", type=int, help="pin to so many cores")
    made.add_argument("--lengths", type=lambda x: [int(n) for n in x.split(",")],
                      default=list(LENGTHS))  # fmt: skip
    made.add_argument("--peers", default="parasail,ssearch36", help="or none")
    made.add_argument("--kernel", default="striped", choices=("striped", "scan"))
    made.add_argument("--stages", action="store_true")
    made.add_argument("--gpu", action="store_true", help="kernel times")
    made.add_argument("--all-only", action="store_true", help="no query alone")
    made.add_argument("--quick", action="store_true", help="too small for figures")
    made.add_argument("--repeats", type=int, default=3)
    made.add_argument("--json", metavar="PATH", help="write the rows here too")
    return made


def main() -> None:
    """Command line."""
    arguments = parser().parse_args()
    report = run(arguments)
    measure.save(arguments.json, {"command": sys.argv[1:], **report})


if __name__ == "__main__":
    main()
