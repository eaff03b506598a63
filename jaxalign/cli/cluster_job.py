"""The straight lines of ``jaxalign cluster`` and ``jaxalign dedup``."""

from dataclasses import dataclass, replace

import numpy as np

from jaxalign.cli import link_job
from jaxalign.cli.options import ListOptions, VerbOptions
from jaxalign.homology import api
from jaxalign.io import fasta_records, name_table, output

# Why pairs are neither aligned nor excluded by proof
WHY_NOT = {
    "components": "other links connect the two",
    "greedy": "one of them has a representative",
}


@dataclass(frozen=True)
class ClusterRequest:
    """The options of a clustering of its own; ``fasta`` is where representatives go."""

    min_identity: float
    method: str
    fasta: str | None
    plot: str | None = None


def cluster(
    path: str, request: ClusterRequest, listed: ListOptions, options: VerbOptions
) -> int:
    """``jaxalign cluster SEQS``."""
    outs = (listed.out, request.fasta)
    name_table.check_format(listed.out)
    link_job.check_plot(request.plot, listed.force, (path,), outs)
    result = _clusters(path, request, outs, listed.force, options)
    link_job.write_table(listed.out, result.columns(), options)
    if request.fasta:
        _write_representatives(path, request.fasta, result)
    if request.plot:
        from jaxalign.cli import pictures

        pictures.clusters(request.plot, result)
    return 0


def dedup(
    path: str,
    request: ClusterRequest,
    listed: str | None,
    force: bool,
    options: VerbOptions,
) -> int:
    """``jaxalign dedup SEQS``."""
    name_table.check_format(listed)
    result = _clusters(path, request, (request.fasta, listed), force, options)
    if request.fasta or not options.summary.json:
        _write_representatives(path, request.fasta or output.STDOUT, result)
    if listed:
        link_job.write_table(listed, result.columns(), options)
    return 0


def _clusters(
    path: str,
    request: ClusterRequest,
    outs: tuple[str | None, ...],
    force: bool,
    options: VerbOptions,
) -> api.Clusters:
    # 1 check and read, 2 say what will be done, 3 cluster, 4 say what was done
    job = link_job.prepare((path,), options, outs, force)
    cut, scoring = request.min_identity, job.read.scoring
    (data,) = job.read.sequences
    definition = api.define(scoring, job.options, "--min-identity", cut)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        every_link = options.summary.json  # which has their number
        result = api.clusters_of(data, seen, request.method, every_link)
    job.messages.say(link_job.pairs_line(result.info, WHY_NOT.get(request.method)))
    alone = int((result.sizes == 1).sum())
    job.messages.say(f"{result.heading()}; {alone:,} alone ({request.method})")
    about = {"method": request.method, "clusters": len(result)}
    about |= {"largest": int(result.sizes.max(initial=0)), "alone": alone}
    link_job.say_json(job, definition, result.info, about)
    return result


def _write_representatives(path: str, out: str, result: api.Clusters) -> None:
    wanted = np.zeros(len(result.sequences), bool)
    wanted[result.representatives] = True
    output.write_text(out, fasta_records.pieces(path, result.sequences, wanted))
