"""``jaxalign nearest TEST CORPUS``: what is nearest to every test sequence."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import (
    CorpusRunOptions,
    Fasta,
    ListOptions,
    NearestPictures,
    VerbOptions,
)


def nearest(
    tests: Annotated[Fasta, Parameter(name="TEST")],
    corpus: Annotated[Fasta, Parameter(name="CORPUS")],
    /,
    *,
    by: Literal["identity", "score", "bits"] = "identity",
    bands: Annotated[str, Parameter(metavar="F,F")] = "0.3,0.5,0.7,0.9",
    top: Annotated[int, Parameter(metavar="N")] = 1,
    pictures: NearestPictures = NearestPictures(),  # noqa: B008
    output: ListOptions = ListOptions(),  # noqa: B008
    run: CorpusRunOptions = CorpusRunOptions(),  # noqa: B008
    options: VerbOptions = VerbOptions(),  # noqa: B008
) -> int:
    """Find the sequence of CORPUS that is nearest to each sequence of TEST, exactly.

    The list has a row for every test sequence, however far its nearest is: name,
    nearest, identity, band, and score, E-value and coverages of the best local
    alignment of the two. Of equals the first of CORPUS is named. How many test
    sequences are in each band of identity is printed.

    Parameters
    ----------
    tests
        FASTA, plain, gz, bz2, xz or zst; - is standard input.
    corpus
        FASTA, what `jaxalign index` made, or a folder of such files; read in blocks,
        never held whole.
    by
        The largest identity (--identity, --mode), or the best local alignment.
    bands
        Edges of the bands of identity, from 0 to 1.
    top
        So many of the nearest, with their rank.
    """
    from jaxalign.cli import corpus_job

    request = corpus_job.NearestRequest(tests, corpus, by, bands, top)
    return corpus_job.nearest(request, pictures, output, run, options)
