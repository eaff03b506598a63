"""Tables 1 and 2 of Li, Ranka and Sahni, and their sweep over s and h, on this machine.

    python benchmarks/papers_three.py X2.1 --quick
    python benchmarks/papers_three.py X2.1 X2.2 X2.3 --json three.json
    python benchmarks/papers_three.py X2.2 --schedules sloped --ways bt1 --sizes 4 5

X2.1   seconds and cells per second of the score: sloped, layered, five sizes; beside
       them a plain triple loop compiled by numba on one core, if that is installed
X2.2   seconds of phase 1, phase 3 and in all, and bytes: bt1, bt2, bt3 under both
       schedules, beside what is chosen when nothing is asked for
X2.3   bt3 against s and h at the third size
With --cubes X2.2 and X2.3 also measure chunks that are cut along the third axis.

Linear gaps of 4 with BLOSUM62; the second size is that of a real family, the others are
related sequences drawn at random: the time of a fill does not depend on the letters.
Cells are (n0 + 1)(n1 + 1)(n2 + 1). Programs are compiled before, on a table of one cell
in boxes of the same shape; times are medians of --repeats calls in turns. Rows are
printed as they are measured. The paper's figures are of a Tesla C2050, its scoring and
traceback of one core of an i7-x980.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import measure
import numpy as np
import problems

import jaxalign

# Problems ----------------------------------------------------------------------------
# Problems of three sequences, of the sizes of Li, Ranka and Sahni, and what aligns
# them: jaxalign, its programs compiled before, and a plain loop compiled by numba.


SIZES = (
    (113, 166, 364),
    (347, 349, 365),
    (267, 439, 452),
    (764, 771, 773),
    (1399, 1404, 1406),
)
# Families of three that are shipped, by their lengths.
FAMILIES = {
    (347, 349, 365): "acsF",
    (764, 776, 776): "AKR1",
    (1396, 1399, 1399): "rpoC",
    (250, 445, 445): "6PGD",
    (85, 164, 360): "actin",
}


def triple(lengths, seed: int = 0) -> list[str]:
    """Three related texts of these lengths: a family that is shipped, or a base of
    which a third is changed."""
    if lengths in FAMILIES and not seed:
        path = problems.ROOT / "jaxalign/data/triples" / f"{FAMILIES[lengths]}.fasta"
        return [text for _, text in problems.read_fasta(path)]
    rng = np.random.default_rng(seed)
    letters = np.array(list(problems.LETTERS))
    base = rng.choice(letters, max(lengths))
    texts = []
    for length in lengths:
        changed = rng.random(length) < 0.33
        text = np.where(changed, rng.choice(letters, length), base[:length])
        texts.append("".join(text))
    return texts


def text_of(lengths) -> str:
    return " x ".join(map(str, lengths))


def cells_of(lengths) -> int:
    return int(np.prod([n + 1 for n in lengths], dtype=object))


def call(lengths, **options):
    """A call of ``align_three`` on a problem of these lengths."""
    texts, scoring = triple(lengths), jaxalign.Scoring(gap_open=4, gap_extend=4)
    call = partial(jaxalign.align_three, gap_model="linear", **options)
    return lambda: call(*texts, scoring)


def plain_loop():
    """The paper's recurrence as three loops, compiled by numba; None without it."""
    try:
        from numba import njit
    except ImportError as missing:
        print(f"# numba left out: {missing}")
        return None

    @njit
    def score(a, b, c, scores, gap):
        minus = -(2**30)
        before = np.full((len(b) + 1, len(c) + 1), minus, np.int32)
        here = before.copy()
        for i in range(len(a) + 1):
            for j in range(len(b) + 1):
                for k in range(len(c) + 1):
                    h = 0 if i == j == k == 0 else minus
                    ab = scores[a[i - 1], b[j - 1]] if i and j else 0
                    ac = scores[a[i - 1], c[k - 1]] if i and k else 0
                    bc = scores[b[j - 1], c[k - 1]] if j and k else 0
                    if i and j and k:
                        h = max(h, before[j - 1, k - 1] + ab + ac + bc)
                    if i and j:
                        h = max(h, before[j - 1, k] + ab - 2 * gap)
                    if i and k:
                        h = max(h, before[j, k - 1] + ac - 2 * gap)
                    if j and k:
                        h = max(h, here[j - 1, k - 1] + bc - 2 * gap)
                    if i:
                        h = max(h, before[j, k] - 2 * gap)
                    if j:
                        h = max(h, here[j - 1, k] - 2 * gap)
                    if k:
                        h = max(h, here[j, k - 1] - 2 * gap)
                    here[j, k] = h
            before, here = here, before
        return before[len(b), len(c)]

    return score


def ready(lengths, schedule, way, chunk=None, height=None, depth=None) -> None:
    """Compile what a call needs, on a table of one cell in boxes of the same shape."""
    import jax

    from jaxalign.triples import engine, tracebacks
    from jaxalign.triples.dp.recurrence import FillOutputs
    from jaxalign.triples.options import CHUNKED

    scoring = jaxalign.Scoring(gap_open=4, gap_extend=4)
    triple = problem(lengths, scoring, gap_model="linear", schedule=schedule)
    region, one = engine.whole(triple), np.ones(3, np.int32)
    if way in CHUNKED:
        grid = tracebacks.grid_of(triple, region, way, chunk, height, depth)
        static, padded = tracebacks.static_of(grid), tracebacks.padded_region(grid)
        count = tracebacks.chunks_at_once(grid)
        again = tracebacks.segments_at_once(grid)
        none = np.zeros((count, 3), np.int32), np.ones((count, 3), np.int32)
        store = tracebacks.empty_store(grid)
        store = tracebacks.fill_chunks(static, store, padded, *none, np.int32(1))
        at = np.zeros(3, np.int32), np.ones(4, np.int32)
        tracebacks.start_point(static, store, *at)
        few = np.zeros((again, 3), np.int32), np.zeros(again, np.int32)
        ends = np.tile(np.array([1, 1, 1, 0], np.int32), (again, 1))
        deep = grid.height + 1 if way == "bt3" else None
        path = tracebacks.fill_and_walk(
            static, store, padded, *few, ends, np.ones(again, bool),
            deep=deep, stop=np.int32(1),
        )  # fmt: skip
        jax.block_until_ready(path)
        return
    outputs = FillOutputs(choices=way == "store")
    seed = engine.seed_of(triple, (0,))
    box = engine.box_of(triple, region, seed)._replace(size=one)
    form = engine.FillForm(schedule, triple.model, outputs)
    filled = engine.fill(form, box, triple.scoring)
    if way == "store":
        at = np.array([1, 1, 1, 0], np.int32)
        longest = engine.padded_length(sum(triple.lengths) + 3)
        words = schedule, triple.model, filled.choices, at, longest
        jax.block_until_ready(tracebacks.walk(*words))
    jax.block_until_ready(filled)


def problem(lengths, scoring, budget=2**40, kernels=None, seed=0, **options):
    """A problem of these lengths as the fills take it."""
    from jaxalign.model.alphabet import as_sequences
    from jaxalign.options import TripleOptions
    from jaxalign.triples.options import TripleRequest
    from jaxalign.triples.plan import triples_of

    named = [(str(n), text) for n, text in enumerate(triple(lengths, seed))]
    request = TripleRequest(TripleOptions(**options), budget, kernels)
    sequences = as_sequences(named, scoring.alphabet)
    return triples_of(sequences, scoring, request)[0]


# Tables ------------------------------------------------------------------------------

SCHEDULES, WAYS = ("layered", "sloped"), ("bt1", "bt2", "bt3")
SWEPT = SIZES[2]
SIDES, HEIGHTS = (16, 31, 47, 67), (20, 40, 100)
SMALLEST = (3, 3, 3)  # compiles the plain loop
LARGEST_PLAIN = 10**9  # cells; the largest size would take a minute a call
# Seconds in the paper: layered, sloped, one core scoring; the largest has no last.
TABLE_1 = {
    (113, 166, 364): (0.034, 0.044, 0.570),
    (347, 349, 365): (0.165, 0.087, 3.610),
    (267, 439, 452): (0.162, 0.090, 4.270),
    (764, 771, 773): (1.250, 0.416, 37.500),
    (1399, 1404, 1406): (6.643, 1.921, None),
}
# Seconds of phase 1, phase 3 and in all.
TABLE_2 = {
    ("layered", "bt1"): ((0.062, 0.012, 0.076), (0.298, 0.042, 0.342),
                         (0.348, 0.035, 0.386), (2.814, 0.121, 2.941),
                         (14.994, 0.277, 15.300)),
    ("layered", "bt2"): ((0.062, 0.005, 0.069), (0.298, 0.010, 0.310),
                         (0.347, 0.010, 0.359), (2.813, 0.014, 2.834),
                         (14.982, 0.021, 15.036)),
    ("layered", "bt3"): ((0.062, 0.005, 0.069), (0.298, 0.010, 0.310),
                         (0.347, 0.009, 0.360), (2.812, 0.016, 2.836),
                         (14.977, 0.023, 15.040)),
    ("sloped", "bt1"): ((0.013, 0.002, 0.030), (0.064, 0.005, 0.111),
                        (0.077, 0.006, 0.125), (0.583, 0.021, 0.736),
                        (3.513, 0.058, 3.850)),
    ("sloped", "bt2"): ((0.014, 0.002, 0.032), (0.067, 0.002, 0.114),
                        (0.080, 0.002, 0.127), (0.606, 0.003, 0.748),
                        (3.648, 0.005, 3.946)),
    ("sloped", "bt3"): ((0.014, 0.002, 0.032), (0.067, 0.002, 0.114),
                        (0.080, 0.002, 0.127), (0.604, 0.004, 0.747),
                        (3.636, 0.006, 3.939)),
}  # fmt: skip


def prepared(found):
    """What is to be measured, each when its programs are compiled: on a GPU, whose
    memory holds the faces of several, all of them before the first."""
    import jax

    found = list(found)
    if jax.default_backend() != "cpu":
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda one: ready(*one), found))
        yield from found
        return
    for one in found:
        ready(*one)
        yield one


def in_turns(calls, repeats):
    """key -> (median seconds, last result) of calls that need no warming."""
    found = measure.in_turns(calls, repeats, warm=False)
    return {key: (one["seconds"], one["result"]) for key, one in found.items()}


def table_1(sizes, repeats, schedules=SCHEDULES):
    """X2.1: a row a size and schedule."""
    loop, scoring = plain_loop(), jaxalign.Scoring(gap_open=4, gap_extend=4)

    def plain_call(lengths):
        codes = [scoring.alphabet.encode(text) for text in triple(lengths)]
        return lambda: loop(*codes, scoring.scores, 4)

    list(prepared(product(sizes, schedules, (None,))))
    for lengths in sizes:
        calls = {s: call(lengths, schedule=s, traceback=None) for s in schedules}
        if loop and cells_of(lengths) < LARGEST_PLAIN:
            plain_call(SMALLEST)()
            calls["numba, 1 core"] = plain_call(lengths)
        found = in_turns(calls, repeats)
        plain = found.get("numba, 1 core", (None,))[0]
        papers = dict(zip(("layered", "sloped"), TABLE_1[lengths], strict=False))
        for name, (seconds, result) in found.items():
            yield {
                "lengths": text_of(lengths),
                "schedule": name,
                "score": getattr(result, "score", result),
                "seconds": seconds,
                "Gcells/s": measure.gcups(cells_of(lengths), seconds),
                "x numba": plain / seconds if plain else None,
                "x sloped": seconds / found["sloped"][0] if "sloped" in found else None,
                "C2050 s": papers.get(name),
                "C2050 x sloped": papers[name] / papers["sloped"]
                if name in papers else None,
                "1 core s (paper)": TABLE_1[lengths][2],
            }  # fmt: skip


def table_2(sizes, repeats, schedules=SCHEDULES, ways=WAYS, cubes=False):
    """X2.2: a row a size, schedule and traceback; with ``cubes`` two."""
    from jaxalign.triples import tracebacks

    found = []
    for key in product(sizes, schedules, ways):
        # Of the paper's chunks, asked for, since a GPU takes cubes; and of cubes.
        side, height = tracebacks.CHUNK_SIZES[key[1]]
        found += [(*key, side, height, None)] + [(*key, side, side, side)] * cubes
    for lengths, *key, chunk, height, depth in prepared(found):
        chunks = {"chunk": chunk, "height": height, "depth": depth}
        calls = {0: call(lengths, schedule=key[0], traceback=key[1], **chunks)}
        row = _row(lengths, tuple(key), *in_turns(calls, repeats)[0])
        yield row | {"s": chunk, "depth": depth}
    for lengths in sizes:
        usual = call(lengths)
        usual()
        yield _row(lengths, ("auto", "auto"), *in_turns({0: usual}, repeats)[0])


def _row(lengths, key, seconds, result):
    """A measured traceback beside the paper's: phases of the last call."""
    paper = (None,) * 3
    if key in TABLE_2:
        paper = TABLE_2[key][SIZES.index(lengths)]
    assert result.rescore() == result.score
    return {
        "lengths": text_of(lengths),
        "schedule": result.schedule,
        "traceback": result.traceback,
        "score": result.score,
        "phase 1": result.seconds.get("phase 1", result.seconds.get("fill")),
        "phase 3": result.seconds.get("phase 3", result.seconds.get("walk")),
        "seconds": seconds,
        "MB": sum(result.bytes.values()) / 1e6 if "faces" in result.bytes
        else result.bytes["planned"] / 1e6,
        "C2050 phase 1": paper[0],
        "C2050 phase 3": paper[1],
        "C2050 s": paper[2],
    }  # fmt: skip


def sweep(sizes, repeats, schedules=SCHEDULES, sides=SIDES, heights=HEIGHTS,
          cubes=False):  # fmt: skip
    """X2.3: a row a schedule, s and h; with ``cubes`` a row a schedule and s."""
    lengths = SWEPT if SWEPT in sizes else sizes[-1]
    tried = [(s, h, None) for s in sides for h in heights]
    tried += [(s, s, s) for s in sides if cubes]
    found = [(lengths, schedule, "bt3", *x) for schedule in schedules for x in tried]
    for _, schedule, way, s, h, depth in prepared(found):
        sizes = {"chunk": s, "height": h, "depth": depth}
        one = call(lengths, schedule=schedule, traceback=way, **sizes)
        seconds, result = in_turns({0: one}, repeats)[0]
        yield {
            "lengths": text_of(lengths),
            "schedule": schedule,
            "s": s,
            "h": h,
            "depth": depth,
            "phase 1": result.seconds["phase 1"],
            "phase 3": result.seconds["phase 3"],
            "seconds": seconds,
            "MB": result.bytes["faces"] / 1e6,
        }


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "quick", "json", repeats=3)
    parser.add_argument("experiments", nargs="*", default=["X2.1"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1, 2, 3, 4, 5],
                        help="which of the five, 1 the smallest")  # fmt: skip
    parser.add_argument("--schedules", nargs="*", default=SCHEDULES)
    parser.add_argument("--ways", nargs="*", default=WAYS)
    for name, usual in (("--sides", SIDES), ("--heights", HEIGHTS)):
        parser.add_argument(name, type=int, nargs="*", default=usual)
    parser.add_argument("--cubes", action="store_true", help="X2.2, X2.3: cubes too")
    asked = parser.parse_args(argv)
    sizes = [SIZES[n - 1] for n in ([1] if asked.quick else asked.sizes)]
    chunks = asked.sides, asked.heights, asked.cubes
    tables = {
        "X2.1": (table_1, ()),
        "X2.2": (table_2, (asked.ways, asked.cubes)),
        "X2.3": (sweep, chunks),
    }
    report: dict = {"machine": measure.machine()}
    for name in asked.experiments:
        print(f"\n{name}", flush=True)
        table, more = tables[name]
        rows = table(sizes, asked.repeats, asked.schedules, *more)
        report[name] = [measure.show_line(row) for row in rows]
        measure.save(asked.json, report)


if __name__ == "__main__":
    main()
