"""From the columns of three sequences to what a caller gets."""

from functools import cache
from operator import itemgetter

from jaxalign.model.triple import TripleAlignment
from jaxalign.triples import fill_choice
from jaxalign.triples.paths import letters_of, texts_of


def results(
    texts, names, scoring, asked, plan, triples, solved
) -> list[TripleAlignment]:
    """What a caller gets of triples and their (score, part, columns): rows in the
    caller's order, scores unscaled."""
    implementation, schedule = fill_choice.name_of(triples[0], asked.schedule)
    how = schedule, plan["traceback"], implementation
    rows = _rows(scoring.alphabet, triples, solved)
    out = []
    for n, (triple, (score, part, _)) in enumerate(zip(triples, solved, strict=True)):
        back = _back(triple.order)
        shown = rows and back(rows[n])
        spans = rows and tuple(zip(back(part.low), back(part.high), strict=True))
        found = TripleAlignment(
            texts[n],
            names[n],
            score if scoring.scale == 1 else score / scoring.scale,
            shown,
            spans,
            scoring,
            asked.gap_model,
            asked.mode,
            *how,
            triple.done["cells"],
            dict(triple.done["seconds"]),
            dict(triple.done.get("bytes", {})) | {"planned": plan["bytes"]},
        )
        out.append(found)
    return out


def _rows(alphabet, triples, solved):
    """The gapped rows of every path, or None for scores alone."""
    _, parts, paths = zip(*solved, strict=True)
    if paths[0] is None:
        return None
    letters = letters_of(triples, parts)
    return texts_of(alphabet, letters, paths)


@cache
def _back(order):
    """Three things in the order of the axes -> in the caller's."""
    return itemgetter(*(order.index(n) for n in range(3)))
