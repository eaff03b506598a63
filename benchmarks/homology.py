"""The exact filter: how fast subsequences are counted, and what that saves.

    python -m benchmarks.homology lcs      # values by Python's integers, then rates
    python -m benchmarks.homology filter   # Swiss-Prot proteins, with and without
    python -m benchmarks.homology filter --count 12071 --sample 1500
    python -m benchmarks.homology cdr3 [--peptides olga.tsv]  # 10^5 peptides, a graph

``lcs`` times one core and, where there is one, a GPU, at several lengths. ``filter``
keeps all pairs of some proteins at two cuts, and all pairs of a sample of them without
the filter, whose seconds it scales by cells. The second run of a sample is timed, and
of all where the first took less than a minute. ``cdr3`` makes the graph of all pairs at
0.8 over the longer of peptides of a TSV (as ``olga-generate_sequences --humanTRB -n
100000 -o olga.tsv`` writes it, the second column), or of random ones of like lengths,
and compares that of 1,000 of them with one made without the filter.
"""

from functools import partial
from pathlib import Path

import jax
import measure
import numpy as np
import problems

import jaxalign
import kernels_pallas
from jaxalign.model.alphabet import Sequences, as_sequences
from jaxalign.options import PairOptions
from jaxalign.pairs import compiled
from jaxalign.pairs.options import make_task
from jaxalign.pairs.proofs.lcs_launches import LcsLaunches
from jaxalign.words import cpu, match_vectors

SCORING = jaxalign.Scoring()
LENGTHS = (100, 200, 400, 800, 1600, 3000, 4000)
CUTS = (
    {"min_identity": 0.4, "identity": "longer"},
    {"min_identity": 0.5, "identity": "shorter", "min_length_ratio": 0.8},
)
CHECKED = 40  # queries and targets whose counts are compared


def proteins(count: int, length: int, seed: int = 1) -> Sequences:
    """Random proteins of one length."""
    texts = problems.random_texts(np.random.default_rng(seed), [length] * count)
    return as_sequences(texts, SCORING.alphabet)


def by_integers(a, b) -> int:
    """LCS of two arrays of codes: V is one integer of Python."""
    match = {x: sum(1 << int(j) for j in np.flatnonzero(b == x)) for x in {*a.tolist()}}
    everywhere = (1 << len(b)) - 1
    v = everywhere
    for x in a.tolist():
        u = v & match[x]
        v = ((v + u) | (v & ~match[x])) & everywhere
    return len(b) - v.bit_count()


def cpu_rate(length: int) -> float:
    """Cells a second of one core, 256 queries with 128 targets."""
    queries, targets = proteins(256, length), proteins(128, length, 2)
    everyone = np.arange(256)
    letters = match_vectors.query_letters(queries, everyone, SCORING.alphabet.size)
    some, columns = slice(0, 256), np.arange(128)

    def call():
        return cpu.lcs_block(letters, some, targets, columns, SCORING.alphabet)

    check(queries, targets, call())
    return 256 * 128 * length**2 / measure.median_seconds(call)


def gpu_rates(length: int) -> tuple[float, float]:
    """Cells a second of a GPU, 64 queries with 16,384 targets: the kernel alone, and
    with its letters laid out and its counts on the host."""
    queries, targets = proteins(64, length), proteins(16384, length, 2)
    task = make_task("cross", queries, targets, SCORING, PairOptions())
    launches = LcsLaunches(task, kernels_pallas)
    rows, columns = np.arange(64), np.arange(16384)

    def whole():
        return launches.count(rows, columns, None)

    check(queries, targets, whole())
    padding, wildcard = SCORING.alphabet.size, SCORING.alphabet.wildcard_code
    words = kernels_pallas.query_words(length)
    sides = [
        (x.codes, x.starts.astype(np.int32), x.lengths.astype(np.int32))
        for x in (queries, targets)
    ]
    options = {"padding": padding, "wildcard": wildcard, "words": words}
    table = kernels_pallas.match_table(*sides[0], **options)
    room = len(targets) // 128 * -(-length // 4)
    blocks = kernels_pallas.target_blocks(*sides[1], padding=padding, room=room)
    kernel = jax.jit(lambda *given: kernels_pallas.subsequences(*given, words=words))
    call, cells = measure.ready(kernel, table, blocks), 64 * 16384 * length**2
    return cells / measure.median_seconds(call), cells / measure.median_seconds(whole)


def check(queries, targets, found) -> None:
    """Compare some counts with those of Python's integers."""
    some = [slice(k) for k in (min(CHECKED, len(queries)), min(CHECKED, len(targets)))]
    want = [
        [by_integers(queries[i], targets[j]) for j in range(some[1].stop)]
        for i in range(some[0].stop)
    ]
    np.testing.assert_array_equal(found[some[0], some[1]], want)


def rates() -> None:
    """Print cells a second at several lengths."""
    gpu, why = kernels_pallas.supported()
    print(f"GPU: {why}")
    for length in LENGTHS:
        if gpu:
            kernel, whole = gpu_rates(length)
            print(
                f"{length:5} residues: kernel {kernel / 1e12:.1f} TCUPS, "
                f"with the host {whole / 1e12:.1f}"
            )
        else:
            print(f"{length:5} residues: {cpu_rate(length) / 1e9:.0f} GCUPS of a core")


def swissprot(count: int) -> Sequences:
    """The first of the proteins in a random order; U and O are read as X."""
    records = problems.read_fasta(problems.SWISSPROT, masked="UOJ")
    order = np.random.default_rng(7).permutation(len(records))[:count]
    return as_sequences([records[k] for k in order], SCORING.alphabet)


def compare(count: int, sample: int) -> None:
    """Print what the filter takes and saves."""
    everyone, few = swissprot(count), swissprot(sample)
    name = compiled.choose(None)[0]
    print(f"{name}; {count:,} proteins, without the filter {sample:,}")
    for cut in CUTS:
        first, _, table = timed(everyone, cut)
        taken = timed(everyone, cut).seconds if first < 60 else first
        slow, _, plain = [timed(few, cut | {"filter": False}) for _ in range(2)][1]
        info, cells = table.info, plain.info["cells"]
        whole = slow * info["cells"] / cells
        print(cut)
        print(f"  {taken:.1f} s, the first run {first:.1f}; {len(table):,} rows")
        print(f"  {info['aligned_pairs']:,} of {info['pairs']:,} pairs aligned")
        for inequality, excluded in info["excluded"].items():
            print(f"  {excluded:,} excluded by {inequality}")
        print(f"  without the filter {slow:.1f} s for {cells:,} cells")
        print(f"  so {whole:.0f} s for {info['cells']:,}: {whole / taken:.1f} times")


def timed(sequences, options) -> measure.Timed:
    """The identities of all pairs."""
    call = partial(jaxalign.align_all, sequences, output="identity", **options)
    return measure.timed(call)


HEADS = ("CASS", "CASS", "CASS", "CASR", "CAS", "CSAR", "CAWS")
TAILS = ("EQYF", "EAFF", "ETQYF", "NEQFF", "TEAFF", "YTF", "YEQYF", "GELFF", "KLFF")
CDR3_LENGTH = (14.6, 2.4)  # mean and deviation, as those of olga's human TRB
CDR3_CUT, CDR3_CHECKED = 0.8, 1000


def peptides(count: int) -> list[str]:
    """Random peptides that begin and end as CDR3 of human TRB do."""
    dice = np.random.default_rng(5)
    lengths = np.clip(dice.normal(*CDR3_LENGTH, count).round().astype(int), 10, 20)
    letters = np.array(list("GSTAQREPLDNVFYWKIHM"))
    found = []
    for length in lengths.tolist():
        ends = HEADS[dice.integers(len(HEADS))], TAILS[dice.integers(len(TAILS))]
        middle = dice.choice(letters, max(length - len("".join(ends)), 0))
        found.append(ends[0] + "".join(middle) + ends[1])
    return found


def cdr3(path: Path | None, count: int) -> None:
    """Print what a graph of peptides takes, after a check of some of them."""
    if path is None:
        some = peptides(count)
    else:
        lines = path.read_text().splitlines()[:count]
        some = [line.split("\t")[1] for line in lines]
    few = some[:CDR3_CHECKED]
    want = jaxalign.identity_graph(
        few, min_identity=CDR3_CUT, filter=False, link="whole"
    )
    found = jaxalign.identity_graph(few, min_identity=CDR3_CUT, link="whole")
    if found.nnz != want.nnz or (found != want).nnz:
        raise SystemExit("the filter changed links")
    call = partial(jaxalign.identity_graph, some, min_identity=CDR3_CUT)
    seconds, cpu, graph = measure.timed(call)
    print(
        f"{len(some):,} peptides, {graph.nnz // 2:,} links: {seconds:.1f} s, "
        f"{cpu:.1f} CPU seconds, at most {measure.peak_gib() * 1024:,.0f} MiB"
    )


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("what", choices=("lcs", "filter", "cdr3"))
    parser.add_argument("--count", type=int)
    parser.add_argument("--peptides", type=Path)
    parser.add_argument("--sample", type=int, default=800)
    options = parser.parse_args()
    if options.what == "lcs":
        rates()
    elif options.what == "cdr3":
        cdr3(options.peptides, options.count or 100_000)
    else:
        compare(options.count or 12071, options.sample)


if __name__ == "__main__":
    main()
