"""Snakemake's wrapper of ``jaxalign split``."""

__author__ = "The jaxalign developers"
__license__ = "BSD-3-Clause"

from shlex import quote

from snakemake.shell import shell

job = snakemake  # noqa: F821  (Snakemake defines it)
FILES = ("certificate", "report", "plot")
files = " ".join(
    f"--{name} {quote(job.output.get(name))}" for name in FILES if job.output.get(name)
)
extra = job.params.get("extra", "")
log = job.log_fmt_shell(stdout=True, stderr=True)

shell(
    "jaxalign split {job.input.fasta:q}"
    " --min-identity {job.params.min_identity}"
    " --parts {job.params.parts}"
    " --threads {job.threads}"
    " -o {job.output.split:q} --force {files} {extra} {log}"
)
