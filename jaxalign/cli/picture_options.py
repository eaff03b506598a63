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
