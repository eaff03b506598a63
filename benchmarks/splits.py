"""Splits of the same proteins by jaxalign, GraphPart, Hestia and MMseqs2: seconds,
sequences kept, and the leaks that an exact audit finds.

    python -m benchmarks.splits --proteins 1000 --peers /path/of/their/python

Every tool is a process of its own, from the command to its files. Pairs whose identity
over the longer sequence is at the cut or above must not be in different parts. Shares
are 0.8, 0.1 and 0.1. ``--peers`` is a Python that has graph-part and hestia-good;
``mmseqs``, ``graphpart`` and ``needleall`` are looked for beside it and on the path;
what is missing is left out.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import measure
import problems

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "splits.jsonl"
SHARES = {"train": 0.8, "valid": 0.1, "test": 0.1}

HESTIA = """
import sys
import pandas
from hestia.partition import ccpart
from hestia.similarity import sequence_similarity_mmseqs, sequence_similarity_needle

names, letters = [], []
for line in open(sys.argv[1]):
    if line.startswith(">"):
        names.append(line[1:].strip()), letters.append("")
    else:
        letters[-1] += line.strip()
data, cut = pandas.DataFrame({"name": names, "sequence": letters}), float(sys.argv[3])
ways = {"mmseqs": sequence_similarity_mmseqs, "needle": sequence_similarity_needle}
pairs = ways[sys.argv[4]](data, field_name="sequence", threshold=cut, threads=2)
parts = ccpart(data, pairs, field_name="sequence", threshold=cut, test_size=0.1,
               valid_size=0.1)
with open(sys.argv[2], "w") as out:
    print("name\\tpart", file=out)
    for part, rows in zip(("train", "test", "valid"), parts):
        for row in rows:
            print(names[row], part, sep="\\t", file=out)
"""


def proteins(count: int) -> list[tuple[str, str]]:
    """Real proteins in families: entries of one mnemonic, where three or more are."""
    families = defaultdict(list)
    for entry, letters in problems.read_fasta(problems.SWISSPROT, field=2):
        if 50 <= len(letters) <= 1000 and not set(letters) & set("UOJ"):
            families[entry.split("_")[0]].append((entry, letters))
    large = [x for x in families.values() if len(x) >= 3]
    random.Random(1).shuffle(large)
    return [one for family in large for one in family][:count]


def jaxalign(folder: Path, cut: float, _) -> list[str]:
    parts = ",".join(f"{name}={share}" for name, share in SHARES.items())
    return [
        sys.executable,
        "-m",
        "jaxalign",
        "split",
        "in.fa",
        "--max-identity",
        str(cut),
        "--parts",
        parts,
        "--too-large",
        "remove",
        "-o",
        "out.tsv",
    ]


def graphpart(mode: str):
    def words(folder: Path, cut: float, peers: Path):
        tool = peers.parent / "graphpart"
        mine = [] if mode == "mmseqs2" else ["--threads", "2"]
        return [
            str(tool),
            mode,
            "--fasta-file",
            "in.fa",
            "--threshold",
            str(cut),
            "--test-ratio",
            "0.1",
            "--val-ratio",
            "0.1",
            "--out-file",
            "out.csv",
            "--denominator",
            "longest",
            *mine,
        ]

    return words


def hestia(way: str):
    def words(folder: Path, cut: float, peers: Path):
        (folder / "run.py").write_text(HESTIA, encoding="utf-8")
        return [str(peers), "run.py", "in.fa", "out.tsv", str(cut), way]

    return words


def mmseqs(folder: Path, cut: float, _) -> list[str]:
    return [
        "mmseqs",
        "easy-cluster",
        "in.fa",
        "clu",
        "tmp",
        "--min-seq-id",
        str(cut),
        "-c",
        "0.8",
        "--threads",
        "2",
        "-v",
        "1",
    ]


def parts_of(folder: Path) -> dict[str, str]:
    """Name -> part, from what a tool has written, without removed sequences."""
    if (folder / "out.tsv").exists():
        rows = (line.split("\t") for line in _lines(folder / "out.tsv"))
        return {row[0]: row[1] for row in rows if row[1] not in ("removed", "")}
    if (folder / "out.csv").exists():
        heading, *rows = (line.split(",") for line in _lines(folder / "out.csv", 0))
        column = heading.index("cluster")
        return {row[0]: f"part{float(row[column]):g}" for row in rows}
    clusters = defaultdict(list)
    for line in _lines(folder / "clu_cluster.tsv", 0):
        head, member = line.split("\t")
        clusters[head].append(member)
    order = [*clusters.values()]
    random.Random(0).shuffle(order)
    return _filled(order)


def _filled(clusters) -> dict[str, str]:
    """Whole clusters, each to the part that lacks most: what one does by hand."""
    total, sizes, parts = sum(map(len, clusters)), Counter(), {}
    for cluster in clusters:
        part = max(SHARES, key=lambda name: SHARES[name] * total - sizes[name])
        sizes[part] += len(cluster)
        parts |= dict.fromkeys(cluster, part)
    return parts


def _lines(path: Path, skip: int = 1) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()[skip:]


def leaks(folder: Path, parts: dict[str, str], cut: float) -> tuple[int, float]:
    """(pairs across parts at the cut or above, the highest identity), exactly."""
    rows = "".join(f"{name}\t{part}\n" for name, part in parts.items())
    (folder / "given.tsv").write_text("name\tpart\n" + rows, encoding="utf-8")
    kept = [x for x in problems.read_fasta(folder / "in.fa") if x[0] in parts]
    _write(folder / "kept.fa", kept)
    words = [
        sys.executable,
        "-m",
        "jaxalign",
        "audit",
        "kept.fa",
        "--split",
        "given.tsv",
        "--max-identity",
        str(cut),
        "-o",
        "audit.json",
        "--force",
    ]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=_env())
    if done.returncode not in (0, 6):
        raise RuntimeError(done.stderr)
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    worst = max((x["identity"] for x in audit["worst"]), default=0.0)
    return audit["leaks"], worst


def _cpu_seconds() -> float:
    """What all processes that this one has waited for have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write(path: Path, records) -> None:
    text = "".join(f">{name}\n{letters}\n" for name, letters in records)
    path.write_text(text, encoding="utf-8")


def _env(peers: Path | None = None) -> dict[str, str]:
    beside = [str(peers.parent)] if peers else []
    path = os.pathsep.join([*beside, os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}


TOOLS = {
    "jaxalign split": jaxalign,
    "graphpart mmseqs2": graphpart("mmseqs2"),
    "graphpart needle": graphpart("needle"),
    "hestia ccpart, mmseqs": hestia("mmseqs"),
    "hestia ccpart, needle": hestia("needle"),
    "mmseqs easy-cluster": mmseqs,
}


def run(name: str, records, options) -> dict:
    """One tool: a row of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _write(folder / "in.fa", records)
        words = TOOLS[name](folder, options.cut, options.peers)
        if not shutil.which(words[0]):
            return {}
        began, busy = time.perf_counter(), _cpu_seconds()
        done = subprocess.run(
            words,
            cwd=folder,
            capture_output=True,
            text=True,
            env=_env(options.peers),
            timeout=options.timeout,
        )
        seconds = time.perf_counter() - began
        row = {
            "tool": name,
            "proteins": len(records),
            "cut": options.cut,
            "seconds": round(seconds, 1),
            "CPU seconds": round(_cpu_seconds() - busy, 1),
        }
        if done.returncode:
            print(f"{name}: {(done.stderr or done.stdout)[-500:]}", file=sys.stderr)
            return {}
        parts = parts_of(folder)
        count, worst = leaks(folder, parts, options.cut)
        sizes = Counter(parts.values())
        shares = [f"{100 * n / len(parts):.0f}" for n in sorted(sizes.values())[::-1]]
        return row | {
            "kept": len(parts),
            "shares": "/".join(shares),
            "leaks": count,
            "highest": round(worst, 3),
        }


def main(argv=None) -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--proteins", type=int, default=1000)
    parser.add_argument("--cut", type=float, default=0.4)
    parser.add_argument("--peers", type=Path, default=Path(sys.executable))
    parser.add_argument("--only", default="", help="tools whose name contains it")
    parser.add_argument("--timeout", type=float, default=3600)
    options = parser.parse_args(argv)
    records, rows = proteins(options.proteins), []
    for name in TOOLS:
        if options.only in name and (row := run(name, records, options)):
            print(json.dumps(row), flush=True)
            rows.append(row)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    measure.show(rows)


if __name__ == "__main__":
    main()
