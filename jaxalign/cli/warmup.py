"""``jaxalign warmup``: compile what usual jobs need, before they need it."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import FLAG


def warmup(
    *,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False,
) -> int:
    """Compile the programs of usual jobs, and keep them for later processes.

    Jobs of proteins in every mode and output, and a search: a minute on a CPU, a few on
    a GPU. `jaxalign info` says where programs are kept, and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    quiet
        Only warnings and errors.
    """
    from jaxalign import warmup
    from jaxalign.cli import terminal
    from jaxalign.errors import UsageError

    if warmup.program_files()["folder"] == "none":
        raise UsageError("there is no folder for programs: see JAXALIGN_CACHE_DIR")
    warmup.warm_up(device, (lambda _: None) if quiet else terminal.say)
    return 0
