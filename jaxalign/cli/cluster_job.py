"""The straight lines of ``jaxalign cluster`` and ``jaxalign dedup``."""

from dataclasses import dataclass, replace

import numpy as np

from jaxalign.cli import link_job
from jaxalign.cli.options import ListOptions, VerbOptions
from jaxalign.homology import api
from jaxalign.io import fasta_records, output


@dataclass(frozen=True)
class ClusterRequest:
    """The options of a clustering of its own; ``fasta`` is where representatives go."""

    min_identity: float
    method: str
    fasta: str | None
    plot: str | None = None


def cluster(
    path: str, asked: ClusterRequest, listed: ListOptions, options: VerbOptions
) -> int:
    """``jaxalign cluster SEQS``."""
    outs = (listed.out, asked.fasta)
    link_job.check_plot(asked.plot, listed.force, (path,), outs)
    found = _clusters(path, asked, outs, listed.force, options)
    link_job.write_table(listed.out, found.columns(), options)
    if asked.fasta:
        _write_representatives(path, asked.fasta, found)
    if asked.plot:
        from jaxalign.cli import pictures

        pictures.clusters(asked.plot, found)
    return 0


def dedup(
    path: str,
    asked: ClusterRequest,
    listed: str | None,
    force: bool,
    options: VerbOptions,
) -> int:
    """``jaxalign dedup SEQS``."""
    found = _clusters(path, asked, (asked.fasta, listed), force, options)
    if asked.fasta or not options.summary.json:
        _write_representatives(path, asked.fasta or output.STDOUT, found)
    if listed:
        link_job.write_table(listed, found.columns(), options)
    return 0


def _clusters(path, asked: ClusterRequest, outs, force, options) -> api.Clusters:
    # 1 check and read, 2 say what will be done, 3 cluster, 4 say what was done
    job = link_job.prepare((path,), options, outs, force)
    cut, scoring = asked.min_identity, job.read.scoring
    (data,) = job.read.sequences
    definition = api.define(scoring, job.options, "--min-identity", cut)
    job.messages.say(f"{len(data):,} sequences; linked: {definition}")
    with job.watched() as chosen:
        seen = replace(definition, options=chosen)
        found = api.clusters_of(data, seen, asked.method)
    job.messages.say(link_job.pairs_line(found.info))
    alone = int((found.sizes == 1).sum())
    job.messages.say(f"{found.heading()}; {alone:,} alone ({asked.method})")
    about = {"method": asked.method, "clusters": len(found)}
    about |= {"largest": int(found.sizes.max(initial=0)), "alone": alone}
    link_job.say_json(job, definition, found.info, about)
    return found


def _write_representatives(path: str, out, found: api.Clusters) -> None:
    wanted = np.zeros(len(found.sequences), bool)
    wanted[found.representatives] = True
    output.write_text(out, fasta_records.pieces(path, found.sequences, wanted))
