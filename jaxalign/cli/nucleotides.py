"""Nucleotides in a file: known by their letters, and scored as what they are.

Only where nothing on the command line says what the letters are: no alphabet, no
matrix, and no preset, or that of needle, which does the same.
"""

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.cli.options import ScoringOptions
from jaxalign.cli.request import scoring_of
from jaxalign.io import encoded_database, fasta, source
from jaxalign.model.nucleotides import BLOCK, has_uracil, look_nucleic
from jaxalign.model.scoring import Scoring

PLAIN = np.frombuffer(b"ACGTUNacgtun", np.uint8)


def scoring_for(
    texts: Any,
    scoring: Scoring,
    options: ScoringOptions,
    what: str,
    warn: Callable[[str], object],
    beside: Any = (),
) -> Scoring:
    """The scoring of a job whose letters are known.

    Parameters
    ----------
    texts : list of uint8 arrays
        ASCII.
    scoring : Scoring
        That of the options, before anything was read.
    options : ScoringOptions
    what : str
        The files, for messages.
    warn : callable
        Takes what a person should know.
    beside : sequence of uint8 arrays
        Letters of what the files are searched in.
    """
    if options.alphabet != "auto" or scoring.alphabet.kind != "protein":
        return scoring
    free = options.matrix is None and options.preset in (None, "needle")
    if not (free and look_nucleic([*texts, *beside])):
        if look_nucleic(texts) or _plain(texts):
            warn(
                f"all letters of {what} are nucleotides', scored as protein: "
                "--alphabet dna or --preset blastn scores them as nucleotides"
            )
        return scoring
    kind = "rna" if has_uracil(texts) else "dna"
    chosen = scoring_of(replace(options, alphabet=kind))
    warn(
        f"all letters of {what} are nucleotides', scored as {kind} ({chosen}): "
        "--alphabet protein scores them as protein"
    )
    return chosen


def opening(path: str) -> list[np.ndarray]:
    """The first letters of a database that is read in blocks, or mapped.

    Of an index its alphabet counts, not its letters: all of that are given, none where
    it is one of nucleotides. A pipe is left alone, since it can be read once.
    """
    if not os.path.isfile(path):
        return []
    if encoded_database.is_database(path):
        alphabet = encoded_database.open_database(path).alphabet
        letters = np.frombuffer(alphabet.letters.encode(), np.uint8)
        return [] if alphabet.kind in ("dna", "rna") else [letters]
    texts, count = [], 0
    with source.open_text(path) as handle:
        fasta.check_first_line(path, handle)
        for _, letters in fasta.records(handle):
            texts.append(np.frombuffer(letters, np.uint8))
            count += len(letters)
            if count >= BLOCK:
                break
    return texts


def _plain(texts: Any) -> bool:
    """Whether letters, too few to be sure, are all A, C, G, T, U or N."""
    filled = [text for text in texts if len(text)]
    heads = (text[:BLOCK] for text in filled)  # which a long protein does not pass
    parts = itertools.chain(heads, filled)
    return bool(filled) and all(np.isin(text, PLAIN).all() for text in parts)
