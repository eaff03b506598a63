"""Rows of ``benchmarks.scale`` about who computes what: schedules, a cluster."""

import time

import numpy as np
from pairs import scale_rows

# LPT ----------------------------------------------------------------------------------


def lpt(options) -> list[dict]:
    """Windows of a set of mixed lengths, timed one by one, then dealt two ways."""
    import jaxalign

    sequences = scale_rows.proteins(options.count or 1200)
    seconds, cells = _timed_windows(jaxalign, sequences)
    report = []
    for count in (2, 4, 8):
        pulled, static = makespans(cells, seconds, count)
        report.append({
            "devices": count, "windows": len(seconds), "proteins": len(sequences),
            "total s": sum(seconds), "share s": sum(seconds) / count,
            "LPT s": pulled, "static s": static, "static/LPT": static / pulled,
            "LPT/least": pulled / max(sum(seconds) / count, max(seconds)),
        })  # fmt: skip
    return report


def _timed_windows(jaxalign, sequences):
    """Seconds and estimated cells of every window, in the order of the pair matrix."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs import engine
    from jaxalign.pairs.options import PairOptions, make_task

    options = {"mode": "local", "output": "score", "threads": 1, "window": 64}
    task = make_task("all", sequences, sequences, Scoring(), PairOptions(**options))
    plan = engine.plan(task)
    engine.run(plan)  # compiles
    ends = [time.perf_counter()]
    engine.run(plan, lambda *_: ends.append(time.perf_counter()))
    seconds = np.diff(ends)
    cells = np.array([piece.cells for piece in plan.pieces])
    windows = [piece.content for piece in plan.pieces]
    first = [int(np.min(window.targets)) for window in windows]
    order = np.lexsort(([int(np.min(w.queries)) for w in windows], first))
    return seconds[: len(windows)][order].tolist(), cells[order].tolist()


def makespans(cells, seconds, count: int) -> tuple[float, float]:
    """When the last device ends: heaviest first to whoever is idle; equal shares of
    the windows as they come."""
    from jaxalign.pairs import pair_matrix

    idle = [0.0] * count
    for k in pair_matrix.heaviest_first(cells):
        idle[int(np.argmin(idle))] += seconds[k]
    shares = np.array_split(np.asarray(seconds), count)
    return max(idle), max(float(share.sum()) for share in shares)


# Ray ----------------------------------------------------------------------------------


def ray(options) -> list[dict]:
    """Two local nodes of one core each, against one process with both cores."""
    from ray.cluster_utils import Cluster

    import jaxalign

    chosen = {"mode": "local", "output": "score"}
    count = options.count or _of_seconds(jaxalign, options, chosen)
    sequences = scale_rows.proteins(count)
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        there = chosen | {"cluster": cluster.address}
        calls = {"one process, 2 threads": chosen | {"threads": 2}, "Ray": there}
        rows = [_row(jaxalign, name, sequences, how) for name, how in calls.items()]
    finally:
        import ray as own

        own.shutdown()
        cluster.shutdown()
    for row in rows:
        row["overhead"] = row["seconds"] / rows[0]["seconds"] - 1
    return rows


def _of_seconds(jaxalign, options, chosen) -> int:
    """The number of proteins that keep two cores busy for ``--seconds``."""
    for _ in range(2):
        table = jaxalign.align_all(scale_rows.proteins(900), threads=2, **chosen)
    rate = table.info["cells"] / table.info["seconds"]
    mean = float(scale_rows.proteins().lengths.mean())
    return int(np.sqrt(2 * rate * options.seconds) / mean) + 2


def _row(jaxalign, name, sequences, how) -> dict:
    """The second of two runs: each worker compiles in the first."""
    taken = []
    for _ in range(2):
        begin = time.perf_counter()
        table = jaxalign.align_all(sequences, **how)
        taken.append(time.perf_counter() - begin)
    parts = table.info.get("parts", 1)
    return {"run": name, "proteins": len(sequences), "parts": parts,
            "seconds": taken[1], "first": taken[0],
            "GCUPS": table.info["cells"] / taken[1] / 1e9,
            "sum of scores": int(table["score"].sum(dtype=np.int64))}  # fmt: skip
