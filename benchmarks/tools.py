"""One function a tool: it prepares a problem and returns the call that is timed.

Every call scores with BLOSUM62 and gap(k) = 11 + (k - 1). Each returns the scores of
its pairs in order, jaxalign's its table.
"""

from concurrent.futures import ThreadPoolExecutor

GAP_OPEN, GAP_EXTEND = 11, 1
PREFIX = {"local": "sw", "global": "nw", "semiglobal": "sg"}


def parasail_call(
    problem, mode, kernel: str, variant: str, threads: int, first=1, bits: str = "16"
):
    """All pairs i < j, or i <= j with ``first=0``.

    ``variant`` is ``""``, ``"stats_"`` or ``"trace_"``; ``bits`` "sat" tries 8 first.
    """
    import parasail

    # The stats kernels crash on a profile in parasail-python 1.3.4.
    plain = variant == "stats_"
    kind = bits if plain else f"profile_{bits}"
    profile = getattr(parasail, f"profile_create_{bits}")
    align = getattr(parasail, f"{PREFIX[mode]}_{variant}{kernel}_{kind}")
    last = (GAP_OPEN, GAP_EXTEND, parasail.blosum62)[: 3 if plain else 2]

    def one(query, target: str) -> int:  # a result is read and freed before the next
        return _read(align(query, target, *last), variant)

    def one_query(i: int) -> list[int]:
        query = problem.texts[i]
        if not plain:
            query = profile(query, parasail.blosum62)
        return [one(query, target) for target in problem.texts[i + first :]]

    return lambda: _in_threads(one_query, len(problem.texts), threads)


def _read(result, variant: str) -> int:
    """The score, once what the variant is for has been read too."""
    if variant == "trace_":
        _ = result.cigar.decode
    if variant == "stats_":
        _ = result.matches, result.length
    return result.score


def _in_threads(work, count: int, threads: int) -> list:
    """The lists of ``work(0..count-1)`` joined; the longest rows come first."""
    if threads == 1:
        return [score for i in range(count) for score in work(i)]
    with ThreadPoolExecutor(threads) as pool:
        return [score for row in pool.map(work, range(count)) for score in row]


def jaxalign_call(problem, mode: str, output: str, threads: int):
    """All pairs i < j in one call; returns the table."""
    from jaxalign.model.scoring import Scoring
    from jaxalign.pairs.api import align_all

    scoring = Scoring("BLOSUM62", GAP_OPEN, GAP_EXTEND)
    options = {"mode": mode, "threads": threads}
    options["output"] = "alignment" if output == "cigar" else output

    def call():
        table = align_all(problem.records, scoring, **options)
        if output == "cigar":
            _ = [table.cigar(i) for i in range(len(table))]
        return table

    return call


def biotite_call(problem, mode: str, pairs):
    """One alignment a pair, with the path."""
    from biotite.sequence import ProteinSequence
    from biotite.sequence.align import SubstitutionMatrix, align_optimal

    matrix = SubstitutionMatrix.std_protein_matrix()
    options = {"gap_penalty": (-GAP_OPEN, -GAP_EXTEND), "max_number": 1}
    options |= {"local": mode == "local", "terminal_penalty": mode != "semiglobal"}

    def one(i: int, j: int) -> int:
        a, b = ProteinSequence(problem.texts[i]), ProteinSequence(problem.texts[j])
        return align_optimal(a, b, matrix, **options)[0].score

    return lambda: [one(i, j) for i, j in pairs]


def biopython_call(problem, mode: str, pairs, path: bool):
    """One alignment a pair, or its score only."""
    from Bio.Align import PairwiseAligner, substitution_matrices

    aligner = PairwiseAligner()
    aligner.mode = "local" if mode == "local" else "global"
    aligner.substitution_matrix = substitution_matrices.load("BLOSUM62")
    aligner.open_gap_score, aligner.extend_gap_score = -GAP_OPEN, -GAP_EXTEND
    if mode == "semiglobal":
        aligner.end_gap_score = 0

    def one(i: int, j: int) -> float:
        a, b = problem.texts[i], problem.texts[j]
        return aligner.align(a, b)[0].score if path else aligner.score(a, b)

    return lambda: [one(i, j) for i, j in pairs]
