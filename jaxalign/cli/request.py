"""Flags -> a request: scoring, the options of ``api``, and where to write."""

import os
from dataclasses import dataclass, replace
from math import isfinite

from jaxalign.cli.arguments import ScoringOptions
from jaxalign.cli.derive import Given, refuse
from jaxalign.errors import UsageError
from jaxalign.io import formats, runs
from jaxalign.model.alphabet import NUCLEIC, reading_of
from jaxalign.model.choices import FreeEnd, Identity, Mode, Output
from jaxalign.model.identity import BY_PATH, check_coverage, usual_identity
from jaxalign.model.numbers import check_fraction
from jaxalign.model.scoring import Scoring, as_scoring, preset, resolve_ends
from jaxalign.model.table import Table
from jaxalign.options import Execution, PairOptions, shared

EDNAFULL = "EDNAFULL"  # needle's matrix for nucleotides
THRESHOLDS = ("min_score", "min_identity", "min_cov", "min_length_ratio")
FILTERS = (*THRESHOLDS, "coverage", "filter")
WITH_PATHS = ("sam", "paf", "maf", "fasta", "pair")
FOR_SPLITS = ("graphpart", "hestia", "datasail")


@dataclass(frozen=True)
class Pictures:
    """Files of pictures, one at least; None for none."""

    histogram: str | None = None
    dendrogram: str | None = None
    heat_map: str | None = None
    dot_plot: str | None = None


@dataclass(frozen=True, eq=False)
class Request:
    """A checked request; ``out`` is None where no table is written."""

    scoring: Scoring
    options: PairOptions
    identity: str
    out: str | None
    format: str | None
    columns: tuple[str, ...] | None
    folder: bool = False  # out is a folder of parts
    eqx: bool = False

    @property
    def filters(self) -> dict:
        """The filters by name, with what they are about; empty where there is none."""
        named = {name: getattr(self.options, name) for name in THRESHOLDS}
        named = {name: value for name, value in named.items() if value is not None}
        about = {"coverage": self.options.coverage, "identity": self.identity}
        return named and named | about

    def rows(self, table: Table) -> Table:
        """Rows as they are written."""
        return table.with_matches() if self.eqx else table


def resolve(options: Given, mode: Mode = "global", folder: bool = False) -> Request:
    """Check all that can be checked before an input is read.

    Parameters
    ----------
    options : Given
    mode : Mode
        That of the verb where no option says another.
    folder : bool
        Parts are to be written into a folder.

    Raises
    ------
    UsageError
        An option breaks a rule, alone or beside another.
    """
    scoring = scoring_of(options.scoring)
    mode, free_ends = mode_of(options, mode)
    columns = options.columns
    _check_filters(options, mode, free_ends)
    out, format = options.out, options.format
    if folder and (out in (None, "-") or _is_file(out)):
        raise UsageError(
            "--resume, --shard and --part-rows are about a result in parts, which "
            "needs a folder: -o FOLDER/"
        )
    if folder and format not in (None, "parquet"):
        raise UsageError(f"parts are written as parquet, not {format}")
    if folder:
        out, format = out.rstrip("/") or out, "parquet"
    else:
        out, format = _destination(options)
    usual = usual_identity(mode, resolve_ends(mode, free_ends))
    level, identity = _level(options, format, columns, usual)
    chosen = shared(options, Execution, devices=devices_of(options))
    filters = {name: getattr(options, name) for name in FILTERS}
    packed = PairOptions(
        mode=mode,
        free_ends=free_ends,
        output=level,
        identity=None if options.min_identity is None else identity,
        **filters,
        **chosen,
    )
    request = Request(scoring, packed, identity, out, format, columns, folder)
    return replace(request, eqx=_eqx(options, request))


def _is_file(out: str) -> bool:
    """Whether a path has the name of a file, and no folder is there."""
    suffix = os.path.splitext(out)[1]
    return suffix in formats.SUFFIXES and not os.path.isdir(out)


def _eqx(options: Given, request: Request) -> bool:
    """Whether CIGARs have = and X.

    Raises
    ------
    UsageError
        Nothing that is written has CIGARs.
    """
    paths = request.format == "parquet" and request.options.output == "alignment"
    columns = ("cigar",) if request.columns is None and paths else request.columns
    if request.format not in ("sam", "paf") and "cigar" not in (columns or ()):
        refuse(options, ("eqx",), "about CIGARs: those of sam, paf and --columns cigar")
    return options.eqx


def check_identity(options: Given, request: Request, drawn: bool) -> None:
    """Refuse an identity that is in nothing that is written.

    drawn : whether a picture shows it
    """
    columns, level = request.columns, request.options.output
    shown = columns is None and level != "score" or "fident" in (columns or ())
    used = drawn or options.json or options.min_identity is not None
    if not used and not (shown and request.format in ("tsv", "parquet", *FOR_SPLITS)):
        refuse(options, ("identity",), "in nothing that is written")


def wants_folder(options: Given) -> bool:
    """Whether the result is to be a folder of parts."""
    out = options.out or ""
    named = options.resume or (options.shard, options.part_rows) != (None, None)
    is_dataset = os.path.isdir(out) and runs.is_dataset(out)
    return named or out.endswith("/") or is_dataset


def devices_of(machine: Given) -> str | None:
    """The devices that are named; of a GPU the first one, if no number is: a small job
    is computed there too then, not in NumPy."""
    return machine.devices or ("0" if machine.device == "gpu" else None)


def scoring_of(options: ScoringOptions) -> Scoring:
    """The preset or the default, with every explicit option in its place."""
    base = _base(options)
    read = reading_of(options)._asdict()
    plain = ScoringOptions(preset=options.preset, **read)
    if options == plain:
        return base
    if base.tracks is not None:
        own = ("matrix", "match", "mismatch", "alphabet")
        if [getattr(options, name) for name in own] != [None, None, None, "auto"]:
            raise UsageError(
                f"--preset {options.preset} has two matrices: leave out --matrix, "
                "--match, --mismatch and --alphabet"
            )
        opening, extend = _gaps(options, base)
        return replace(base, gap_open=opening, gap_extend=extend)
    matrix, match, mismatch = _substitution(options, base)
    name = base.alphabet_name if options.alphabet == "auto" else options.alphabet
    return Scoring(
        matrix, *_gaps(options, base), match=match, mismatch=mismatch, alphabet=name
    )


def _base(options: ScoringOptions) -> Scoring:
    """The scoring that options change: the preset, or that of nucleotides where an
    alphabet, or scores without a matrix, say so, or that of proteins."""
    if options.preset:
        return preset(options.preset).scoring
    scores = options.match, options.mismatch
    nucleic = options.alphabet in NUCLEIC
    nucleic |= options.alphabet == "auto" and scores != (None, None)
    if nucleic and options.matrix is None:
        return preset("blastn").scoring
    # A matrix may have gap costs of its own.
    return as_scoring(options.matrix)


def mode_of(
    options: Given, usual: Mode = "global"
) -> tuple[Mode, tuple[FreeEnd, ...] | None]:
    """(mode, free ends); free ends without a mode mean mode global."""
    mode, ends = options.mode, options.free_ends
    if mode is None and ends is None and options.scoring.preset:
        mode = preset(options.scoring.preset).mode
    mode = mode or ("global" if ends is not None else usual)
    resolve_ends(mode, ends)
    return mode, ends


def _substitution(options: ScoringOptions, base: Scoring):
    """(matrix, match, mismatch)."""
    pair = options.match, options.mismatch
    if options.matrix is not None:
        if pair != (None, None):
            raise UsageError("--matrix and --match/--mismatch exclude each other")
        return options.matrix, None, None
    known = base.match, base.mismatch
    if pair == (None, None):
        needle = options.preset == "needle" and options.alphabet in NUCLEIC
        return EDNAFULL if needle else base.matrix, *known
    if options.alphabet == "auto" and options.preset is None:
        known = None, None  # one of the two does not say what the letters are
    given = (k if p is None else _plain(p) for p, k in zip(pair, known, strict=True))
    return base.matrix, *given


def _gaps(options: ScoringOptions, base: Scoring):
    """(open, extend), the first residue included; BLAST's numbers are converted."""
    blast, extend = options.gap_style == "blast", base.gap_extend
    # The costs of presets and of nucleotides are complete; the usual 11 is a number
    # that is read in either style.
    complete = options.preset or base.match is not None
    opening = base.gap_open - (extend if blast and complete else 0)
    extend = extend if options.gap_extend is None else _plain(options.gap_extend)
    opening = opening if options.gap_open is None else _plain(options.gap_open)
    return opening + (extend if blast else 0), extend


def _plain(number: float) -> float:
    """11.0 -> 11, as people write it."""
    if not isfinite(number):
        raise UsageError(f"{number}: a score must be a finite number")
    return int(number) if number.is_integer() else number


def _destination(options: Given):
    """(out, format), both None where only JSON is printed."""
    chosen = options
    if not chosen.json:
        out = "-" if chosen.out is None else chosen.out
    elif chosen.out == "-" or (
        chosen.out is None and (chosen.format or chosen.columns)
    ):
        raise UsageError("--json takes standard output: the table needs -o FILE")
    else:
        out = chosen.out
    if out is None:
        return None, None
    return out, formats.resolve_format(out, chosen.format)


def _level(
    options: Given,
    format: str | None,
    columns: tuple[str, ...] | None,
    usual: Identity,
) -> tuple[Output, Identity]:
    """(output, identity): enough for the format, the columns and the filter; ``usual``
    is the identity without a path where none is named."""
    identity, level = _identity(options), options.output or "stats"
    if format in WITH_PATHS or "cigar" in (columns or ()):
        return "alignment", identity
    if level in ("score", "identity") and options.min_cov is not None:
        return "stats", identity
    if format == "m8" and level != "alignment":
        return "stats", identity
    if format in FOR_SPLITS and options.output is None:
        level = "stats" if identity in BY_PATH else "identity"
    if level == "score" and format in FOR_SPLITS:
        return ("stats" if identity in BY_PATH else "identity"), identity
    if level == "score" and options.min_identity is not None:
        return ("stats" if identity in BY_PATH else "identity"), identity
    if level == "identity":
        if options.identity in BY_PATH:
            raise UsageError(
                f"--output identity computes no path, --identity {options.identity} "
                "needs one: choose shorter, longer, mean, query or target, or "
                "--output stats"
            )
        return level, options.identity or usual
    return level, identity


def _identity(options: Given) -> Identity:
    """The identity asked for, else the preset's, else over alignment columns."""
    name = options.scoring.preset
    usual = preset(name).identity if name else "alignment"
    return options.identity or usual


def _check_filters(
    options: Given, mode: str, free_ends: tuple[str, ...] | None
) -> None:
    for name in ("min_identity", "min_cov", "min_length_ratio"):
        least = getattr(options, name)
        if least is not None:
            check_fraction(name, least)
    if options.min_score is not None and not isfinite(options.min_score):
        raise UsageError(f"--min-score {options.min_score}: a finite number is needed")
    if options.coverage != "both" and options.min_cov is None:
        raise UsageError(
            f"--coverage {options.coverage} has no effect without --min-cov"
        )
    check_coverage(options.min_cov, mode, resolve_ends(mode, free_ends))
