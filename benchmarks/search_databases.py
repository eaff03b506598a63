"""Searches of three databases with the 20 queries of CUDASW++4.0, beside it.

    python -m benchmarks.search_databases --peer CUDASW4 --json databases.json
    python -m benchmarks.search_databases --quick   # any machine; no figures

The databases: 270,336 random proteins of 384 residues; 60,000 of log-normal lengths,
300 in the middle and 5,500 at most; 256,568 real ones, the proteins that ``fetch.py``
gets and shuffled copies of them. Queries of 144 to 5,478 random residues each begin
with a piece of a target. BLOSUM62, gaps of 11 and 1, local, the best ten of each.

``seconds`` is the median of calls with the database encoded, ``aligned`` that with the
alignments of the hits, ``first`` the first call. ``--peer`` is a folder with the
programs ``align`` and ``makedb`` of CUDASW++4.0: ``peer`` is the time that it prints
for all queries, its database on the card, and its hits must have the same scores.
"""

import re
import statistics
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import measure
import numpy as np
import problems

import jaxalign

LENGTHS = (144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005,
           3564, 4061, 4548, 4743, 5147, 5478)  # fmt: skip
COPIES, TOP, PIECE = 8, 10, 120
PEER_OPTIONS = (
    *("--mat", "blosum62", "--gop", "-11", "--gex", "-1", "--top", str(TOP)),
    *("--verbose", "--uploadFull", "--prefetchDBFile"),
    *("--singlePassType", "DPXs16", "--manyPassType_small", "DPXs16"),
    *("--manyPassType_large", "DPXs32"),
)


random_texts = partial(problems.random_texts, uniform=True)


def real_texts(rng) -> list[str]:
    """Real proteins and shuffled copies of each."""
    read = partial(problems.read_fasta, masked="UOJBZ")
    texts = [text for path in problems.SETS for _, text in read(path)]
    codes = [np.frombuffer(text.encode(), np.uint8) for text in texts]
    copies = [
        rng.permutation(code).tobytes().decode()
        for _ in range(COPIES - 1)
        for code in codes
    ]
    return texts + copies


def databases(quick: bool) -> dict:
    """Name -> a function that makes the texts, from a generator of random numbers."""
    share = 1000 if quick else 1

    def log_normal(rng):
        lengths = np.exp(rng.normal(np.log(300), 0.7, 60000 // share)).astype(int)
        return random_texts(rng, np.clip(lengths, 10, 5500))

    made = {
        "384": lambda rng: random_texts(rng, np.full(270336 // share, 384)),
        "log-normal": log_normal,
    }
    return made if quick else made | {"real": real_texts}


def queries(rng, texts, quick: bool) -> list[tuple[str, str]]:
    """Random proteins, each with the beginning of a target in front."""
    made = []
    for k, text in enumerate(random_texts(rng, LENGTHS[:4] if quick else LENGTHS)):
        piece = texts[rng.integers(0, len(texts))][: min(PIECE, len(text))]
        made.append((f"q{k}", piece + text[len(piece) :]))
    return made


def row(name: str, texts, asked, peer: str | None, repeats: int) -> dict:
    """The figures of a database."""
    with tempfile.TemporaryDirectory() as folder:
        fasta, wanted = Path(folder, "database.fa"), Path(folder, "queries.fa")
        problems.write_fasta(fasta, [(f"t{k}", text) for k, text in enumerate(texts)])
        problems.write_fasta(wanted, asked)
        index = Path(folder, "database.jaxdb")
        jaxalign.index_database(fasta, index)
        held = jaxalign.open_database(index)

        def search(align_top=False):
            return jaxalign.search(asked, held, top=TOP, align_top=align_top)

        first, _, hits = measure.timed(search)
        seconds = measure.median_seconds(search, repeats)
        for _ in range(3):  # paths of some hits come without a compiler at first
            search(align_top=True)
        aligned = measure.median_seconds(lambda: search(align_top=True), repeats)
        cells = sum(len(text) for _, text in asked) * int(held.lengths.sum())
        found = {
            "database": name, "first": first, "seconds": seconds, "aligned": aligned,
            "TCUPS": cells / seconds / 1e12, "launches": hits.info["windows"],
        }  # fmt: skip
        if peer is None:
            return found
        peer_seconds, scores = beside(Path(peer), fasta, wanted, repeats)
        ours = [sorted(hits["score"][hits["query"] == q]) for q in range(len(asked))]
        differ = sum(a != sorted(b) for a, b in zip(ours, scores, strict=True))
    return found | {"peer": peer_seconds, "times as fast": peer_seconds / seconds,
                    "differ": differ}  # fmt: skip


def beside(peer: Path, fasta: Path, wanted: Path, repeats: int):
    """Seconds of CUDASW++4.0 for all queries, and the scores of each one's hits."""
    base = fasta.with_name("peer")
    subprocess.run([peer / "makedb", fasta, base], check=True, capture_output=True)
    command = [peer / "align", "--query", wanted, "--db", base, *PEER_OPTIONS]
    seconds, text = [], ""
    for _ in range(repeats):
        text = subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout
        seconds.append(float(re.findall(r"Total time: ([\d.]+) s", text)[-1]))
    blocks = re.split(r"Processing query \d+", text)[1:]
    scores = [[int(x) for x in re.findall(r"Score: (\d+)", block)] for block in blocks]
    return statistics.median(seconds), scores


def main() -> None:
    parser = measure.arguments(__doc__, "quick", "json", repeats=5, only="")
    parser.add_argument("--peer", metavar="FOLDER", help="programs of CUDASW++4.0")
    options = parser.parse_args()
    machine, rows = measure.machine(), []
    for name, make in databases(options.quick).items():
        if options.only in name:
            rng = np.random.default_rng(1)
            texts = make(rng)
            asked = queries(rng, texts, options.quick)
            rows.append(row(name, texts, asked, options.peer, options.repeats))
            measure.show(rows[-1:])
    measure.save(options.json, {"machine": machine, "rows": rows})


if __name__ == "__main__":
    main()
