"""Alignments by position, and the letters that stand there, as a table."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jaxalign.model.alignment import SPANS, Alignment
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import Table

COUNTS = ("identities", "columns", "gap_openings", "gaps")


def lettered(
    alignments: Sequence[Alignment],
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    mode: str,
) -> Table:
    """A table of alignments of whatever scores, with the letters of two sets.

    Parameters
    ----------
    alignments : of sequences with the names of ``queries`` and ``targets``
        Their own letters do not count.
    queries, targets : Sequences
    scoring : of letters and identities
    mode : of all alignments
    """
    places = [
        {name: k for k, name in enumerate(side.names)} for side in (queries, targets)
    ]
    texts = queries.texts(), targets.texts()
    at = np.array(
        [(places[0][x.query_name], places[1][x.target_name]) for x in alignments],
        np.int32,
    ).reshape(-1, 2)
    rows = [
        replace(x, query=texts[0][i], target=texts[1][j])
        for x, (i, j) in zip(alignments, at.tolist(), strict=True)
    ]
    columns = {"query": at[:, 0], "target": at[:, 1]}
    columns["score"] = np.array([x.score for x in rows], float)
    for name in (*SPANS, *COUNTS):
        columns[name] = np.array([getattr(x, name) for x in rows], np.int32)
    runs = [x.operations for x in rows]
    offsets = np.concatenate([[0], np.cumsum([len(run) for run in runs])])
    return Table(
        columns=columns,
        queries=queries,
        targets=targets,
        scoring=scoring,
        mode=mode,
        free_ends=alignments[0].free_ends if alignments else frozenset(),
        implementation="scored",
        operations=np.concatenate([np.zeros(0, np.uint32), *runs]).astype(np.uint32),
        operation_offsets=offsets.astype(np.int64),
    )
