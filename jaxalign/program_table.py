"""The programs of usual jobs with proteins on a GPU, listed without one.

A pack of programs (``jaxalign warmup --target``) has those of this table. Sizes of
launches are few, so that the programs of a job serve jobs of other sizes, too.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np

from jaxalign.database import nearest_launches, nearest_scan, scan
from jaxalign.database.options import linked as linked_options
from jaxalign.model.alphabet import Sequences
from jaxalign.model.profile import Profile
from jaxalign.model.scoring import MODES, Scoring
from jaxalign.model.triple import GAP_MODELS
from jaxalign.options import FamilyOptions, NearestOptions, PairOptions, TripleOptions
from jaxalign.pairs import part_stream
from jaxalign.pairs.gpu import dispatch
from jaxalign.pairs.long import fill
from jaxalign.pairs.long.align import pair_of
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Task, WholeCodes, zipped
from jaxalign.pairs.proofs import lcs_launches
from jaxalign.repertoire import rectangles
from jaxalign.runtime.programs import ProgramCall, outline
from jaxalign.triples import gpu
from jaxalign.triples.options import TripleRequest
from jaxalign.triples.plan import batches, triples_of

# Lengths of proteins: these shares of Swiss-Prot and UniProt, half of each, are shorter
SHARES = (0, .002, .01, .03, .06, .1, .15, .2, .3, .4, .5, .6, .7, .8, .9, .95, .98,
          .99, .998, 1)  # fmt: skip
LENGTHS = (5, 10, 31, 66, 78, 96, 127, 156, 231, 293, 340, 397, 485, 606, 806, 1130,
           1479, 1861, 3009, 6000)  # fmt: skip
# Those of CUDASW++
QUERIES = (144, 189, 222, 375, 464, 567, 657, 729, 850, 1000, 1500, 2005, 2504, 3005,
           3564, 4061, 4548, 4743, 5147, 5478)  # fmt: skip
SET = 12_000
# (sequences, letters of the longest): room for letters of each differs
SETS = (SET, 6_000), (1_000, 6_000), (1_000, 1_500), (60_000, 6_000)
BLOCKS = 150_000, SET  # sequences of a block of a database
LEFT = 1_000, 3_000, 100_000  # pairs that a proof leaves
SHORT = 40, 400  # sequences that are compared from end to end as well
HITS, TOP = 200, 10
# Positions of profiles, each with another room of scores; sequences of a fit
PROFILES, SAMPLE = (60, 300, 520, 1_100, 2_050), 4_200
FAMILY_HITS = 60, 250, 1_000, 4_000
LONG_PROTEIN, LONG = 10_000, (30_000, 60_000, 120_000)  # letters of both of a pair
SEED = 2011
CUDASW = "20 of CUDASW++"
# Others: each number of queries here has another room of best hits or strips.
SEARCHES = {
    f"{count} of up to {longest:,}": range(60, longest, longest // count)
    for count, longest in ((1, 350), (12, 900), (200, 1_500), (200, 4_000))
}
# Few queries, whose strips are stacked: how many, of how many letters together
FEW_QUERIES, FEW_LETTERS, LONGEST_QUERY = (1, 8, 64), 2 ** np.arange(8, 17), 6000
LINKING = "cluster", "dedup", "split", "audit", "purge"
TRIPLE_BYTES = 40 * 2**30  # more than any launch of ``triples.gpu.ROOMS`` takes
LINEAR_COST = 4
# The links of whole sequences, and of parts, which is the default
LINKED = PairOptions(output="identity", identity="longer", min_identity=0.4)
LOCAL = replace(LINKED, mode="local", identity="shorter", min_score=100)
OF_TWO = 3  # every third sequence is compared with the others
TESTS = 12  # every twelfth is a test sequence of `nearest`


def proteins(lengths: np.ndarray, seed: int = SEED) -> Sequences:
    """Random sequences, the same whenever they are asked for."""
    dice = np.random.default_rng(seed)
    codes = dice.integers(0, 20, int(lengths.sum()), np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences(("",) * len(lengths), codes, offsets, Scoring().alphabet)


def usual_lengths(count: int, longest: int = LENGTHS[-1]) -> np.ndarray:
    """Lengths as proteins have them, longest first; none is longer than the longest."""
    shares = (np.arange(count) + 0.5) / count
    lengths = np.exp(np.interp(shares, SHARES, np.log(LENGTHS))).astype(np.int64)[::-1]
    return np.minimum(np.concatenate([LENGTHS[-1:], lengths[1:]]), longest)


def jobs(
    kernels: Any,
    sets: Sequence[tuple[int, int]] = SETS,
    searches: Sequence[str] | None = None,
) -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, a function that calls the programs of a job): ``search`` for scores and
    with alignments, ``all`` for scores, and what ``cluster``, ``dedup``, ``split``,
    ``audit``, ``purge`` and ``nearest`` do, of sets of so many proteins, searches of
    all or some queries, ``three`` and ``repertoire``."""
    yield from _searches(kernels, searches)
    yield from _hits(proteins(np.array(QUERIES)), kernels)
    yield from _families(kernels)
    yield from _likely(kernels)
    for count, longest in sets:
        sequences = proteins(usual_lengths(count, longest))
        for mode in ("global", "local"):
            options = PairOptions(mode=mode, output="score")
            every = make_task("all", sequences, sequences, Scoring(), options)
            name = f"all pairs of {count:,} of up to {longest:,}, {mode} scores"
            yield name, partial(dispatch.outline_of_task, every, kernels)
            if count == SET:
                yield f"{name}, by parts", partial(by_parts, every, kernels)
        yield from linked(sequences, kernels)
        yield from of_two(sequences, kernels)
        yield from nearest(sequences, kernels)
    yield from _pairs_alone(kernels)
    yield from threes(kernels)
    room = rectangles.LEAST_ROOM
    while room <= rectangles.MAX_ROOM:
        for metric, edits in (("sums", False), ("edit distances", True)):
            name = f"{metric} of a repertoire, {room:,} a launch"
            yield name, partial(rectangles.outlined, kernels, room, edits)
        room *= rectangles.ROOMS_RATIO


def by_parts(
    task: Task,
    kernels: Any,
    rows: int | None = part_stream.PART_ROWS,
    seed: int = SEED,
) -> None:
    """Outline the programs of a job in parts, with input in random order.

    rows : of a part at most; None, as links have them
    """
    dice = np.random.default_rng(seed)
    shuffled = task.queries.take(dice.permutation(task.shape[0]))
    if task.kind == "all":
        task = replace(task, queries=shuffled, targets=shuffled)
        parts = part_stream.cut_of(task, rows)
    else:
        targets = task.targets.take(dice.permutation(task.shape[1]))
        task = replace(task, queries=shuffled, targets=targets)
        parts = part_stream.cut_cross(task)
    for part in part_stream.tasks_of(task, parts):
        dispatch.outline_of_task(part, kernels)


def _searches(
    kernels: Any, names: Collection[str] | None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs for searches of blocks of all sizes: with the strip shape that fits
    the queries, each shape for few queries with any number of strips, and those for
    many queries."""
    local, nothing = PairOptions(mode="local", output="score"), np.zeros(0, np.int64)
    for count in BLOCKS:
        block = proteins(usual_lengths(count))
        for name, lengths, shaped_kernels in _query_sets(kernels):
            if names is None or name in names:
                queries = proteins(np.array(lengths))
                task = make_task("cross", queries, proteins(nothing), Scoring(), local)
                job = partial(
                    scan.outlined, replace(task, top=TOP), block, shaped_kernels
                )
                yield f"search of {count:,}, {name}", job


def _query_sets(kernels: Any) -> Iterator[tuple[str, Sequence[int] | np.ndarray, Any]]:
    """(name, lengths of queries, kernels that choose a shape for them)."""
    yield CUDASW, QUERIES, kernels
    for name, lengths in SEARCHES.items():
        yield name, lengths, kernels
    for shape in kernels.few_query_shapes(FEW_QUERIES[-1], local=True, packed=True):
        rooms = set()
        for count, letters in product(FEW_QUERIES, FEW_LETTERS.tolist()):
            lengths = np.full(count, min(letters // count, LONGEST_QUERY))
            room = kernels.stack(lengths, shape).query.shape
            if room not in rooms and shape.stacks <= count:
                rooms.add(room)
                strips = f"{shape.strip} rows in {room[0]} x {room[2]} lanes"
                yield f"strips of {strips}", lengths, _OneShape(kernels, shape)


class _OneShape:
    """Kernels restricted to one shape for few queries."""

    def __init__(self, kernels: Any, shape: Any):
        self._kernels, self._shape = kernels, shape

    def spread(self, *_lengths: np.ndarray, **_options: bool) -> Any:
        return self._shape

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels, name)


def _hits(queries: Sequences, kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs that align hits: of all targets, and of targets of usual lengths."""
    targets, hits = proteins(usual_lengths(SET)), np.arange(HITS)
    paths = PairOptions(mode="local", output="alignment")
    for name, first in (("", 0), (" of usual lengths", SET // 4)):
        sides = queries.take(hits % len(queries)), targets.take(first + hits)
        if first:
            sides = targets.take(first + HITS + hits), sides[1]
        aligned = make_task("zip", *sides, Scoring(), paths)
        job = partial(dispatch.outline_of_task, aligned, kernels)
        yield f"hits of a search{name}", job


def _families(kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs of a family: a query or a profile against blocks of a database, and
    against the sequences that its scores are fitted to."""
    local, nothing = (
        PairOptions(mode="local", output="score"),
        proteins(np.zeros(0, int)),
    )
    alphabet, sample = Scoring().alphabet, proteins(usual_lengths(SAMPLE))
    for positions in PROFILES:
        query = proteins(np.array([positions]))
        scores = np.zeros((positions, alphabet.size), np.int32)
        for scoring in (Scoring(), Scoring(Profile("", scores, alphabet, 1.0))):
            with_profile = "with" if scoring.by_position else "without"
            name = f"family of {positions:,} positions, {with_profile} a profile"
            task = make_task("cross", query, nothing, scoring, local)
            task = replace(task, top=FamilyOptions.max_sequences)
            # How a query is cut into strips depends on the size of the block, too.
            for shape in kernels.few_query_shapes(1, local=True, packed=True):
                for count in BLOCKS:
                    block = proteins(usual_lengths(count))
                    job = partial(scan.outlined, task, block, _OneShape(kernels, shape))
                    yield f"{name}, {count:,} sequences, {shape.strip} rows", job
            task = make_task("cross", query, sample, scoring, local)
            yield f"{name}, fitted", partial(dispatch.outline_of_task, task, kernels)
        paths = replace(local, output="alignment")
        for count in FAMILY_HITS:
            hits = proteins(usual_lengths(count))
            task = make_task("cross", query, hits, scoring, paths)
            name = f"{count:,} hits of a profile of {positions:,} positions"
            yield name, partial(dispatch.outline_of_task, task, kernels)


def _likely(kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs for likely pairs of three parts, by measures that no audit uses."""
    sequences = proteins(usual_lengths(3 * HITS))
    options = replace(LINKED, identity="shorter", min_identity=0.0)
    for mode in ("global", "local"):
        by_mode = replace(options, mode=mode)
        task = make_task("zip", sequences, sequences, Scoring(), by_mode)
        yield f"likely pairs, {mode}", partial(dispatch.outline_of_task, task, kernels)


def _pairs_alone(kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs of a pair of long proteins, and of pairs that are filled in blocks."""
    for length, mode in product((LONG_PROTEIN, *LONG), ("global", "local")):
        pair = proteins(np.array([length, length]))
        sides = pair.take(np.arange(1)), pair.take(np.arange(1) + 1)
        options = PairOptions(mode=mode, output="stats")
        task = make_task("zip", *sides, Scoring(), options)
        outline_pair = partial(dispatch.outline_of_task, task, kernels)
        if length > LONG_PROTEIN:
            outline_pair = partial(fill.outlined, pair_of(task, 0, 0), kernels)
        yield f"a pair of {length:,} letters each, {mode}", outline_pair


def linked(
    sequences: Sequences, kernels: Any
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs for linked pairs: the proofs, and the pairs that remain."""
    size = f"{len(sequences):,} of up to {sequences.lengths.max():,}"
    every = make_task("all", sequences, sequences, Scoring(), LOCAL)
    yield (
        f"all pairs of {size}, linked locally",
        partial(by_parts, every, kernels, None),
    )
    for options in (LINKED, LOCAL):
        task = make_task("all", sequences, sequences, Scoring(), options)
        task = replace(task, whole_codes=(WholeCodes(sequences.codes),))
        launches = lcs_launches.LcsLaunches(task, kernels)
        of_mode = f"of {size}, {task.mode}"
        name = f"common subsequences {of_mode}"
        yield name, partial(lcs_launches.outlined_candidates, launches)
        for count in LEFT:
            for first in (0, len(sequences) // 4, len(sequences)):
                remaining = _neighbours(task, first, count)
                longest = f"{remaining.job.query_lengths.max():,}"
                name = f"{count:,} pairs left {of_mode}, those of up to {longest}"
                yield name, partial(dispatch.outline_of_task, remaining, kernels)
        last = len(sequences) - np.arange(1, SHORT[-1] + 1)
        for count in LEFT:
            place = np.arange(count)
            sides = place // len(last) % last[-1], last[place % len(last)]
            job = partial(dispatch.outline_of_task, zipped(task, *sides), kernels)
            yield f"{count:,} pairs left {of_mode}, with short sequences", job
        shortest = sequences.take(last)
        for count, (what, targets) in product(
            SHORT, (("", sequences), (" with short ones", shortest))
        ):
            queries = sequences.take(last[:count])
            crossed = make_task("cross", queries, targets, Scoring(), options)
            crossed = replace(crossed, whole_codes=task.whole_codes)
            name = f"{count:,} short{what} {of_mode}"
            yield name, partial(dispatch.outline_of_task, crossed, kernels)
        # What is left of parts: few queries and targets
        longest = sequences.take(np.arange(SHORT[0]))
        crossed = make_task("cross", longest, longest, Scoring(), options)
        crossed = replace(crossed, whole_codes=task.whole_codes)
        name = f"{SHORT[0]} long {of_mode}"
        yield name, partial(dispatch.outline_of_task, crossed, kernels)
    first, second = (sequences.take(np.arange(HITS) + k) for k in (0, 1))
    likely = make_task(
        "zip", first, second, Scoring(), replace(LINKED, min_identity=0.0)
    )
    yield f"likely pairs of {size}", partial(dispatch.outline_of_task, likely, kernels)


def of_two(
    sequences: Sequences, kernels: Any
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs of the pairs of two sets: those that are linked, and for the worst
    pairs all that score enough."""
    place = np.arange(len(sequences))
    first = place % OF_TWO == 0
    queries, targets = (sequences.take(place[x]) for x in (first, ~first))
    linked = make_task("cross", queries, targets, Scoring(), LOCAL)
    scored = replace(linked, filters=replace(linked.filters, min_identity=None))
    for what, task in (("linked locally", linked), ("that score enough", scored)):
        size = f"{len(sequences):,} of up to {sequences.lengths.max():,}"
        name = f"pairs of two parts of {size}, {what}"
        yield name, partial(by_parts, task, kernels)


def nearest(
    sequences: Sequences, kernels: Any
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs of ``nearest`` of a corpus: what is asked of pairs differs with their
    lengths."""
    tests = sequences.take(np.arange(0, len(sequences), TESTS))
    options = linked_options(NearestOptions(), Scoring(), tests)
    regions = nearest_scan.regions_of([tests], sequences, Scoring(), options)
    for number, region in enumerate(regions, 1):
        name = f"nearest in {len(sequences):,}, region {number} of {len(regions)}"
        yield name, partial(_of_region, region.task, kernels)
    shown, pairs = PairOptions(mode="local", output="stats"), np.arange(len(tests))
    nearby = make_task("zip", tests, sequences.take(pairs), Scoring(), shown)
    name = f"alignments of nearest, {len(tests):,} of {len(sequences):,}"
    yield name, partial(dispatch.outline_of_task, nearby, kernels)


def _of_region(task: Task, kernels: Any) -> None:
    """Outline the programs of pairs of which ``nearest`` asks the same."""
    if task.filters.min_score is not None:
        task = replace(task, filters=replace(task.filters, min_cov=None))
        by_parts(task, kernels)
        for count in LEFT:
            place, (queries, targets) = np.arange(count), task.shape
            remaining = zipped(task, place % queries, place % targets)
            dispatch.outline_of_task(remaining, kernels)
        return
    task = replace(task, whole_codes=(WholeCodes(task.targets.codes),))
    wide = task.job.pairs >= nearest_scan.WIDE_PAIRS
    sizes = lcs_launches.WIDE if wide else lcs_launches.NARROW
    launches = lcs_launches.LcsLaunches(task, kernels, sizes=sizes)
    for aligned in nearest_launches.outlined(task, task.filters.identity, launches):
        dispatch.outline_of_task(aligned, kernels)


def threes(kernels: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield jobs of triples. Paths: one by all gap models and modes, and many by the
    default model or from end to end. Scores: one by the default model, or by linear
    gaps from end to end; long ones from end to end alone."""
    usual = TripleOptions().gap_model
    for model, mode in product(GAP_MODELS, MODES):
        whole = mode == "global"
        for side, counts in gpu.ROOMS.items():
            for count in counts:
                paths = count == 1 or model == usual or whole
                scores = model == usual or (model == "linear" and whole)
                if side > gpu.PATHS_UP_TO_CELLS:
                    paths, scores = False, scores and whole
                ways = (None,) * (scores and count == 1) + ("auto",) * paths
                for way in ways:
                    what = f"{model}, {mode} {'paths' if way else 'scores'}"
                    length = side * 3 // 4
                    job = partial(_of_triples, kernels, model, mode, way)
                    yield (
                        f"three, {count} of {length:,}, {what}",
                        partial(job, length, count),
                    )


def _of_triples(
    kernels: Any, model: Any, mode: Any, traceback: Any, length: int, count: int
) -> None:
    """Outline the programs of so many triples of a length."""
    options = TripleOptions(
        gap_model=model, mode=mode, schedule="sloped", traceback=traceback
    )
    linear = Scoring(gap_open=LINEAR_COST, gap_extend=LINEAR_COST)
    scoring = linear if model == "linear" else Scoring()
    request = TripleRequest(options, TRIPLE_BYTES, kernels.three)
    triples = triples_of(proteins(np.full(3 * count, length)), scoring, request)
    for numbers in batches(triples):
        gpu.outlined(triples.batch(numbers), traceback is not None)


def _neighbours(task: Task, first: int, count: int) -> Task:
    """Select ``count`` pairs of neighbours by length from ``first`` on."""
    block = min(count, task.shape[0] // 4)
    first = min(first, task.shape[0] - 2 * block)
    turn, i = np.divmod(np.arange(count), block)
    return zipped(task, first + i, first + i + 1 + turn % block)


def verbs_of(job: str) -> tuple[str, ...]:
    """The verbs that have a job of ``jobs``, by its name."""
    for verb in ("three", "search", "nearest", "repertoire", "family"):
        if verb in job:
            return (verb,)
    if job.startswith("a pair"):
        return ("align",)
    return ("all",) if job.startswith("all pairs") else LINKING


def calls_of(
    kernels: Any,
    names: Collection[str] | None = None,
    share: tuple[int, int] = (0, 1),
    **sizes: Sequence,
) -> Iterator[tuple[str, list[ProgramCall]]]:
    """Yield the name and the calls of programs of every job, or of those with some
    names, or of every n-th job from the k-th on; ``sizes`` are those of ``jobs``."""
    for name, job in islice(jobs(kernels, **sizes), share[0], None, share[1]):
        if names is not None and name not in names:
            continue
        with outline() as calls:
            job()
        yield name, calls
