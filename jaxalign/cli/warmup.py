"""``jaxalign warmup``: compile what usual jobs need, before they need it."""

from typing import Annotated, Literal

from cyclopts import Parameter

from jaxalign.cli.options import FLAG


def warmup(
    *,
    device: Literal["auto", "cpu", "gpu"] = "auto",
    target: str | None = None,
    out: Annotated[str | None, Parameter(alias="-o")] = None,
    quiet: Annotated[bool, FLAG, Parameter(alias="-q")] = False,
) -> int:
    """Compile the programs of usual jobs, and keep them for later processes.

    Jobs of proteins in every mode and output, and a search: a minute on a CPU, a few on
    a GPU. `jaxalign info` says where programs are kept, and how many there are.

    Parameters
    ----------
    device
        gpu fails where there is none.
    target
        Compile for GPUs that need not be here, such as h100 or h100,b200.
    out
        Folder of the programs for these: a pack, for JAXALIGN_PROGRAMS.
    quiet
        Only warnings and errors.
    """
    from jaxalign import warmup
    from jaxalign.cli import terminal
    from jaxalign.errors import UsageError

    say = (lambda _: None) if quiet else terminal.say
    if (target is None) != (out is None):
        raise UsageError("--target and --out belong together")
    if target is not None and out is not None:
        pack = warmup.make_pack(target, out, say)
        say(f"{out}: {pack['programs']} programs, {pack['bytes'] / 1e6:.1f} MB")
        return 0
    if warmup.program_files()["folder"] == "none":
        raise UsageError("there is no folder for programs: see JAXALIGN_CACHE_DIR")
    warmup.warm_up(device, say)
    return 0
