"""Read the inputs of a job, and say what was taken for what.

Nucleotides in a file are known by their letters, and scored as what they are: only
where nothing on the command line says what the letters are, neither alphabet nor
matrix, nor a preset other than that of needle, which does the same.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jaxalign.cli.arguments import PresetName, ScoringOptions
from jaxalign.cli.request import scoring_of
from jaxalign.cli.terminal import Messages
from jaxalign.errors import UsageError
from jaxalign.io import fasta
from jaxalign.io.corpus_files import opening
from jaxalign.io.encoded_database import is_database, mapped
from jaxalign.model import source
from jaxalign.model.alphabet import Sequences, reading_of
from jaxalign.model.profile import Profile, as_query, first_line, read_text
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import BLOCK, has_uracil, look_nucleic

# Paths, and the letters of each as uint8 arrays of ASCII.
Sides = Sequence[tuple[str, Sequence[np.ndarray]]]
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
    messages: Messages,
    beside: Sides = (),
    profile: bool = False,
    local: bool = False,
    of_proteins: bool = False,
    as_given: bool = True,
    usual: PresetName | None = None,
) -> Inputs:
    """Read every file, and say what a person should know.

    With ``profile`` the first file is one, and the others have its letters; with
    ``of_proteins`` all have those of proteins; ``as_given`` says that no other strand
    is looked at. ``scoring`` is that of the options; where they leave it open,
    nucleotides, known by the letters of the files and of those ``beside`` them, have
    another, of the preset ``usual``. With both, nucleotides among proteins are X.

    Raises
    ------
    UsageError
        Standard input is to be read twice.
    InputError
        See ``io.fasta``.
    """
    if paths.count("-") > 1:
        raise UsageError(
            "'-' is given twice, and standard input can be read only once: name a file"
        )
    queries = []
    if profile:
        query, scoring = _profile(paths[0], scoring, options, local)
        queries = [(query, 0)]
    others = paths[len(queries) :]
    raws = [
        None if is_database(path) else fasta.read_raw(path, reading=reading_of(options))
        for path in others
    ]
    texts = tuple(
        None if raw is None else raw.texts()
        for raw in raws
        if of_proteins or usual is not None
    )
    if of_proteins and usual is not None:  # chains of a complex
        raws = [x and fasta.proteins_alone(x) for x in raws]
    sides = [
        (path, opening(path) if raw is None else [raw.text])
        for path, raw in zip(others, raws, strict=True)
    ]
    of_proteins = of_proteins or profile
    about = scoring, options, messages, of_proteins, as_given, usual
    scoring = scoring_for([*sides, *beside], *about)
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
        messages.warn_of_letters(path, count, alphabet.wildcard)
    return Inputs(tuple(paths), sequences, counts, hashes, scoring, texts)


def _profile(path: str, scoring: Scoring, options: ScoringOptions, local: bool):
    """(the consensus of a profile, how it is scored); ``local`` alignments by the gap
    costs of a model where none are named."""
    if (options.matrix, options.match, options.mismatch) != (None, None, None):
        raise UsageError("a profile has its own scores: leave out --matrix and --match")
    if options.alphabet not in ("auto", "protein"):
        raise UsageError(
            f"--alphabet {options.alphabet}: profiles are of proteins only; leave it "
            "out"
        )
    text = read_text(path)
    if first_line(text.lines).startswith("HMMER3"):
        named = options.gap_open, options.gap_extend, options.preset
        own = local and named == (None, None, None)
        return as_query(Profile.from_hmm(text), None if own else scoring)
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
            f"{path}: headings have descriptions, which GraphPart would read as part "
            f"of the id; remove them first: sed '/^>/s/ .*//' {path}"
        )


def check(path: str) -> None:
    """Refuse a file that is not there, or no FASTA, before other work is done."""
    if not is_database(path):
        with source.open_text(path) as handle:
            fasta.check_first_line(path, handle)


def scoring_for(
    sides: Sides,
    scoring: Scoring,
    options: ScoringOptions,
    messages: Messages,
    of_proteins: bool = False,
    as_given: bool = False,
    usual: PresetName | None = None,
) -> Scoring:
    """The scoring of a job whose letters are known; says what nucleotides are taken
    for, and warns of some that meet proteins.

    Parameters
    ----------
    sides : (path, letters) of each file, and of what the files are searched in
    scoring : Scoring
        That of the options, before anything was read.
    options : ScoringOptions
    messages : Messages
    of_proteins : bool
        Whether it is kept, whatever the letters are.
    as_given : bool
        Whether strands are those that are given, which is said of DNA.
    usual : str, optional
        The preset that scores nucleotides; by default as blastn does.
    """
    if options.alphabet != "auto" or scoring.alphabet.kind != "protein":
        return scoring
    filled = [(path, texts) for path, texts in sides if any(map(len, texts))]
    texts = [text for _, texts in filled for text in texts]
    free = options.matrix is None and options.preset in (None, "needle")
    if free and not of_proteins and look_nucleic(texts):
        kind = "rna" if has_uracil(texts) else "dna"
        preset = options.preset or usual
        chosen = scoring_of(replace(options, alphabet=kind, preset=preset))
        strands = ", along the strands that are given" * (as_given and kind == "dna")
        messages.say(
            f"all letters of {', '.join(dict.fromkeys(path for path, _ in filled))} "
            f"are nucleotides and are scored as {kind} ({chosen}){strands}; --alphabet "
            "protein scores them as protein"
        )
        return chosen
    meant: dict[bool, list[str]] = {True: [], False: []}
    for path, letters in filled:
        few = not of_proteins and _plain(letters)
        meant[few or look_nucleic(letters)].append(path)
    nucleic, others = (", ".join(dict.fromkeys(meant[x])) for x in (True, False))
    if nucleic:
        what, hint = "are scored as protein", "translate them first"
        if not (others or of_proteins):
            dna = "--alphabet dna or " * free + "--preset blastn"
            kind = "--preset blastn --alphabet rna" if has_uracil(texts) else dna
            hint = f"{kind} scores them as nucleotides"
        elif others:
            what += f", and those of {others} are not"
        messages.warn(f"all letters of {nucleic} are nucleotides and {what}: {hint}")
    return scoring


def _plain(texts: Sequence[np.ndarray]) -> bool:
    """Whether letters, too few to be sure, are all A, C, G, T, U or N."""
    filled = [text for text in texts if len(text)]
    heads = (text[:BLOCK] for text in filled)  # which a long protein does not pass
    parts = itertools.chain(heads, filled)
    return bool(filled) and all(np.isin(text, PLAIN).all() for text in parts)
