"""Edit distances: how fast, beside edlib and rapidfuzz where these are installed.

    python -m benchmarks.edits              # rates at several lengths, values compared
    python -m benchmarks.edits --count 100000 --cut 2    # peptides within a cut

A rate is that of one thread: cells of the tables of all pairs a second of its CPU time.
*Within a cut* is ``edit_distance_graph`` of random proteins of one length, whose pairs
are all compared; *pairs* is ``edit_distance`` of as many pairs, letters made into codes
included. edlib and rapidfuzz (``process.cpdist``) compute the same pairs one by one.
"""

from functools import partial
from importlib.util import find_spec

import measure
import numpy as np
import problems

import jaxalign
import kernels_pallas
from jaxalign.model.alphabet import encode_letters
from jaxalign.words.gpu import EditLaunches

LENGTHS = (15, 100, 300, 1000)
CELLS, PAIRS = 2e9, 10**5  # of a rate, at most
LEAST_SECONDS = 1.0  # that are measured
OTHERS = 5  # times fewer pairs of the other programs


def proteins(count: int, shortest: int, longest: int, seed: int = 1) -> list[str]:
    """Random proteins."""
    dice = np.random.default_rng(seed)
    lengths = dice.integers(shortest, longest + 1, count)
    return problems.random_texts(dice, lengths)


def seconds(call) -> float:
    """CPU seconds of a call after the first, of as many as take ``LEAST_SECONDS``:
    clocks of CPU time may count in hundredths of a second."""
    call()
    calls, taken = 0, 0.0
    while taken < LEAST_SECONDS:
        calls, taken = calls + 1, taken + measure.timed(call).cpu
    return taken / calls


def gpu_rates(length: int) -> tuple[float, float]:
    """Cells a second of a GPU, as many queries as a launch takes with 16,384 targets:
    the kernel and its match words alone, and the launches of ``edit_distance_graph``
    with what is within a cut on the host."""
    count = EditLaunches(encode_letters([])[0]).query_count(length)
    texts = proteins(count + 16384, length, length)
    launches, rows = EditLaunches(encode_letters(texts)[0]), np.arange(count)
    blocks = launches.blocks(np.arange(count, count + 16384))

    def kernel():
        return launches.distances(rows, blocks, slice(0, 16384)).block_until_ready()

    def whole():
        return launches.near(rows, blocks, 0, np.full(count, 16384), length // 3)

    found, some = np.asarray(kernel()), range(100)
    sides = [texts[k] for k in some], [texts[count + 11 * k] for k in some]
    want = jaxalign.edit_distance(*sides)
    np.testing.assert_array_equal([found[k, 11 * k] for k in some], want)
    cells = count * 16384 * length**2
    return cells / measure.median_seconds(kernel), cells / measure.median_seconds(whole)


def others(queries, targets) -> dict:
    """What else there is: name -> function without arguments -> distances."""
    found = {}
    if find_spec("edlib"):
        import edlib  # pyright: ignore[reportMissingImports]

        found["edlib"] = lambda: [
            edlib.align(a, b)["editDistance"]
            for a, b in zip(queries, targets, strict=True)
        ]
    if find_spec("rapidfuzz"):
        import rapidfuzz  # pyright: ignore[reportMissingImports]

        scorer = rapidfuzz.distance.Levenshtein.distance
        found["rapidfuzz"] = lambda: rapidfuzz.process.cpdist(
            queries, targets, scorer=scorer
        )
    return found


def rates() -> None:
    """Print cells a second at several lengths."""
    for length in LENGTHS[1:] if kernels_pallas.supported()[0] else ():
        kernel, whole = gpu_rates(length)
        print(f"{length:5} residues, GPU: kernel {kernel / 1e12:.1f} TCUPS, "
              f"with the pairs within a cut {whole / 1e12:.1f}")  # fmt: skip
    for length in LENGTHS:
        many = min(int(CELLS / length**2), PAIRS)
        pairs = proteins(many, length, length), proteins(many, length, length, 2)
        count = 2000 if length > 99 else 10000
        some = proteins(count, length, length)
        graph = partial(jaxalign.edit_distance_graph, some, max_distance=2, threads=1)
        rate = count * (count - 1) / 2 * length**2 / seconds(graph)
        print(f"{length:5} residues: within a cut {rate / 1e9:.1f} GCUPS")
        taken = seconds(lambda: jaxalign.edit_distance(*pairs, threads=1))  # noqa: B023
        print(f"{'':5} {many:,} pairs {many * length**2 / taken / 1e9:.1f}")
        few = [side[: many // OTHERS] for side in pairs]
        want = jaxalign.edit_distance(*few)
        for name, call in others(*few).items():
            np.testing.assert_array_equal(np.asarray(call(), np.int64), want)
            rate = len(few[0]) * length**2 / seconds(call)
            print(f"{'':5} {name} {rate / 1e9:.1f}, the same distances")


def peptides(count: int, cut: int) -> None:
    """Print the seconds of all pairs of peptides of 10 to 20 residues."""
    some = proteins(count, 10, 20)
    call = partial(jaxalign.edit_distance_graph, some, max_distance=cut)
    for _ in range(2):
        taken, _, graph = measure.timed(call)
        print(f"{count:,} peptides, distance {cut}: {graph.nnz // 2:,} pairs, "
              f"{taken:.1f} s")  # fmt: skip


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--count", type=int)
    parser.add_argument("--cut", type=int, default=2)
    options = parser.parse_args()
    if options.count:
        peptides(options.count, options.cut)
    else:
        rates()


if __name__ == "__main__":
    main()
