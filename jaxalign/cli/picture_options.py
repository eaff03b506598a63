"""``--plot`` and ``--dendrogram``: pictures beside a result."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Group, Parameter

from jaxalign.cli.options import FILE

PICTURE = Parameter(metavar="OUT.png", group=Group("Output", sort_key=3))
Plot = Annotated[str | None, FILE, PICTURE]


@dataclass(frozen=True)
class Pictures:
    """Files of pictures, one at least; None for none."""

    histogram: str | None = None
    dendrogram: str | None = None
    dot_plot: str | None = None


@Parameter(name="*", group=Group("Output", sort_key=3))
@dataclass(frozen=True)
class NearestPictures:
    """How the nearest are shown."""

    plot: Annotated[str | None, FILE, Parameter(metavar="OUT.png")] = None
    """Histogram of the identities of the nearest; needs jaxalign[plot]."""

    report: Annotated[str | None, FILE, Parameter(metavar="OUT.html")] = None
    """A page for people: bands, identities. One file, which needs no network."""
