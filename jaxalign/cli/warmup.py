"""``jaxalign warmup``: compile what usual jobs need, before they need it."""

from typing import Literal


def warmup(*, device: Literal["auto", "cpu", "gpu"] = "auto") -> int:
    """Compile the programs of usual jobs, and keep them for later processes.

    Jobs of proteins in every mode and output, and a search: a minute on a CPU, a few on
    a GPU. `jaxalign info` says where programs are kept, and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    """
    from jaxalign import warmup
    from jaxalign.cli import report
    from jaxalign.errors import UsageError

    if warmup.program_files()["folder"] == "none":
        raise UsageError("there is no folder for programs: see JAXALIGN_CACHE_DIR")
    warmup.warm_up(device, report.say)
    return 0
