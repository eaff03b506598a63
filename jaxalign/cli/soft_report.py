"""The results of ``jaxalign soft``, computed, printed and saved."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.io import output, picture
from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring
from jaxalign.similarity.soft import api
from jaxalign.similarity.soft.accuracy import mea_alignment


@dataclass(frozen=True, eq=False)
class Found:
    """The model of one pair: names, (m, n) posterior, scores in the matrix's units."""

    names: tuple[str, str]
    posterior: np.ndarray
    score: float
    identities: float
    entropy: float


def compute(query: Any, target: Any, scoring: Scoring, model: dict) -> Found:
    """Score, posterior, expected identities and entropy of two single sequences."""
    codes = query[0].astype(np.int32), target[0].astype(np.int32)
    scores = np.asarray(scoring.scores / scoring.scale, np.float32)
    pair = (*codes, scores)
    model = model | {"gap_open": scoring.gap_open, "gap_extend": scoring.gap_extend}
    posterior = np.asarray(api.soft_posterior(pair, **model))
    same = scoring.identical[np.ix_(*codes)]
    return Found(
        (query.names[0], target.names[0]),
        posterior,
        float(api.soft_score(pair, **model)),
        float(posterior[same].sum()),
        float(api.alignment_entropy(pair, **model)),
    )


def lines(
    result: Found,
    query: Any,
    target: Any,
    scoring: Scoring,
    settings: dict,
    threshold: float,
):
    """The lines for standard output: numbers, then the alignment of its core."""
    texts = query.text(0), target.text(0)
    mea = mea_alignment(
        result.posterior, *texts, scoring, threshold=threshold, **settings
    )
    yield "query\ttarget\tsoft_score\texpected_pairs\texpected_identities\tentropy"
    numbers = result.score, result.posterior.sum(), result.identities, result.entropy
    names = map(written, result.names)
    yield "\t".join([*names, *(f"{number:.4f}" for number in numbers)])
    yield ""
    yield f"most accurate alignment: {mea.cigar()}, {mea.score:.2f} pairs expected"
    yield from mea.rows()


def save(path: str, result: Found) -> None:
    """The npz file: ``posterior`` (m, n), ``score``, ``entropy``, ``names``."""

    def fill(temporary: str):
        with open(temporary, "wb") as handle:
            np.savez_compressed(
                handle,
                posterior=result.posterior,
                score=result.score,
                entropy=result.entropy,
                names=np.array(result.names),
            )

    output.write_file(path, fill)


def draw(path: str, result: Found) -> None:
    """The picture of the posterior."""
    picture.heat_map(path, result.posterior, *result.names)
