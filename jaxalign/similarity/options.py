"""Options of the functions of similarities: one record, and what each takes of it.

Parameters
----------
similarity : (..., m, n) array, or (query codes, target codes, matrix), or embeddings
    Embeddings are (query (..., m, k), target (..., n, k)), whose dot products are the
    similarity. Any leading batch axes; narrower floats are computed in float32.
    Entries at or below -1e29 (and -inf) forbid the pair.
lengths : (query lengths, target lengths), each of the batch shape; or (..., 2)
    What lies beyond them never counts, and its gradient is exactly 0.
gap_open, gap_extend : number, an array of the batch shape, (..., m, n), or a pair
    0 or more; numbers, extending at most opening (checked outside of ``jit`` alone).
    A pair gives (costs of the query's residues, costs of the target's): a number, a
    vector (..., m) or (..., n) over the sequence, or (..., m, n). A number in a pair
    goes for every position. Of (..., m, n) a gap of the query's residue i after the
    target's residue j reads entry [i, j], before the first residue of the target
    [i, 0]; gaps of the target's residues likewise. Beside residues that hang over
    freely, a gap at the start is after them, and one at the end before them.
temperature : number or array of the batch shape, from 1e-20 to 1e20
mode : {"global", "semiglobal", "local"}
    semiglobal frees all four end gaps.
free_ends : collection of str, optional
    With mode global, ends that may hang over free of cost: any of "query_start",
    "query_end", "target_start", "target_end".
adjacent_gaps : bool, default True
    False forbids an insertion next to a deletion, biotite's rule for affine costs,
    whatever the costs are. In mode local that is between two pairs. Otherwise
    residues of one sequence alone, hanging over freely or not, stand before the first
    pair, and behind the last; and there is a pair, unless a sequence is empty.
band : int, or (first, last), optional
    ``first`` and ``last``, NumPy integers (..., m) that do not fall: residue i of the
    query may meet those of the target from first[i] to last[i] (from 0), as between
    anchors. Or a half width around the scaled diagonal, in
    ``jaxalign.similarity.band``: for equal lengths ``|i - j| <= band``. As if the
    similarity beyond it were -inf and gap costs infinite; that work is saved. Gap costs
    are numbers or by residue then.
implementation : {"log", "blocked", "scaled", "rows", "pallas", "numpy"}, optional
    ``numpy`` needs no compiler, and is the default for small NumPy arrays without a
    band: of m + n <= 512 and, for the pairs of a batch together, m (m + n) <= 2^17.
    ``log`` keeps all diagonals for the gradient, ``blocked`` some of them and computes
    the others anew; by default the second where the first needs more than 128 MiB. In
    its scores, gradients and log probabilities the product of embeddings is not stored.
    ``rows`` is the fastest on a CPU, for float32, gap costs that are numbers and
    adjacent gaps: it works without logarithms, and computes pairs as ``log`` does where
    it cannot prove that less than 1e-7 of the probability is lost. It is the default on
    a CPU from 2^22 cells of a similarity on, and from 2^19 for gradients of local
    alignments by the similarity alone; below, compiling it takes longer. ``scaled`` is
    an older name of ``rows``, and ``log`` for what rows do not take. ``pallas``, for a
    GPU, is the default for what it takes. Entropies, dF/dT are always those of ``log``.
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
