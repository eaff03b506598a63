"""The verbs of linked sequences on large sets and several devices.

    python -m benchmarks.homology_scale                          # what the machine has
    python -m benchmarks.homology_scale --counts 1,4,8 --proteins 100000,300000
    python -m benchmarks.homology_scale --verbs cluster --proteins 575000 --counts 1
    python -m benchmarks.homology_scale --quick                  # does it run?

``cluster`` finds the components of a set at 0.4 over the longer length, ``audit``
compares a fifth of the set with the rest, and ``dedup`` finds greedy clusters at 0.9.
The proteins are those of ``fetch.py``; more than there are come again, ``--relatives``
of them with some of their residues replaced and the others shuffled, so that links grow
with the set as those of a database do.
A row is a call in the process of all rows: the first one of each count of devices
compiles, and ``--repeats 2`` has a row without. Results must not depend on the number
of devices: ``digest`` is of the labels, or of the leaks and worst pairs. Other
processes see programs that are compiled already: ``JAXALIGN_CACHE_DIR=off`` has none.
"""

import argparse
import hashlib
import resource
import sys
import time

import measure
import numpy as np
import scale

CUT, DEDUP_CUT = 0.4, 0.9
TEST_SHARE = 5  # every fifth sequence is in the second part of an audit
REPLACED = 0.1, 0.8  # shares of residues that a relative has replaced


def proteins(count: int, relatives: float, seed: int = 0):
    """So many proteins: real ones, then relatives and shuffled copies of these."""
    from jaxalign.model.alphabet import from_parts

    real = scale.proteins()
    dice = np.random.default_rng(seed)
    order = dice.permutation(len(real))
    parts = [real[k] for k in order[:count]]
    while len(parts) < count:
        one = parts[len(parts) - len(real)]
        if dice.random() < relatives:
            parts.append(_relative(one, dice))
        else:
            parts.append(dice.permutation(one))
    return from_parts([f"p{k}" for k in range(count)], parts, real.alphabet)


def _relative(codes, dice):
    """A copy of a protein in which a random share of the residues is replaced."""
    replaced = dice.random(len(codes)) < dice.uniform(*REPLACED)
    return np.where(replaced, dice.permutation(codes), codes)


def cluster(sequences, devices) -> dict:
    """Components of a set."""
    import jaxalign

    found = jaxalign.cluster(sequences, min_identity=CUT, devices=devices)
    return _row_of(found, found.labels)


def audit(sequences, devices) -> dict:
    """A fifth of a set against the rest."""
    import jaxalign

    number = np.arange(len(sequences))
    test = number % TEST_SHARE == 0
    parts = {
        "train": sequences.take(number[~test]),
        "test": sequences.take(number[test]),
    }
    found = jaxalign.audit(parts, max_identity=CUT, devices=devices)
    worst = found.worst["query"].astype(str), found.worst["target"].astype(str)
    return {
        "pairs": found.info["all"],
        "aligned": found.info["aligned"],
        "found": found.leaks,
        "clusters": "-",
        "digest": _digest(np.concatenate([*found.leaking]), *worst),
    }


def dedup(sequences, devices) -> dict:
    """Greedy clusters."""
    import jaxalign

    found = jaxalign.deduplicate(sequences, min_identity=DEDUP_CUT, devices=devices)
    return _row_of(found, found.representative_of)


def _row_of(found, members) -> dict:
    """What a row says of clusters."""
    return {
        "pairs": found.info["all"],
        "aligned": found.info["aligned"],
        "found": found.info["at_or_above_cut"],
        "clusters": len(found.representatives),
        "digest": _digest(members),
    }


VERBS = {"cluster": cluster, "audit": audit, "dedup": dedup}


def _digest(*arrays) -> str:
    """Short, of the bytes of some arrays."""
    whole = hashlib.sha256()
    for array in arrays:
        whole.update(np.ascontiguousarray(array).tobytes())
    return whole.hexdigest()[:8]


def rows(options) -> list[dict]:
    """A row for each number of proteins, verb, number of devices, and repeat."""
    import jax

    there = [count for count in options.counts if count <= len(jax.devices())]
    report: list[dict] = []
    for count in options.proteins:
        sequences = proteins(count, options.relatives)
        for verb in options.verbs.split(","):
            alone: dict[int, float] = {}
            for number in there:
                for call in range(1, options.repeats + 1):
                    row = _timed(verb, sequences, number)
                    first = alone.setdefault(call, row["seconds"])
                    row |= {"call": call, "speed-up": first / row["seconds"]}
                    print(row, flush=True)  # a run cut off has something
                    report.append(row)
                if options.trace:
                    _trace(verb, sequences, number)
    return report


def _timed(verb: str, sequences, number: int) -> dict:
    """The row of a call on some devices."""
    began = time.perf_counter(), time.process_time()
    found = VERBS[verb](sequences, _devices(number))
    seconds = time.perf_counter() - began[0]
    busy = time.process_time() - began[1]
    return {
        "verb": verb, "proteins": len(sequences), "devices": number,
        "seconds": seconds, "CPU s": busy, **found, "host GiB": _most(),
    }  # fmt: skip


def _trace(verb: str, sequences, number: int) -> None:
    """Print the kernel seconds of a call, of each device and of the largest."""
    import gpu

    found = gpu.traced(lambda: VERBS[verb](sequences, _devices(number)))
    print({x: found.get(x) for x in ("by_device", "copy_seconds", "largest")})


def _devices(number: int) -> list[int] | None:
    return list(range(number)) if number > 1 else None


def _most() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--verbs", default="cluster,audit")
    made.add_argument("--proteins", type=_numbers, default=[100_000, 300_000])
    made.add_argument(
        "--counts", type=_numbers, default=[1, 2, 4, 8], help="of devices"
    )
    made.add_argument("--relatives", type=float, default=0.0, help="share of copies")
    made.add_argument("--repeats", type=int, default=1, help="of each call")
    made.add_argument("--trace", action="store_true", help="kernels of one more call")
    made.add_argument("--quick", action="store_true", help="too small for figures")
    made.add_argument("--json", metavar="PATH", help="write the rows here too")
    return made


def _numbers(text: str) -> list[int]:
    """ "1,2,4" -> [1, 2, 4]."""
    return [int(word) for word in text.split(",")]


def main(argv=None) -> None:
    """Command line."""
    options = parser().parse_args(argv)
    if options.quick:
        options.proteins = [100]
    made = rows(options)
    measure.show(made)
    found = measure.machine()
    measure.show_machine(found)
    measure.save(
        options.json, {"command": sys.argv[1:], "machine": found, "rows": made}
    )


if __name__ == "__main__":
    main()
