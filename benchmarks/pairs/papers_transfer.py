"""X3.1 and X3.2: many pairs at once, length 2000, linear gap.

X3.1 moves what each design moves and computes nothing. *naive* (the GPU code that the
paper improves on) sends, for every pair, an N x M matrix of substitution scores and an
(N+1) x (M+1) matrix with its borders filled, and fetches that matrix back; *paper*
sends letters, lengths and the small table and fetches the matrix; *jaxalign* sends the
same and fetches a score a pair. On the CPU device the times are those of copies in
memory (aliasing is off), so only the bytes carry over to a GPU.
"""

from concurrent.futures import ThreadPoolExecutor

import measure
import numpy as np
import problems

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
        for _ in range(1 if small else pairs):
            _fetch(result)

    return move


def _fetch(result) -> np.ndarray:
    """Device -> host of a fresh copy, because a JAX array keeps what was once read.

    On a GPU the copy costs a hundredth of the transfer; on the CPU it is the transfer,
    as reading is then a view.
    """
    return np.asarray(result.copy())


def many_pairs(options) -> list[dict]:
    """X3.2: GCUPS of one call on k pairs, score only and with the path."""
    counts = PAIRS_QUICK if options.quick else PAIRS
    whole = problems.exact_length(LENGTH, 2 * max(counts))
    rows = []
    for pairs in counts:
        queries, targets = whole.texts[:pairs], whole.texts[-pairs:]
        timed = measure.in_turns(_callers(queries, targets, options), options.repeats)
        cells = pairs * LENGTH * LENGTH
        speeds = {k: measure.gcups(cells, t["seconds"]) for k, t in timed.items()}
        row = {"pairs": pairs} | {f"{k} GCUPS": v for k, v in speeds.items()}
        ours, theirs = timed["jaxalign score"], timed["parasail score"]
        differ = np.asarray(ours["result"]["score"]) != np.array(theirs["result"])
        rows.append(row | {"differ": int(differ.sum())})
    return rows


def _callers(queries, targets, options) -> dict:
    """jaxalign and parasail, score only and with the path."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.api import align_pairs

    linear = Scoring("BLOSUM62", GAP, GAP)

    def ours(output: str):
        shared = {"mode": "global", "output": output, "threads": options.threads}
        return lambda: align_pairs(list(queries), list(targets), linear, **shared)

    def theirs(path: bool):
        return lambda: parasail_pairs(queries, targets, path, options.threads)

    return {
        "jaxalign score": ours("score"),
        "jaxalign path": ours("alignment"),
        "parasail score": theirs(False),
        "parasail path": theirs(True),
    }


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
