"""One long pair on a GPU: ``python -m benchmarks.long --seconds 140``.

Checks scores, end cells and paths against NumPy's, and measures scores of random DNA,
of nearly equal DNA (2 % substitutions, indels, an inversion), and paths. Prints a line
a step as soon as it is known; steps that fail or have no time left say so.

``--only forms`` compares values of 16 bits with int32, ``--only proof`` 20 pairs of
10⁵ letters with the CPU's way and one of 2 · 10⁵ with edlib's distance, and
``--devices 2`` scores by one device and by two; each prints nothing else.
"""

import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product

import fuzz_oracle
import jax
import measure
import numpy as np
from fuzz_oracle import ENDS, Problem

import kernels_pallas
from jaxalign.affine import Gaps
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.long import align, pruning
from jaxalign.pairs.long.align import Halves
from jaxalign.pairs.long.blocks import NO_BOUND, LongPair, whole
from jaxalign.pairs.long.fill import arrays_of, fill_by_tiles, fill_on_gpu, sizes_of
from jaxalign.runtime.pipeline import default_threads

LETTERS = 4
COSTS = 1, -3, 5, 2  # match, mismatch and gaps, as CUDAlign and MASA have them
UNIT_COSTS = 0, -1, 1, 1  # the score is minus the Levenshtein distance


def pair_of(query, target, mode="global", free=(), costs=COSTS) -> LongPair:
    """A pair of DNA."""
    match, mismatch, gap_open, gap_extend = costs
    scores = np.full((LETTERS, LETTERS), mismatch, np.int32)
    np.fill_diagonal(scores, match)
    free = frozenset(ENDS if mode == "semiglobal" else free)
    problem = WindowProblem(
        scores.astype(np.int8),
        Gaps(np.int32(gap_open), np.int32(gap_extend)),
        {end: np.asarray(end in free) for end in ENDS},
        np.int32(LETTERS),
    )
    gaps = gap_open, gap_extend
    return LongPair(query, target, scores, *gaps, free, mode == "local", problem)


def random_dna(rng, length):
    return rng.integers(0, LETTERS, length, dtype=np.uint8)


def evolved(rng, query, divergence=0.02, inversion=0.01):
    """A copy with substitutions, a tenth as many indels of 1 to 30 letters, and a part
    turned round."""
    copy = query.copy()
    at = rng.integers(0, len(copy), int(divergence * len(copy)))
    copy[at] = (copy[at] + rng.integers(1, LETTERS, len(at))) % LETTERS
    size = int(inversion * len(copy))
    start = len(copy) // 3
    copy[start : start + size] = 3 - copy[start : start + size][::-1]
    cuts = np.sort(rng.integers(0, len(copy), int(divergence * len(copy) / 10)))
    pieces, last = [], 0
    for cut in cuts.tolist():
        length = int(rng.integers(1, 31))
        if rng.random() < 0.5:
            pieces.append(copy[last : max(cut - length, last)])
        else:
            pieces += [copy[last:cut], random_dna(rng, length)]
        last = max(cut, last)
    return np.concatenate([*pieces, copy[last:]])


def rescored(pair: LongPair, result) -> int:
    """The score of a path, from its letters and gaps alone."""
    steps = result.steps
    i = result.start_i + np.cumsum(steps != 2)[steps == 0] - 1
    j = result.start_j + np.cumsum(steps != 1)[steps == 0] - 1
    paired = int(pair.scores[pair.query[i], pair.target[j]].sum())
    turns = np.flatnonzero(np.diff(steps, prepend=255))
    lengths = np.diff(np.append(turns, len(steps)))
    gaps = lengths[steps[turns] != 0]
    cost = int((pair.open + pair.extend * (gaps - 1)).sum())
    return paired - cost


class Clock:
    """What time is left, and a line a step."""

    def __init__(self, seconds: float):
        self.began, self.seconds = time.perf_counter(), seconds

    @property
    def left(self) -> float:
        return self.seconds - (time.perf_counter() - self.began)

    def step(self, name: str, needed: float, run) -> None:
        if self.left < needed:
            print(f"{name}: left out, {self.left:.0f} s left", flush=True)
            return

        def line():
            try:
                return run()
            except Exception as error:  # the next step may work
                traceback.print_exc(limit=4)
                return f"FAILED {type(error).__name__}: {error}"

        spent, _, text = measure.timed(line)
        print(f"{name}: {text} [{spent:.2f} s in all]", flush=True)


def kernel_seconds(pair, bound=NO_BOUND, rows=None, steps=None):
    """Seconds of the program alone, its arrays on the device: the best of two."""
    sizes = sizes_of(pair, whole(pair), kernels_pallas, False, rows, steps)
    arrays, segment = arrays_of(pair, whole(pair), bound, kernels_pallas, sizes)
    arrays, scores = jax.device_put((arrays, pair.scores))
    segments = -(-sizes.shape.chunks // segment)
    run = partial(kernels_pallas.long_block, arrays, scores, sizes.shape, segments)
    return best_of(run, sizes, 3, first=1)[:2]


def best_of(run, sizes, repeats: int, first: int = 0):
    """(the least seconds of some runs from ``first`` on, the part of cells that was
    computed, lines)."""

    def call():
        lines = run()
        return lines, np.asarray(lines.computed, np.int64)[: sizes.bands]

    seconds = []
    for _ in range(repeats):
        spent, _, (lines, chunks) = measure.timed(call)
        seconds.append(spent)
    computed = float(chunks.sum()) / (sizes.bands * sizes.chunks)
    return min(seconds[first:]), computed, lines


PROGRAMS: dict = {}  # compiled, by their static arguments


@dataclass(frozen=True)
class FormRun:
    """A fill of a whole pair by values of 16 bits or int32, compiled."""

    pair: LongPair
    packed: bool
    rows: int = 16
    steps: int = 64
    bound: int = NO_BOUND

    def program(self):
        """The program with its arrays on the device, and the sizes of the launch."""
        pair, block = self.pair, whole(self.pair)
        sizes = sizes_of(
            pair, block, kernels_pallas, False, self.rows, self.steps, None, self.packed
        )
        arrays, segment = arrays_of(pair, block, self.bound, kernels_pallas, sizes)
        given = jax.device_put((arrays, pair.scores))
        static = sizes.shape, -(-sizes.shape.chunks // segment)
        if static not in PROGRAMS:
            lowered = kernels_pallas.long_block.lower(*given, *static)
            PROGRAMS[static] = lowered.compile()
        return partial(PROGRAMS[static], *given), sizes

    def seconds(self, repeats: int):
        """(the least seconds of some runs, the part of cells that was computed, bands
        that left the range of 16 bits, H of column n, the best)."""
        run, sizes = self.program()
        seconds, computed, lines = best_of(run, sizes, repeats)
        column = np.asarray(lines.columns[0, 0])[: self.pair.m]
        lost = int(np.asarray(lines.lost)[: sizes.bands].astype(bool).sum())
        return seconds, computed, lost, column, int(np.asarray(lines.best).max())


def noting(fill):
    """A fill that notes its calls, and the list of them: seconds and cells."""
    runs = []

    def noted(*args, **options):
        seconds, _, grid = measure.timed(partial(fill, *args, **options))
        runs.append((seconds, grid.cells))
        return grid

    return noted, runs


FORMS = (True, 32), (True, 16), (False, 16)  # 16 bits or not, rows of a lane


def compare_forms(pair: LongPair, repeats: int, forms=FORMS, **sizes) -> str:
    """Seconds of each form, and whether its values are those of the last one."""
    runs = [FormRun(pair, *form, **sizes).seconds(repeats) for form in forms]
    *_, right, best = runs[-1]
    parts = []
    for (packed, rows), run in zip(forms, runs, strict=True):
        seconds, computed, lost, column, highest = run
        equal = (column == right).all() and highest == best
        said = f"{'EQUAL' if equal else 'DIFFERENT'}, {lost} bands left the range"
        name = f"int{16 if packed else 32} K={rows}"
        parts.append(f"{name} {rate(pair, seconds, computed)}, {said}")
    return "; ".join(parts)


def rate(pair, seconds, computed=None):
    line = f"{seconds:.3f} s, {pair.m * pair.n / seconds / 1e12:.3f} TCUPS"
    return line if computed is None else f"{line}, computed {computed:.4f}"


def score_by(devices, pair, fill):
    """The score of a pair, its bound too, by one device or by halves on two."""
    if len(devices) == 1:
        with jax.default_device(devices[0]):
            return align.align(pair, fill, False).score
    halves = Halves(pair)

    def half(number):
        with jax.default_device(devices[number]):
            return halves.fill(number, fill)

    with ThreadPoolExecutor(2) as pool:
        return next(score for score in pool.map(half, (0, 1)) if score is not None)


def compare_devices(clock: Clock, rng, length: int, fill) -> None:
    """Scores by one device and by two."""
    genome = random_dna(rng, length)
    size = f"{length / 1e6:.1f} M"
    targets = {"random": random_dna(rng, length), "evolved": evolved(rng, genome)}
    for mode in ("global", "local"):
        for kind, target in targets.items():
            pair = pair_of(genome, target, mode)
            scores = []
            for count in (1, 2):
                run = partial(_timed, scores, jax.devices()[:count], pair, fill)
                needed = 2.5 * length**2 / 1e12 / count
                name = f"{size} x {kind}, {mode} score, devices {count}"
                clock.step(name, needed, run)


PROVEN_MODES = (
    ("global", ()),
    ("local", ()),
    ("semiglobal", ()),
    ("global", ("query_start", "target_end")),
    ("global", ("target_start", "target_end")),
)


def compare_ways(clock: Clock, rng, length: int, fill) -> None:
    """Pairs in all modes, random and near, long and short, by a GPU and by the CPU's
    way; and a distance beside edlib's."""
    cpu = jax.devices("cpu")[0]

    def by_cpu(pair):
        with jax.default_device(cpu):
            return align.align(pair, partial(fill_by_tiles, lines=16), True)

    cases = []
    for (mode, free), near in product(PROVEN_MODES, (True, False)):
        for m, n in ((length, length * 9 // 10), (length * 4 // 5, length)):
            query = random_dna(rng, m)
            target = evolved(rng, query, 0.08) if near else random_dna(rng, n)
            name = f"{mode} {' '.join(free)} {'near' if near else 'random'}"
            cases.append((name, pair_of(query, target[:n], mode, free)))
    with ThreadPoolExecutor(default_threads()) as pool:
        right = [pool.submit(by_cpu, pair) for _, pair in cases]
        runs = [measure.timed(align.align, pair, fill, True) for _, pair in cases]
        for (name, pair), future, run in zip(cases, right, runs, strict=True):
            step = partial(_equal, pair, future, run)
            clock.step(f"{name}, {pair.m} x {pair.n}", 0, step)
    query = random_dna(rng, 2 * length)
    for name, target in (
        ("near", evolved(rng, query)),
        ("random", random_dna(rng, 2 * length - 77)),
    ):
        run = partial(_beside_edlib, query, target, fill)
        clock.step(f"unit costs, {2 * length} x {len(target)} {name}", 30, run)


def _equal(pair, future, run):
    want, result = future.result(), run.result
    same = result[:9] == want[:9] and (result.steps == want.steps).all()
    scored = rescored(pair, result)
    said = "EQUAL" if same and scored == want.score else f"DIFFERENT {want[:9]}"
    return f"{said} {result[:5]}, rescored {scored}, {run.seconds:.2f} s"


def _beside_edlib(query, target, fill):
    import edlib  # pyright: ignore[reportMissingImports]

    pair = pair_of(query, target, costs=UNIT_COSTS)
    seconds, _, result = measure.timed(align.align, pair, fill, True)
    letters = [(x + 65).tobytes().decode() for x in (query, target)]
    peer, _, found = measure.timed(partial(edlib.align, *letters, task="distance"))
    distance = found["editDistance"]
    same = -result.score == distance == -rescored(pair, result)
    said = "EQUAL" if same else f"DIFFERENT {distance}"
    line = f"{said} {result.score}, score and path in {seconds:.2f} s"
    return f"{line}, edlib's distance {peer:.2f} s"


def _timed(scores, devices, pair, fill):
    first, second = (measure.timed(score_by, devices, pair, fill) for _ in range(2))
    scores += [first.result, second.result]
    chain = measure.timed(pruning.first_bound, pair).seconds
    same = "equal" if len(set(scores)) == 1 else f"DIFFERENT {scores}"
    line = f"score {scores[-1]}, {same}; first {first.seconds:.2f} s, then"
    return f"{line} {rate(pair, second.seconds)}; of it {chain:.2f} s the chain"


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--length", type=int, default=4_600_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, choices=(1, 2), default=1)
    parser.add_argument("--only", choices=("forms", "proof"))
    options = parser.parse_args()
    rng, clock = np.random.default_rng(options.seed), Clock(options.seconds)
    print(jax.__version__, jax.devices(), flush=True)
    fill = partial(fill_on_gpu, kernels=kernels_pallas)
    if options.only == "proof":
        compare_ways(clock, rng, min(options.length, 10**5), fill)
        return
    if options.devices == 2:
        compare_devices(clock, rng, options.length, fill)
        return

    def check(mode, free, near, m, n, **sizes):
        def run():
            query = random_dna(rng, m)
            target = evolved(rng, query, 0.05) if near else random_dna(rng, n)
            pair = pair_of(query, target[:n], mode, free)
            costs = pair.scores, pair.open, pair.extend, pair.local, pair.free
            score, cell = fuzz_oracle.best(query, pair.target, Problem(*costs))
            want = score, *cell
            answers = []
            for pruned in (True, False):
                result = align.align(pair, partial(fill, **sizes), True, pruned)
                end = result.score, result.end_i, result.end_j
                scored = rescored(pair, result)
                answers.append((result[:9], result.steps.tobytes()))
                if end != want or scored != want[0]:
                    return f"WRONG {end} rescored {scored}, right is {want}"
            same = "equal" if answers[0] == answers[1] else "DIFFERENT"
            return f"right {want}, pruned {same}"

        return run

    genome = random_dna(rng, options.length)
    other, copy = random_dna(rng, options.length), evolved(rng, genome)
    if options.only == "forms":
        _forms(clock, check, genome, other, copy)
        return

    few = [("global", ()), ("local", ()), ("semiglobal", ()),
           ("global", ("query_start", "target_end"))]  # fmt: skip
    for mode, free in few:
        name = f"check {mode} {' '.join(free)}".strip()
        clock.step(f"{name}, near", 10, check(mode, free, True, 9_000, 8_800))
        clock.step(f"{name}, random", 10, check(mode, free, False, 8_900, 8_700))

    best = {"rows": 16, "steps": 64}
    rates: dict = {}

    def tried(m, n, rows, steps, mode="global"):
        def run():
            pair = pair_of(random_dna(rng, m), random_dna(rng, n), mode)
            seconds, computed = kernel_seconds(pair, rows=rows, steps=steps)
            if m >= 10**6:
                rates[rows, steps] = seconds
            return rate(pair, seconds, computed)

        return run

    for rows, steps in ((8, 32), (8, 64), (16, 32)):
        name = f"50 k x 100 k, K={rows} S={steps}"
        clock.step(name, 8, tried(50_000, 100_000, rows, steps))
    for rows, steps in ((16, 64), (8, 64), (32, 64), (16, 128)):
        name = f"1 M x 1 M, K={rows} S={steps}"
        clock.step(name, 10, tried(10**6, 10**6, rows, steps))
    if rates:
        best = dict(zip(("rows", "steps"), min(rates, key=rates.get), strict=True))
    step = tried(10**6, 10**6, *best.values(), "local")
    clock.step(f"1 M x 1 M local, {best}", 10, step)
    length = options.length

    def score_of(target, mode, rows=None, steps=None):
        def run():
            sizes = {"rows": rows, "steps": steps} if rows else best
            pair = pair_of(genome, target, mode)
            noted, runs = noting(partial(fill, **sizes))
            chained, _, bound = measure.timed(pruning.first_bound, pair)
            seconds, _, result = measure.timed(align.align, pair, noted, False)
            parts = [f"{x:.2f} s of {cells / pair.m / pair.n:.3f}" for x, cells in runs]
            chain = f"chain {bound} in {chained:.2f} s"
            line = f"score {result.score}, {chain}: {rate(pair, seconds)}"
            return f"{line}; {', '.join(parts)}"

        return run

    size = f"{length / 1e6:.1f} M"
    clock.step(f"{size} x evolved, global score", 25, score_of(copy, "global"))
    for rows, steps in ((32, 64), (32, 32), (16, 32), (8, 32)):
        name = f"{size} x evolved, K={rows} S={steps}"
        clock.step(name, 12, score_of(copy, "global", rows, steps))
    clock.step(f"{size} x {size} random, global score", 25, score_of(other, "global"))

    def path_of(m):
        def run():
            query = genome[:m]
            pair = pair_of(query, evolved(rng, query), "global")
            noted, runs = noting(fill)
            call = partial(align.align, pair, noted, True, threads=default_threads())
            seconds, _, result = measure.timed(call)
            spent = [x for x, _ in runs]
            scored = rescored(pair, result)
            inner = f"{len(spent) - 1} more in {sum(spent[1:]):.2f} s"
            line = f"score {result.score}, rescored {scored}, {seconds:.2f} s"
            return f"{line}; first fill {spent[0]:.2f} s, {inner}"

        return run

    clock.step("100 k x evolved, path", 10, path_of(100_000))
    clock.step("1 M x evolved, path", 25, path_of(10**6))
    clock.step(f"{size} x evolved, path", 30, path_of(length))
    clock.step(f"{size} x {size} random, local score", 25, score_of(other, "local"))


def _forms(clock: Clock, check, genome, other, copy) -> None:
    """Values of 16 bits beside int32: kernels, and whole calls against Numba."""

    def forms(size, target, mode, repeats, **options):
        pair = pair_of(genome[:size], target[:size], mode)
        return partial(compare_forms, pair, repeats, **options)

    for name, target in (("random", other), ("evolved", copy)):
        for mode in ("global", "local"):
            label = f"1 M x 1 M {name}, {mode}"
            clock.step(label, 15, forms(10**6, target, mode, 2))
    size = f"{len(genome) / 1e6:.1f} M"

    def call(target, mode):
        def run():
            pair = pair_of(genome, target, mode)
            fill = partial(fill_on_gpu, kernels=kernels_pallas)
            seconds, _, result = measure.timed(align.align, pair, fill, False)
            return f"score {result.score}, {rate(pair, seconds)}"

        return run

    for mode in ("global", "local"):
        label = f"{size} random, {mode}"
        clock.step(label, 30, forms(len(genome), other, mode, 1))
        for name, target in (("random", other), ("evolved", copy)):
            label = f"{size} {name}, {mode} score, whole call"
            clock.step(label, 10, call(target, mode))
    sizes = {"rows": 8, "steps": 64, "packed": True}
    for mode, near in product(("global", "local", "semiglobal"), (True, False)):
        label = f"check {mode}, {'near' if near else 'random'}, int16"
        clock.step(label, 5, check(mode, (), near, 9_000, 8_800, **sizes))


if __name__ == "__main__":
    main()
