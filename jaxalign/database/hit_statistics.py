"""Bits and E-values of the hits of a search, published or fitted."""

from dataclasses import replace
from typing import get_args

from jaxalign.database import fitted
from jaxalign.database.hit_list import Hits
from jaxalign.database.options import SearchOptions, pair_options
from jaxalign.errors import UsageError
from jaxalign.model import fitted_statistics, statistics
from jaxalign.model.choices import Statistics
from jaxalign.model.table import Table


def sample_of(options: SearchOptions) -> fitted.Sample | None:
    """A sample that keeps some sequences of the database, if statistics are fitted.

    Raises
    ------
    UsageError
        An unknown word, or another mode than local.
    """
    if options.statistics not in get_args(Statistics):
        names = ", ".join(get_args(Statistics))
        raise UsageError(f"unknown statistics {options.statistics!r}: one of {names}")
    if options.statistics == "published":
        return None
    if options.mode != "local":
        raise UsageError(
            f"statistics = 'fitted': only local scores have them, not {options.mode}"
        )
    return fitted.Sample()


def added(
    table: Table, hits: Hits, sample: fitted.Sample | None, options: SearchOptions
) -> Table:
    """A table of hits with ``bits`` and ``evalue``; ``info`` says what was fitted."""
    score, m = table.columns["score"], table.lengths()[0]
    database = hits.residues, hits.sequences
    info = table.info | dict(zip(("residues", "sequences"), database, strict=True))
    if sample is None:
        known = statistics.parameters(table.scoring, table.mode)
        bits = statistics.bits(score, known)
        evalues = statistics.evalues(score, m, *database, known)
    else:
        scan = pair_options(options, "score")
        about = table.queries, sample, table.scoring, scan
        fits = fitted.fits(*about, table.info["implementation"])
        values = fits.values
        row = fitted_statistics.Fit(*(x[table.columns["query"]] for x in values))
        bits = fitted_statistics.bits(score, row)
        evalues = fitted_statistics.evalues(score, m, hits.residues, row)
        info |= {"statistics": "fitted", "lambda": values.lambda_, "K": values.k}
        info |= {"fitted_to": fits.sources}
    columns = table.columns | {"bits": bits, "evalue": evalues}
    return replace(table, columns=columns, info=info)
