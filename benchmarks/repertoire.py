"""Graphs of receptor repertoires: how long they take, beside scirpy's own.

    python -m benchmarks.repertoire                         # 10^5, on this machine
    python -m benchmarks.repertoire --jobs tcrdist --counts 100000 --scirpy PYTHON
    python -m benchmarks.repertoire --jobs levenshtein --counts 1000000
    python -m benchmarks.repertoire --counts 100000,1000000 --repeats 2     # a GPU
    python -m benchmarks.repertoire --counts 1000000 --devices 0 --devices all
    python -m benchmarks.repertoire --jobs levenshtein1 --counts 10000000 --stream
    python -m benchmarks.repertoire --quick                 # does it run?

    python -m benchmarks.repertoire --plot docs/images --sequences FILE

``--sequences FILE`` has a CDR3 a line (the first column), as ``olga-generate_sequences
--humanTRB`` writes them; without it they are drawn here, from ends of human beta chains
and random middles. ``--scirpy`` names a Python that has scirpy: it computes the same
sequences in a process of its own, and its matrix is compared with ours. It compiles
again at each call, about five CPU seconds. CPU seconds are those of all threads;
memory is the peak of the process.
"""

import json
import random
import subprocess
import tempfile
import zlib
from pathlib import Path

import measure
import numpy as np

import jaxalign

JOBS = {
    "tcrdist": {"metric": "tcrdist", "cutoff": 20},
    "hamming": {"metric": "hamming", "cutoff": 2},
    "levenshtein": {"metric": "levenshtein", "cutoff": 2},
    "levenshtein1": {"metric": "levenshtein", "cutoff": 1},
    "alignment": {"metric": "alignment", "cutoff": 10},
}
STARTS = "CASS CASSL CASSP CASSQ CASSE CASSF CASSY CSA CAT CAI".split()
ENDS = (
    "NTEAFF", "NYGYTF", "GNTIYF", "TNEKLFF", "NQPQHF", "NSPLHF", "YNEQFF", "NTGELFF",
    "TDTQYF", "KNIQYF", "QETQYF", "GANVLTF", "SYEQYF",
)  # fmt: skip
MIDDLE = "GGGGGRRTTSSSAAPPLLQQDDEVNWFYHIKM"
SCIRPY = """
import json, sys, time
import numpy as np
from scirpy.ir_dist.metrics import TCRdistDistanceCalculator
texts = open(sys.argv[1]).read().split()
calculator = TCRdistDistanceCalculator(20, n_jobs=int(sys.argv[2]))
calculator.calc_dist_mat(np.array(texts[:50]))
wall, before = time.perf_counter(), time.process_time()
matrix = calculator.calc_dist_mat(np.array(texts))
seconds = time.perf_counter() - wall, time.process_time() - before
np.savez(sys.argv[3], indptr=matrix.indptr, indices=matrix.indices, data=matrix.data)
print(json.dumps(seconds))
"""


def drawn(count: int, seed: int = 0) -> list[str]:
    """So many different sequences with the ends of human beta chains."""
    draw, known = random.Random(seed), {}
    while len(known) < count:
        end = draw.choice(ENDS)
        end = end[min(draw.choice((0, 0, 1, 2, 3)), len(end) - 3) :]
        middle = "".join(draw.choices(MIDDLE, k=draw.randint(1, 6)))
        known[draw.choice(STARTS) + middle + end] = None
    return [*known]


def sequences(path: str | None, count: int) -> list[str]:
    """The first so many different sequences of a file, or drawn ones."""
    if path is None:
        return drawn(count)
    with open(path) as lines:
        known = dict.fromkeys(line.split()[0] for line in lines if line.strip())
    if len(known) < count:
        raise SystemExit(f"{path}: {len(known):,} different sequences, not {count:,}")
    return [*known][:count]


def beside_scirpy(python: str, texts: list[str], graph, threads: int):
    """(wall, CPU seconds) of scirpy, whose matrix must be ours."""
    with tempfile.TemporaryDirectory() as folder:
        file, result = Path(folder) / "texts", Path(folder) / "matrix.npz"
        file.write_text("\n".join(texts))
        words = [python, "-W", "ignore", "-c", SCIRPY, str(file), str(threads)]
        text = subprocess.run(
            [*words, str(result)], check=True, capture_output=True, text=True
        )
        theirs, ours = np.load(result), graph.to_scirpy()
        for part in ("indptr", "indices", "data"):
            assert np.array_equal(theirs[part], getattr(ours, part)), part
    return json.loads(text.stdout.splitlines()[-1])


def draw_graph(texts: list[str], folder: str) -> None:
    """``repertoire.png``: receptors as points, edges up to TCRdist 20 as lines.

    Places are the two first eigenvectors of each cluster's graph, clusters in rows.
    """
    import matplotlib.pyplot as plt

    graph = jaxalign.repertoire_graph(texts, bad="drop")
    labels, counts = graph.labels, np.bincount(graph.labels)
    shown = [c for c in np.argsort(-counts, kind="stable") if counts[c] > 2][:12]
    figure, panels = plt.subplots(3, 4, figsize=(8, 6))
    for panel in panels.flat:
        panel.axis("off")
    for panel, cluster in zip(panels.flat, shown, strict=False):
        members = np.flatnonzero(labels == cluster)
        near = graph.matrix[members][:, members].tocoo()
        linked = np.zeros((len(members),) * 2)
        linked[near.coords] = 1
        values = np.diag(linked.sum(axis=1)) - linked
        places = np.linalg.eigh(values)[1][:, 1:3]
        for i, j in zip(*near.coords, strict=True):
            panel.plot(*places[[i, j]].T, color="0.7", lw=0.8, zorder=1)
        panel.scatter(*places.T, s=25 * graph.counts[members], zorder=2)
        panel.set_title(
            graph.receptors.rows.chains[0].cdr3[
                graph.receptors.first[members[linked.sum(axis=1).argmax()]]
            ],
            fontsize=8,
        )
    figure.tight_layout()
    figure.savefig(Path(folder) / "repertoire.png", dpi=100)


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "threads", "plot", repeats=1)
    words, numbers = measure.words, measure.numbers
    parser.add_argument("--jobs", type=words, default=["tcrdist", "levenshtein"])
    parser.add_argument("--counts", type=numbers, default=[100000])
    parser.add_argument("--sequences", metavar="FILE")
    parser.add_argument("--devices", action="append")
    parser.add_argument("--stream", action="store_true", help="edges by blocks")
    parser.add_argument("--scirpy", metavar="PYTHON")
    chosen = parser.parse_args(argv)
    if chosen.quick:
        chosen.jobs, chosen.counts = [*JOBS], [300]
    if chosen.plot:
        lines = Path(chosen.sequences).read_text().splitlines()
        draw_graph([line.split()[0] for line in lines if line.strip()], chosen.plot)
        return
    measure.machine()
    print("| job | sequences | devices | edges | wall s | CPU s | peak GiB | digest |")
    print("|---|---|---|---|---|---|---|---|")
    for job in chosen.jobs:
        for count in chosen.counts:
            texts = sequences(chosen.sequences, count)
            for devices in chosen.devices or [None]:
                report(job, texts, devices, chosen)


def report(job: str, texts: list[str], devices: str | None, chosen) -> None:
    options = JOBS[job] | {"threads": chosen.threads, "devices": devices}
    options["memory_budget"] = "12GiB"

    def call():
        if not chosen.stream:
            return jaxalign.repertoire_graph(texts, **options)
        blocks = jaxalign.stream_repertoire(texts, part_rows=2**18, **options)
        return sum(len(block.edges) for block in blocks)

    for _ in range(chosen.repeats):
        wall, cpu, found = measure.timed(call)
        peak = measure.peak_gib()
        edges, last = found, "by blocks"
        if not chosen.stream:  # the CRC of all edges
            sides = (np.ascontiguousarray(x, "<i4") for x in found.edges.sides)
            crc = zlib.crc32(b"".join(x.tobytes() for x in sides))
            edges, last = len(found.edges), f"{crc:08x}"
        cells = f"{edges:,} | {wall:.2f} | {cpu:.2f} | {peak:.2f}"
        named = devices or "default"
        print(f"| {job} | {len(texts):,} | {named} | {cells} | {last} |", flush=True)
    if chosen.scirpy and job == "tcrdist":
        seconds = beside_scirpy(chosen.scirpy, texts, found, chosen.threads or 2)
        cells = f"{seconds[0]:.2f} | {seconds[1]:.2f}"
        print(f"| scirpy | {len(texts):,} | | | {cells} | | the same matrix |")


if __name__ == "__main__":
    main()
