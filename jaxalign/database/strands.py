"""A search of both strands: each query twice, and its best hits of both together."""

from dataclasses import replace

import numpy as np

from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.strands import MINUS, PLUS, reverse_complement
from jaxalign.model.table import Table

Strands = tuple[int, ...] | None


def laid_out(queries: Sequences, strands: Strands) -> Sequences:
    """The queries of the first strand, then those of the second."""
    if strands in (None, (PLUS,)):
        return queries
    minus = reverse_complement(queries)
    if strands == (MINUS,):
        return minus
    sets = queries, minus
    parts = [sequences[k] for sequences in sets for k in range(len(sequences))]
    return from_parts(queries.names * 2, parts, queries.alphabet)


def best(table: Table, queries: Sequences, strands: Strands, top: int) -> Table:
    """The best ``top`` rows of each query, of all its strands: by score, then by the
    order of the database, then plus before minus."""
    if strands is None or len(strands) == 1:
        return table
    strand, query = np.divmod(table.columns["query"], max(len(queries), 1))
    order = np.lexsort(
        (strand, table.columns["target"], -table.columns["score"], query)
    )
    sorted_query = query[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_query, sorted_query)
    return table.filter(order[rank < top])


def named(table: Table, queries: Sequences, strands: Strands) -> Table:
    """The same rows of the queries as they were given, with a column ``strand``;
    ``info`` says which ones were aligned.

    Spans of a query count along its plus strand; operations stay those of the strand
    that is aligned, along the target.
    """
    if strands is None:
        return table
    which, query = np.divmod(table.columns["query"], max(len(queries), 1))
    strand = np.array(strands, np.int8)[which]
    columns = table.columns | {"query": query.astype(np.int32), "strand": strand}
    if "query_start" in columns:
        m = queries.lengths[query].astype(np.int32)
        start, end = columns["query_start"], columns["query_end"]
        columns["query_start"] = np.where(strand == MINUS, m - end, start)
        columns["query_end"] = np.where(strand == MINUS, m - start, end)
    info = table.info | {"strands": strands}
    return replace(table, columns=columns, queries=queries, info=info)
