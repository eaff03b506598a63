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
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import measure
import problems

RESULTS = problems.ROOT / "benchmarks" / "results" / "splits.jsonl"
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


# The commands of the tools. JAXALIGN and PEERS are Pythons, GRAPHPART is beside one.
GRAPHPART = "--fasta-file in.fa --threshold CUT --test-ratio 0.1 --val-ratio 0.1 "
GRAPHPART += "--out-file out.csv --denominator longest"
TOOLS = {
    "jaxalign split": "JAXALIGN -m jaxalign split in.fa --min-identity CUT --parts "
    + ",".join(f"{name}={share}" for name, share in SHARES.items())
    + " --too-large remove -o out.tsv",
    "graphpart mmseqs2": f"GRAPHPART mmseqs2 {GRAPHPART}",
    "graphpart needle": f"GRAPHPART needle {GRAPHPART} --threads 2",
    "hestia ccpart, mmseqs": "PEERS run.py in.fa out.tsv CUT mmseqs",
    "hestia ccpart, needle": "PEERS run.py in.fa out.tsv CUT needle",
    "mmseqs easy-cluster": "mmseqs easy-cluster in.fa clu tmp --min-seq-id CUT -c 0.8 "
    "--threads 2 -v 1",
}


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
    # Whole clusters, each to the part that lacks most: what one does by hand.
    total, sizes, parts = sum(map(len, order)), Counter(), {}
    for cluster in order:
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
    problems.write_fasta(folder / "kept.fa", kept)
    words = f"-m jaxalign audit kept.fa --split given.tsv --min-identity {cut}".split()
    words = [sys.executable, *words, "-o", "audit.json", "--force"]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=_env())
    if done.returncode not in (0, 6):
        raise RuntimeError(done.stderr)
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    worst = max((x["identity"] for x in audit["worst"]), default=0.0)
    return audit["leaks"], worst


def _env(peers: Path | None = None) -> dict[str, str]:
    beside = [str(peers.parent)] if peers else []
    path = os.pathsep.join([*beside, os.environ["PATH"]])
    return os.environ | {"PYTHONPATH": str(problems.ROOT), "PATH": path}


def run(name: str, records, options) -> dict:
    """One tool: a row of the table."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        problems.write_fasta(folder / "in.fa", records)
        (folder / "run.py").write_text(HESTIA, encoding="utf-8")
        places = {
            "CUT": str(options.cut),
            "JAXALIGN": sys.executable,
            "PEERS": str(options.peers),
            "GRAPHPART": str(options.peers.parent / "graphpart"),
        }
        words = [places.get(word, word) for word in TOOLS[name].split()]
        if not shutil.which(words[0]):
            return {}
        call = partial(
            subprocess.run, words, cwd=folder, capture_output=True, text=True,
            env=_env(options.peers), timeout=options.timeout,
        )  # fmt: skip
        seconds, cpu, done = measure.timed(call)
        row = {
            "tool": name,
            "proteins": len(records),
            "cut": options.cut,
            "seconds": round(seconds, 1),
            "CPU seconds": round(cpu, 1),
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
    parser = measure.arguments(__doc__, "only")
    parser.add_argument("--proteins", type=int, default=1000)
    parser.add_argument("--cut", type=float, default=0.4)
    parser.add_argument("--peers", type=Path, default=Path(sys.executable))
    parser.add_argument("--timeout", type=float, default=3600)
    options = parser.parse_args(argv)
    records, rows = proteins(options.proteins), []
    for name in TOOLS:
        if options.only in name and (row := run(name, records, options)):
            print(json.dumps(row), flush=True)
            rows.append(row)
    measure.append(RESULTS, rows)
    measure.show(rows)


if __name__ == "__main__":
    main()
