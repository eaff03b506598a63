"""The straight lines of ``jaxalign split --pairs`` and ``jaxalign audit --pairs``."""

from dataclasses import dataclass, replace

from jaxalign.cli import link_job
from jaxalign.cli.link_job import LinkJob
from jaxalign.cli.options import ListOptions, VerbOptions
from jaxalign.cli.terminal import answer_json
from jaxalign.errors import LeakError, UsageError
from jaxalign.homology import api
from jaxalign.io import name_table, pair_list
from jaxalign.io.pair_list import PairList


@dataclass(frozen=True)
class PairsRequest:
    """The options of pairs: their table, what they share, what its second column is."""

    pairs: str
    cold: api.Cold
    second: api.Second


def split(
    path: str,
    request: PairsRequest,
    max_identity: float | None,
    choices: api.PairChoices,
    listed: ListOptions,
    options: VerbOptions,
) -> int:
    """``jaxalign split SEQS --pairs PAIRS.tsv``."""
    # 1 check and read, 2 say what will be done, 3 split, 4 write
    name_table.check_format(listed.out)
    api.check_pair_choices(choices)
    job, table = _read(path, request, (listed.out,), listed.force, options, False)
    (data,) = job.read.sequences
    pairs = api.named_pairs(table.pairs, data.names, request.second, table.where)
    cut, scoring = max_identity, job.read.scoring
    definition = api.define(scoring, job.options, "--max-identity", cut)
    said = f"{len(table.pairs):,} pairs of {len(data):,} sequences"
    job.messages.say(f"{said}; near: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.split_pairs_of(data, seen, pairs, choices)
    job.messages.say(link_job.pairs_line(result.info))
    job.messages.say(str(result).rsplit("\n", 1)[0])
    link_job.write_table(listed.out, result.columns(), options)
    about = {
        "parts": dict(zip(result.names, result.sizes.tolist(), strict=True)),
        "removed": len(result.removed),
        "most_kept": result.info.get("most_kept", len(table.pairs)),
        "cold": result.cold,
        "seed": choices.seed,
    }
    link_job.say_json(job, definition, result.info, about)
    return 0


def audit(
    parts: tuple[str, ...],
    request: PairsRequest,
    max_identity: float | None,
    options: VerbOptions,
) -> int:
    """``jaxalign audit SEQS --pairs PAIRS.tsv``; 0, or 6 for a leak."""
    if len(parts) != 1 or max_identity is None:
        raise UsageError("--pairs needs one file of sequences, and --max-identity")
    job, table = _read(parts[0], request, (), False, options, True)
    (data,) = job.read.sequences
    pairs = api.named_pairs(table.pairs, data.names, request.second, table.where)
    scoring = job.read.scoring
    definition = api.define(scoring, job.options, "--max-identity", max_identity)
    numbers = api.numbered_parts(table.parts or [], pairs)
    job.messages.say(f"{len(table.pairs):,} pairs; a leak: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        result = api.audit_pairs_of(data, seen, pairs, numbers, request.cold)
    job.messages.say(link_job.pairs_line(result.info))
    job.messages.say(result.heading())
    for number in result.leaking.nonzero()[0][:SHOWN].tolist():
        a, b = table.pairs[number]
        job.messages.say(f"{table.where(number)}: {a}, {b} leaks")
    if options.summary.json:
        answer_json({"leaks": result.leaks, "pairs": len(table.pairs)})
    return 0 if result.holds else LeakError.exit_code


SHOWN = 10  # leaking pairs


def _read(
    path: str,
    request: PairsRequest,
    outs: tuple[str | None, ...],
    force: bool,
    options: VerbOptions,
    parts: bool,
) -> tuple[LinkJob, PairList]:
    """Options checked, sequences and pairs read."""
    job = link_job.prepare((path,), options, outs, force, (request.pairs,))
    known = link_job.known_names(path, job.read)
    return job, pair_list.read(request.pairs, known, parts)
