"""Groups of ``golden_jobs`` that align three sequences."""

from golden_draw import DNA, PROTEIN, Draw
from golden_groups import Group, matching, name_of

import jaxalign

# name: (makes the scoring, letters of the sequences)
SCORINGS = {
    "affine": (jaxalign.Scoring, PROTEIN),
    "linear": (lambda: jaxalign.Scoring("BLOSUM62", 4, 4), PROTEIN),
    "half": (lambda: jaxalign.Scoring("BLOSUM62", 10, 0.5), PROTEIN),
    "dna": (lambda: matching(3, -2, 2, 1), DNA),
    "dna linear": (lambda: matching(3, -2, 2, 2), DNA),
}


def triples(scoring, count=25, low=15, high=30, **options) -> Group:
    """``align_triples``; lengths from ``low`` to ``high`` are one batch."""
    name = name_of("align_triples", scoring, options, f"{count} of {low} to {high}")

    def run(folder):
        make, letters = SCORINGS[scoring]
        some = _triples(Draw(name), count, letters, low, high)
        return jaxalign.align_triples(some, make(), **options)

    return Group(name, run)


def three(scoring, count=5, low=40, high=48, **options) -> Group:
    """``align_three``, a call a job."""
    name = name_of("align_three", scoring, options, f"{count} of {low} to {high}")

    def run(folder):
        make, letters = SCORINGS[scoring]
        some = _triples(Draw(name), count, letters, low, high)
        return [jaxalign.align_three(*each, make(), **options) for each in some]

    return Group(name, run)


def _triples(draw, count, letters, low, high):
    return [_triple(draw, letters, low, high) for _ in range(count)]


def _triple(draw, letters, low, high):
    """Three relatives, one of them at times something else; half have names."""
    first = draw.text(high, letters)
    texts = [draw.relative(first, letters, high) for _ in range(3)]
    if draw.number(4) == 0:
        texts[2] = draw.repeats(high, letters)
    if draw.number(4) == 0:
        texts[0] = draw.text(low + draw.number(high - low + 1), letters)
    texts = [(text + first)[: max(low, len(text))] for text in texts]
    if draw.number(2):
        return tuple((f"s{k}", text) for k, text in enumerate(texts))
    return tuple(texts)
