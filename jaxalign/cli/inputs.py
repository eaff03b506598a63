"""Read the inputs of a job, and say what was taken for what."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxalign.cli.nucleotides import scoring_for
from jaxalign.cli.options import ScoringOptions
from jaxalign.errors import UsageError
from jaxalign.io import fasta, source
from jaxalign.io.encoded_database import is_database, mapped
from jaxalign.model.alphabet import Sequences
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring


@dataclass(frozen=True, eq=False)
class Inputs:
    """The sequences of each file, in the order given, and how they are scored."""

    paths: tuple[str, ...]
    sequences: tuple[Sequences, ...]
    substituted: tuple[int, ...]
    hashes: tuple[str | None, ...]
    scoring: Scoring


def read(
    paths: tuple[str, ...],
    scoring: Scoring,
    options: ScoringOptions,
    hashed: bool,
    warn: Callable[[str], object],
    beside: Any = (),
    profile: bool = False,
) -> Inputs:
    """Read every file; ``warn`` takes what a person should know.

    With ``profile`` the first file is one, and the others have its letters. ``scoring``
    is that of the options; where they leave it open, nucleotides, known by
    the letters of the files and of the texts ``beside`` them, have another.

    Raises
    ------
    UsageError
        Standard input is to be read twice.
    InputError
        See ``io.fasta``.
    """
    if paths.count("-") > 1:
        raise UsageError("'-' twice: standard input can be read once")
    queries = []
    if profile:
        query, scoring = _profile(paths[0], scoring, options)
        queries = [(query, 0)]
    others = paths[len(queries) :]
    raws = [None if is_database(path) else fasta.read_raw(path) for path in others]
    texts = [raw.text for raw in raws if raw is not None]
    if texts and not profile:
        about = ", ".join(paths), warn, beside
        scoring = scoring_for(texts, scoring, options, *about)
    alphabet = scoring.alphabet
    encoded = [
        (mapped(path, alphabet), 0) if raw is None
        else fasta.encode_counted(raw, alphabet, options.unknown)
        for path, raw in zip(others, raws, strict=True)
    ]  # fmt: skip
    encoded, raws = queries + encoded, [None] * len(queries) + raws
    hashes = ()
    if hashed:
        buffers = (None if raw is None else raw.buffer for raw in raws)
        hashes = tuple(map(source.sha256, paths, buffers))
    sequences, counts = zip(*encoded, strict=True)
    for path, count in zip(paths, counts, strict=True):
        if count:
            warn(f"{path}: {count} unknown letters are read as {alphabet.wildcard}")
    return Inputs(tuple(paths), sequences, counts, hashes, scoring)


def _profile(path: str, scoring: Scoring, options: ScoringOptions):
    """(the consensus of a profile, how it is scored)."""
    if (options.matrix, options.match, options.mismatch) != (None, None, None):
        raise UsageError("--profile has scores: leave out --matrix and --match")
    with source.open_text(path) as lines:
        is_model = next(lines, "").startswith("HMMER3")
    profile = Profile.from_hmm(path) if is_model else Profile.from_alignment(path)
    return as_query(profile, scoring)


def warn_of_headings(path: str, warn: Callable[[str], object]) -> None:
    """GraphPart takes a whole heading, up to the first |, for the id."""
    if path == "-":
        return
    with source.open_text(path) as lines:
        described = any(
            line.startswith(">") and " " in line.split("|", 1)[0].strip()
            for line in lines
        )
    if described:
        warn(
            f"{path}: headings have descriptions, which GraphPart takes for a part of "
            f"the id; give it a file without: sed '/^>/s/ .*//' {path}"
        )


def check(path: str) -> None:
    """Refuse a file that is not there, or no FASTA, before other work is done.

    A pipe is left alone: it can be read once.

    Raises
    ------
    InputError
    """
    special = path == "-" or (os.path.exists(path) and not os.path.isfile(path))
    if not special and not is_database(path):
        with source.open_text(path) as handle:
            fasta.check_first_line(path, handle)
