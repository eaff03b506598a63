"""Three sequences on a GPU: scores, alignments, batches; kernels beside XLA's planes.

    python benchmarks/three_gpu.py --json three_gpu.json
    python benchmarks/three_gpu.py --variants

A row is one job: *kernel* is the launch alone with a wait for it, *queued* one of
several launches that are queued at once, *call* all of ``align_three`` from texts to
rows, *planes* the same call by XLA's planes. Quasi-natural gaps are measured on two
real families, linear ones on related sequences drawn at random; BLOSUM62, linear gaps
of 4, affine 11/1. Cells are (n0 + 1)(n1 + 1)(n2 + 1). Medians after a call that is not
counted (it compiles). The scores of kernels and planes are compared, and every
alignment is rescored.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import measure
import numpy as np
import papers_three

from jaxalign import Scoring, align_three, align_triples
from jaxalign.model.alphabet import as_sequences
from jaxalign.options import TripleOptions
from jaxalign.runtime import backend
from jaxalign.triples import gpu
from jaxalign.triples.options import TripleRequest
from jaxalign.triples.plan import triples_of

COSTS = {"linear": Scoring(gap_open=4, gap_extend=4), "quasi-natural": Scoring()}
FAMILIES = (764, 776, 776), (1396, 1399, 1399)  # AKR1 and rpoC, real families
HUGE = (5000, 5000, 5000)
BATCH = 64
PLANES = 4e9  # cells times states; beyond it planes take seconds
VARIANTS = (
    {},
    {"early": 1, "unroll": 1},
    {"unroll": 1},
    {"batch": 4},
    {"batch": 16},
    {"bytes": True},
)


def jobs(large=False):
    """(model, lengths, triples, paths) of all rows, the small ones first."""
    found = []
    for lengths in papers_three.SIZES[3 if large else 0 :]:
        found += [("linear", lengths, 1, paths) for paths in (False, True)]
    for lengths in FAMILIES:
        found += [("quasi-natural", lengths, 1, paths) for paths in (False, True)]
    small = papers_three.SIZES[0]
    found += [("linear", small, BATCH, paths) for paths in (False, True)]
    found += [("quasi-natural", small, BATCH, True)]
    return [*found, *(("linear", HUGE, 1, paths) for paths in (False, True))]


def call(job, implementation="pallas"):
    """A call of the public function."""
    model, lengths, count, paths = job
    words = {"gap_model": model, "traceback": "auto" if paths else None}
    words["implementation"] = implementation
    if count == 1:
        texts = papers_three.triple(lengths)
        return lambda: align_three(*texts, COSTS[model], **words)
    texts = [papers_three.triple(lengths, seed) for seed in range(count)]
    return lambda: align_triples(texts, COSTS[model], **words)


def kernel(job, **shape):
    """The launch of a job, its data on the device already."""
    model, lengths, count, paths = job
    options = TripleOptions(
        gap_model=model, schedule="sloped", traceback="auto" if paths else None
    )
    texts = [x for seed in range(count) for x in papers_three.triple(lengths, seed)]
    kernels, scoring = backend.kernels()[0].three, COSTS[model]
    request = TripleRequest(options, gpu.budget(), kernels)
    triples = triples_of(as_sequences(texts, scoring.alphabet), scoring, request)
    batch = triples.batch(np.arange(count))
    data, usual = gpu.launch(batch, paths)
    if shape:
        sizes = (*(n - 1 for n in usual.face), usual.deep)
        usual = kernels.shape_of(sizes, usual.rule, triples=count, **shape)
    rows = jax.device_put(kernels.pack_triples(data, usual))
    letters = len(scoring.scores)

    def launch(wait=True):
        found = kernels.solve_packed(rows, usual, letters)
        return jax.block_until_ready(found) if wait else found

    return launch


def median(function, repeats):
    """(median seconds, last result) after one call that is not counted."""
    found = measure.in_turns({0: function}, repeats)[0]
    return found["seconds"], found["result"]


def queued_seconds(job, count=10):
    """Seconds a launch where the next is queued before the last has ended: the
    device's own time."""
    launch = kernel(job)
    launch()

    def several():
        for _ in range(count - 1):  # no result is held
            launch(wait=False)
        return launch()

    return measure.timed(several).seconds / count


def row(job, repeats, planes=True):
    """One job measured."""
    model, lengths, count, paths = job
    cells = count * papers_three.cells_of(lengths)
    seconds, result = median(call(job), repeats)
    first = result if count == 1 else result[0]
    found = {
        "gaps": model,
        "lengths": papers_three.text_of(lengths),
        "triples": count,
        "alignment": "yes" if paths else "no",
        "traceback": first.traceback,
        "call ms": 1e3 * seconds,
        "call Gcells/s": measure.gcups(cells, seconds),
        "GB planned": first.bytes["planned"] / 1e9,
    }
    if first.traceback != "split":
        alone, _ = median(kernel(job), repeats)
        found |= {"kernel ms": 1e3 * alone}
        found["kernel Gcells/s"] = measure.gcups(cells, alone)
        if model == "linear":
            found["queued ms"] = 1e3 * queued_seconds(job)
    if paths:
        results = [result] if count == 1 else result
        assert all(one.rescore() == one.score for one in results)
    if planes and _with_planes(job):
        planes, other = median(call(job, "planes"), 1)
        assert other.score == first.score, "the kernels' score is not the planes'"
        found |= {"planes ms": 1e3 * planes, "x planes": planes / seconds}
    return found


def _with_planes(job) -> bool:
    """Whether a job is also measured by planes: not where they take seconds."""
    model, lengths, count, paths = job
    states = 1 if model == "linear" else 7
    some = lengths not in papers_three.SIZES[1:3]
    cells = papers_three.cells_of(lengths)
    return count == 1 and not paths and some and cells * states < PLANES


def attempt(function, *arguments):
    """A row, or what went wrong: one failure does not lose the others."""
    try:
        return function(*arguments)
    except Exception as error:
        return {"failed": f"{arguments[0]}: {error!r}"[:300]}


def warmed(calls) -> None:
    """Compile side by side what will be measured one after the other."""
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda one: attempt(lambda _: one(), ""), calls))


def table(repeats, save, large=False):
    """All rows, or those of large tables without planes, printed and kept as they
    come."""
    found = jobs(large)
    calls = [call(job) for job in found if job[1] != HUGE or not job[3]]
    if not large:
        calls += [call(job, "planes") for job in found if _with_planes(job)]
    warmed(calls)
    rows, before = [], None
    for job in found:
        one = partial(row, planes=not large)
        rows.append(attempt(one, job, 2 if job[1] == HUGE else repeats))
        if job[3] and before == (*job[:3], False):
            for kind in {"call ms", "kernel ms"} & set(rows[-1]) & set(rows[-2]):
                rows[-1][f"x score, {kind}"] = rows[-1][kind] / rows[-2][kind]
        before = job
        save(rows)
        measure.show_line(rows[-1])


def variants(repeats, save):
    """Kernel times of other shapes, on the two largest sizes of both models."""
    work = [("linear", papers_three.SIZES[n], 1, False) for n in (3, 4)]
    work += [("quasi-natural", lengths, 1, False) for lengths in FAMILIES]
    launches = [(job, shape, partial(kernel, job, **shape)) for job in work
                for shape in VARIANTS]  # fmt: skip
    warmed([lambda make=make: make()() for _, _, make in launches])
    rows = []
    for job, shape, make in launches:
        made = attempt(lambda _, make=make: median(make(), repeats)[0], shape)
        one = {"gaps": job[0], "lengths": papers_three.text_of(job[1])}
        one |= {"shape": str(shape) or "usual"}
        if isinstance(made, dict):
            one |= made
        else:
            speed = measure.gcups(papers_three.cells_of(job[1]), made)
            one |= {"kernel ms": 1e3 * made, "Gcells/s": speed}
        rows.append(measure.show_line(one))
        save(rows)


def main(argv=None) -> None:
    parser = measure.arguments(__doc__, "json", repeats=5)
    parser.add_argument("--variants", action="store_true")
    parser.add_argument("--large", action="store_true", help="large tables alone")
    options = parser.parse_args(argv)
    machine = measure.machine()

    def save(rows):
        measure.save(options.json, {"machine": machine, "rows": rows})

    if options.variants:
        variants(options.repeats, save)
    else:
        table(options.repeats, save, options.large)


if __name__ == "__main__":
    main()
