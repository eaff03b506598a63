"""Align a profile with sequences."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.inputs import SetLike
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import stacked
from jaxalign.model.choices import FreeEnd, Mode
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring
from jaxalign.options import PairOptions
from jaxalign.pairs.jobs import run
from jaxalign.signatures import with_options
from jaxalign.similarity.hard.api import hard_alignment
from jaxalign.similarity.options import SimilarityOptions

COLUMNS = 64  # targets are padded to a multiple of it, for few programs
CELLS = 2**24  # of a batch; a score and its direction are 3 bytes


@with_options(SimilarityOptions)
def align_profile(
    profile: Profile,
    targets: SetLike,
    *,
    gap_open: float | None = None,
    gap_extend: float | None = None,
    mode: Mode = "local",
    free_ends: Collection[FreeEnd] | None = None,
) -> list[Alignment]:
    """Align a profile with every target.

    Parameters
    ----------
    profile : Profile
        The query. The result shows its consensus.
    targets : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        See ``jaxalign.inputs``.
    gap_open, gap_extend : number, optional
        In the unit of the scores. By default the costs of the profile's positions, or
        11 and 1 if it has none.

    Returns
    -------
    list of Alignment
        In the order of the targets. Ties are resolved as in ``align``.

    Raises
    ------
    UsageError
        If only one of the two costs is given, or ``Scoring`` refuses them.
    InputError
        If a letter of a target is not in the profile's alphabet.

    Notes
    -----
    With constant costs the result is that of ``align``, which also takes a profile.
    Costs by position use ``hard_alignment``, which is several times slower.

    Examples
    --------
    >>> import jaxalign
    >>> profile = jaxalign.Profile.from_sequence("MKTAYIA")
    >>> best, _ = jaxalign.align_profile(profile, ["GGMKTAIAG", "MKV"])
    >>> best.score, best.cigar()
    (19, '4M')
    """
    if (gap_open is None) != (gap_extend is None):
        raise UsageError("gap_open and gap_extend go together: give both or neither")
    if gap_open is None and profile.gap_open is None:
        gap_open, gap_extend = 11.0, 1.0
    scoring = Scoring()
    if profile.alphabet != scoring.alphabet:
        letters = profile.alphabet.letters
        scoring = Scoring((letters, np.zeros((len(letters),) * 2)))
    sequences = inputs.sets(scoring, targets)[0]
    if gap_open is not None and gap_extend is not None:
        costs = Scoring(gap_open=gap_open, gap_extend=gap_extend)
        query, by_position = as_query(profile, costs)
        pair_options = PairOptions(mode=mode, free_ends=free_ends, output="alignment")
        table = run("cross", query, sequences, by_position, pair_options)
        return list(table.alignments())
    result: list[Any] = [None] * len(sequences)
    ends = {"mode": mode, "free_ends": free_ends}
    m, widths = len(profile), -(-np.maximum(sequences.lengths, 1) // COLUMNS) * COLUMNS
    batches: list[tuple[np.ndarray, int]] = []  # targets of like lengths
    for wide in np.unique(widths).tolist():
        index = np.flatnonzero(widths == wide)
        size = max(CELLS // (wide * max(m, 1)), 1)
        batches += [(index[k : k + size], wide) for k in range(0, len(index), size)]
    for index, wide in batches:
        if profile.gap_open is None or profile.gap_extend is None:
            raise UsageError(
                "the profile has only one of gap_open and gap_extend: give both"
            )
        opening, extending = (
            (skipped, np.broadcast_to(inserted[:, None], (m, wide)))
            for skipped, inserted in (profile.gap_open, profile.gap_extend)
        )
        codes = stacked(sequences, index, shape=(len(index), wide)).astype(np.intp)
        lengths = sequences.lengths[index].astype(np.int32)
        best = hard_alignment(
            profile.scores.astype(np.int16)[:, codes].swapaxes(0, 1),
            (np.full(len(index), m, np.int32), lengths),
            gap_open=opening,
            gap_extend=extending,
            **ends,
        )
        texts = [profile.alphabet.decode(sequences[k]) for k in index]
        written = best.alignments([profile.consensus] * len(texts), texts, scoring)
        for k, alignment in zip(index, written, strict=True):
            result[k] = alignment
    return result
