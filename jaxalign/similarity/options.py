"""Options of the functions of similarities: one record, and what each takes of it.

Parameters
----------
similarity : (..., m, n) array, or (query codes, target codes, matrix), or embeddings
    Similarity of each query residue to each target residue. Embeddings are
    (query (..., m, k), target (..., n, k)), and their dot products are the similarity.
    Leading axes are batch axes. Floats narrower than float32 are computed in float32.
    Entries at or below -1e29 (and -inf) forbid the pair.
lengths : (query lengths, target lengths), each of the batch shape; or (..., 2)
    Lengths of padded sequences; by default m and n. Entries beyond them never count,
    and their gradients are exactly 0.
gap_open, gap_extend : number, an array of the batch shape, (..., m, n), or a pair
    Costs in the unit of the similarity, 0 or more: a gap of k residues costs
    gap_open + (k - 1) * gap_extend. If both are numbers, gap_extend must not exceed
    gap_open (checked only outside ``jit``). A pair gives (costs of query residues,
    costs of target residues): each a number for all positions, a vector (..., m) or
    (..., n) over the sequence, or (..., m, n). With (..., m, n), a gap of query residue
    i after target residue j reads entry [i, j], or [i, 0] before the first target
    residue; gaps of target residues likewise. Next to free overhanging residues, a gap
    at the start comes after them and a gap at the end before them.
temperature : number or array of the batch shape, from 1e-20 to 1e20, default 1.0
    In the unit of the similarity. Higher values spread the probability over more
    alignments.
mode : {"global", "semiglobal", "local"}
    How sequences are aligned; semiglobal makes all four end gaps free.
free_ends : collection of str, optional
    Ends whose gaps are free, in mode global: any of "query_start", "query_end",
    "target_start", "target_end".
adjacent_gaps : bool, default True
    False forbids an insertion next to a deletion, whatever the costs are (biotite's
    rule for affine costs). In mode local the rule applies between two pairs. In the
    other modes, it also allows residues of only one sequence before the first pair and
    after the last one, overhanging freely or not, and requires at least one pair unless
    a sequence is empty.
band : int, or (first, last), optional
    ``first`` and ``last`` are non-decreasing NumPy integers (..., m): query residue i
    may pair with target residues first[i] to last[i], inclusive and counted from 0, as
    between anchors. An int is a half width around the scaled diagonal, defined in
    ``jaxalign.similarity.band``: for equal lengths ``|i - j| <= band``. The result is
    as if the similarity outside the band were -inf and gap costs infinite, and cells
    outside are not computed. Gap costs must be numbers or vectors over residues.
implementation : {"log", "blocked", "scaled", "rows", "pallas", "numpy"}, optional
    ``numpy`` needs no compiler. It is the default for small NumPy arrays: m + n
    <= 512 and, summed over a batch, m (m + n) <= 2^17.
    ``log`` keeps all diagonals for the gradient. ``blocked`` keeps some and recomputes
    the rest; it is the default where ``log`` would need more than 128 MiB. Its scores,
    gradients and log probabilities do not store the product of embeddings.
    ``rows`` is the fastest on a CPU, for float32, gap costs that are numbers, and
    adjacent gaps. It works without logarithms, and computes a pair as ``log`` does
    unless it can prove that less than 1e-7 of the probability is lost. It is the
    default on a CPU from 2^22 cells of a similarity, or from 2^19 for gradients of
    local alignments by the similarity alone; for smaller ones, compiling it takes
    longer. ``scaled`` is an older name of ``rows``, and uses ``log`` for what ``rows``
    does not support. ``pallas`` is the default on a GPU for what it supports. Entropies
    and dF/dT always use ``log``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Required, TypedDict

from numpy.typing import ArrayLike

from jaxalign.model.choices import EndKeywords, FreeEnd, Mode
from jaxalign.similarity.arguments import Band, GapCost

SoftImplementation = Literal["log", "blocked", "scaled", "rows", "pallas", "numpy"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarityOptions:
    """Every option, with its default; gap costs have none. Hard alignment has neither
    ``temperature`` nor ``implementation``."""

    gap_open: GapCost
    gap_extend: GapCost
    temperature: ArrayLike = 1.0
    mode: Mode = "global"
    free_ends: Collection[FreeEnd] | None = None
    adjacent_gaps: bool = True
    band: Band = None
    implementation: SoftImplementation | None = None


class HardKeywords(EndKeywords, total=False):
    """Options of the best alignments."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    adjacent_gaps: bool
    band: Band


class HitKeywords(TypedDict, total=False):
    """Options of local hits."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    adjacent_gaps: bool
    band: Band


class SharedKeywords(EndKeywords, total=False):
    """Options that are no numbers, so that models to be compared share them."""

    adjacent_gaps: bool
    band: Band
    implementation: SoftImplementation | None


class SoftKeywords(SharedKeywords, total=False):
    """Options of the soft functions."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    temperature: ArrayLike
