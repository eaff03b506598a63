"""Both strands of queries as sequences, and rows of a table that say their strand."""

from dataclasses import replace

import numpy as np

from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.strands import MINUS, PLUS, reverse_complement
from jaxalign.model.table import Table


def by_strands(queries: Sequences, strands: tuple[int, ...]) -> Sequences:
    """The queries of the first strand, then those of the second."""
    if strands == (PLUS,):
        return queries
    minus = reverse_complement(queries)
    if strands == (MINUS,):
        return minus
    sets = queries, minus
    parts = [sequences[k] for sequences in sets for k in range(len(sequences))]
    return from_parts(queries.names * 2, parts, queries.alphabet)


def along_plus(table: Table, queries: Sequences, strand: np.ndarray) -> Table:
    """The same rows of the queries as they were given, with a column ``strand``.

    Spans of a query count along its plus strand; operations stay those of the strand
    that is aligned, along the target.

    Parameters
    ----------
    table : of either strand of each query, ``query`` an index into ``queries``
    strand : int8 (rows,), 1 or -1
    """
    columns = table.columns | {"strand": strand}
    if "query_start" in columns:
        m = queries.lengths[columns["query"]].astype(np.int32)
        start, end = columns["query_start"], columns["query_end"]
        columns["query_start"] = np.where(strand == MINUS, m - end, start)
        columns["query_end"] = np.where(strand == MINUS, m - start, end)
    return replace(table, columns=columns, queries=queries)
