"""Problems of three sequences, of the sizes of Li, Ranka and Sahni, and what aligns
them: jaxalign, its programs compiled before, and a plain loop compiled by numba."""

import numpy as np

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
        return family(FAMILIES[lengths])
    rng = np.random.default_rng(seed)
    letters = np.array(list("ARNDCQEGHILKMFPSTWYV"))
    base = rng.choice(letters, max(lengths))
    texts = []
    for length in lengths:
        changed = rng.random(length) < 0.33
        text = np.where(changed, rng.choice(letters, length), base[:length])
        texts.append("".join(text))
    return texts


def family(name: str) -> list[str]:
    """The texts of a family of three that jaxalign ships."""
    from importlib.resources import as_file, files

    from jaxalign.io import fasta
    from jaxalign.model.alphabet import named_alphabet

    with as_file(files("jaxalign.data") / "triples" / f"{name}.fasta") as path:
        read = fasta.read(path, named_alphabet("protein"))
    return [read.text(n) for n in range(3)]


def text_of(lengths) -> str:
    return " x ".join(map(str, lengths))


def cells_of(lengths) -> int:
    return int(np.prod([n + 1 for n in lengths], dtype=object))


def call(lengths, **options):
    """A call of ``align_three`` on a problem of these lengths."""
    from jaxalign import Scoring, align_three

    texts, scoring = triple(lengths), Scoring(gap_open=4, gap_extend=4)
    return lambda: align_three(*texts, scoring, gap_model="linear", **options)


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


def plain_call(lengths, loop):
    """The call of the plain loop on the same problem as ``call``."""
    from jaxalign import Scoring

    scoring = Scoring(gap_open=4, gap_extend=4)
    codes = [scoring.alphabet.encode(text) for text in triple(lengths)]
    return lambda: loop(*codes, scoring.scores, 4)


def ready(lengths, schedule, way, chunk=None, height=None, depth=None) -> None:
    """Compile what a call needs, on a table of one cell in boxes of the same shape."""
    import jax

    from jaxalign.triples import engine
    from jaxalign.triples.dp.recurrence import FillOutputs
    from jaxalign.triples.options import CHUNKED
    from jaxalign.triples.tracebacks import chunks
    from jaxalign.triples.tracebacks.box import walk

    triple = _problem(lengths, schedule)
    region, one = engine.whole(triple), np.ones(3, np.int32)
    if way in CHUNKED:
        sizes = chunks.chunk_sizes(triple, chunk, height, depth)
        grid = chunks.grid_of(triple, region, way, *sizes)
        static, padded = chunks.static_of(grid), chunks.padded_region(grid)
        count = chunks.chunks_at_once(grid)
        again = chunks.segments_at_once(grid)
        none = np.zeros((count, 3), np.int32), np.ones((count, 3), np.int32)
        store = chunks.empty_store(grid)
        store = chunks.fill(static, store, padded, *none, np.int32(1))
        at = np.zeros(3, np.int32), np.ones(4, np.int32)
        chunks.start_point(static, store, *at)
        few = np.zeros((again, 3), np.int32), np.zeros(again, np.int32)
        ends = np.tile(np.array([1, 1, 1, 0], np.int32), (again, 1))
        deep = grid.height + 1 if way == "bt3" else None
        path = chunks.fill_and_walk(
            static, store, padded, *few, ends, np.ones(again, bool),
            deep=deep, stop=np.int32(1),
        )  # fmt: skip
        jax.block_until_ready(path)
        return
    outputs = FillOutputs(choices=way == "store")
    seed = engine.seed_of(triple, (0,))
    box = engine.box_of(triple, region, seed)._replace(size=one)
    filled = engine.fill(schedule, triple.model, outputs, box, triple.scoring)
    if way == "store":
        at = np.array([1, 1, 1, 0], np.int32)
        longest = engine.padded_length(sum(triple.lengths) + 3)
        words = schedule, triple.model, filled.choices, at, longest
        jax.block_until_ready(walk(*words))
    jax.block_until_ready(filled)


def _problem(lengths, schedule):
    """The problem of ``call`` as the fills take it."""
    from jaxalign import Scoring
    from jaxalign.model.alphabet import as_sequences
    from jaxalign.triples.options import TripleOptions, TripleRequest
    from jaxalign.triples.plan import triples_of

    scoring = Scoring(gap_open=4, gap_extend=4)
    named = [(str(n), text) for n, text in enumerate(triple(lengths))]
    request = TripleRequest(TripleOptions(gap_model="linear", schedule=schedule), 2**40)
    sequences = as_sequences(named, scoring.alphabet)
    return triples_of(sequences, scoring, request)[0]
