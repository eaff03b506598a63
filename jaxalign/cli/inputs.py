"""Read the inputs of a job, and say what was taken for what.

Nucleotides in a file are known by their letters, and scored as what they are: only
where nothing on the command line says what the letters are, neither alphabet nor
matrix, nor a preset other than that of needle, which does the same.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxalign.cli.arguments import ScoringOptions
from jaxalign.cli.request import scoring_of
from jaxalign.errors import UsageError
from jaxalign.io import fasta
from jaxalign.io.encoded_database import is_database, mapped, open_database
from jaxalign.model import source
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.profile import Profile, as_query, first_line, read_text
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import BLOCK, has_uracil, look_nucleic

PLAIN = np.frombuffer(b"ACGTUNacgtun", np.uint8)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The sequences of each file, in the order given, and how they are scored;
    ``texts`` are the letters of each as they stand there, None of an index."""

    paths: tuple[str, ...]
    sequences: tuple[Sequences, ...]
    substituted: tuple[int, ...]
    hashes: tuple[str | None, ...]
    scoring: Scoring
    texts: tuple[list[str] | None, ...] = ()


def read(
    paths: tuple[str, ...],
    scoring: Scoring,
    options: ScoringOptions,
    hashed: bool,
    warn: Callable[[str], object],
    beside: Any = (),
    profile: bool = False,
    of_proteins: bool = False,
) -> Inputs:
    """Read every file; ``warn`` takes what a person should know.

    With ``profile`` the first file is one, and the others have its letters; with
    ``of_proteins`` all have those of proteins, and are kept. ``scoring`` is that of
    the options; where they leave it open, nucleotides, known by the letters of the
    files and of the texts ``beside`` them, have another.

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
    raws = [
        None if is_database(path) else fasta.read_raw(path, reading=reading_of(options))
        for path in others
    ]
    texts = [raw.text for raw in raws if raw is not None]
    if profile or of_proteins:
        sides = ((", ".join(others), texts), ("the database", beside))
        nucleic = [what for what, side in sides if look_nucleic(side)]
        if nucleic and options.alphabet == "auto":
            warn(
                f"all letters of {' and '.join(nucleic)} are nucleotides', scored as "
                "protein: translate them first"
            )
    elif texts:
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
    texts = tuple(None if raw is None else raw.texts() for raw in raws if of_proteins)
    return Inputs(tuple(paths), sequences, counts, hashes, scoring, texts)


def _profile(path: str, scoring: Scoring, options: ScoringOptions):
    """(the consensus of a profile, how it is scored)."""
    if (options.matrix, options.match, options.mismatch) != (None, None, None):
        raise UsageError("--profile has scores: leave out --matrix and --match")
    if options.alphabet not in ("auto", "protein"):
        raise UsageError(f"--alphabet {options.alphabet}: a profile is of proteins")
    text = read_text(path)
    if first_line(text.lines).startswith("HMMER3"):
        return as_query(Profile.from_hmm(text), scoring)
    kind = None if options.alphabet == "auto" else "protein"
    return as_query(Profile.from_alignment(text, alphabet=kind), scoring)


def warn_of_headings(path: str, warn: Callable[[str], object]) -> None:
    """GraphPart takes a whole heading, up to the first |, for the id."""
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
    """Refuse a file that is not there, or no FASTA, before other work is done."""
    if not is_database(path):
        with source.open_text(path) as handle:
            fasta.check_first_line(path, handle)


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
    kind = "rna" if has_uracil([*texts, *beside]) else "dna"
    chosen = scoring_of(replace(options, alphabet=kind))
    warn(
        f"all letters of {what} are nucleotides', scored as {kind} ({chosen}): "
        "--alphabet protein scores them as protein"
    )
    return chosen


def opening(path: str) -> list[np.ndarray]:
    """The first letters of a database that is read in blocks, or mapped.

    Of an index its alphabet counts, not its letters: all of that are given, none where
    it is one of nucleotides.
    """
    if is_database(path):
        alphabet = open_database(path).alphabet
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
