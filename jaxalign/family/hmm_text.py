"""A profile as a HMMER3 text file.

Emissions are P_a exp(unit s_a). With gaps of ``open`` and ``extend`` nats, ends of the
costs that ``Profile.from_hmm`` reads back:

    d = exp(-extend) from D to D,  x = exp(-open) / (1 - d),  M to M 1 / (1 + 2 x),
    M to D, and M to I, x / (1 + 2 x).
"""

from collections.abc import Iterator
from math import exp, log

import numpy as np

from jaxalign.model.profile import Profile
from jaxalign.model.profile_counts import FREQUENCIES, RESIDUES

ORDER = [RESIDUES.index(letter) for letter in sorted(RESIDUES)]
HEADING = ("m->m", "m->i", "m->d", "i->m", "i->i", "d->m", "d->d")
# Of a gap without cost for its further residues: a model needs an end of it.
MOST_EXTENDED = 0.999


def lines(
    name: str, profile: Profile, gap_open: float, gap_extend: float, rows: int
) -> Iterator[str]:
    """The file, line by line; costs are those of the profile's unit."""
    yield "HMMER3/f [jaxalign]\n"
    yield f"NAME  {name}\nLENG  {len(profile)}\nALPH  amino\nRF    no\nMM    no\n"
    yield f"CONS  yes\nCS    no\nMAP   no\nNSEQ  {rows}\n"
    yield f"HMM     {_words(sorted(RESIDUES))}\n        {_words(HEADING)}\n"
    moves = transitions(gap_open * profile.unit, gap_extend * profile.unit)
    background = _numbers(FREQUENCIES[ORDER])
    yield f"        {background}\n        {_numbers(_first(moves))}\n"
    for k, row in enumerate(_emissions(profile), 1):
        letter = profile.consensus[k - 1].lower()
        yield f"{k:7d} {_numbers(row)} - {letter} - - -\n        {background}\n"
        last = k == len(profile)
        yield f"        {_numbers(_last(moves) if last else moves)}\n"
    yield "//\n"


def transitions(opening: float, extending: float) -> list[float]:
    """Probabilities from M to M, I and D, from I to M and I, from D to M and D."""
    more = min(exp(-extending), MOST_EXTENDED)
    x = exp(-opening) / (1 - more)
    whole = 1 + 2 * x
    return [1 / whole, x / whole, x / whole, 1 - more, more, 1 - more, more]


def _first(moves: list[float]) -> list[float]:
    """Before the first position there is no deletion to come from."""
    return [*moves[:5], 1.0, 0.0]


def _last(moves: list[float]) -> list[float]:
    """Behind the last position no deletion begins."""
    match, insert = moves[:2]
    total = match + insert
    return [match / total, insert / total, 0.0, *moves[3:5], 1.0, 0.0]


def _emissions(profile: Profile) -> np.ndarray:
    """(m, 20), in HMMER's order of letters."""
    odds = np.exp(profile.unit * profile.scores[:, : len(RESIDUES)])
    emitted = odds * FREQUENCIES
    return (emitted / emitted.sum(1, keepdims=True))[:, ORDER]


def _words(words) -> str:
    return " ".join(f"{word:>8}" for word in words)


def _numbers(probabilities) -> str:
    """-ln of each, * of 0."""
    return _words(f"{abs(log(p)):.5f}" if p > 0 else "*" for p in probabilities)
