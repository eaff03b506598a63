"""Who fills a triple: planes or layers by XLA, or the GPU kernels; and in how much
memory."""

from jaxalign.errors import DeviceError, UsageError
from jaxalign.runtime import backend, memory
from jaxalign.runtime.devices import first_device
from jaxalign.triples import gpu

SCHEDULES = {"planes": "sloped", "layers": "layered"}  # of the fills in ``dp``
IMPLEMENTATIONS = (*SCHEDULES, "pallas")
TILES = "tiles"  # the order of the kernels


def choose(implementation, schedule, traceback, chunked):
    """(schedule of planes or layers, kernels or None, why).

    A schedule or a traceback asked for by name is one of ``dp``'s fills; kernels are
    for the rest. ``auto`` is ``layered`` on a CPU, where a layer's rows stay in the
    cache; elsewhere its many small steps would wait for each other, and a plane is one
    large one.

    Raises
    ------
    UsageError, DeviceError
        What was named contradicts itself, or does not run here.
    """
    if implementation not in (None, *IMPLEMENTATIONS):
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    usual = "layered" if first_device().platform == "cpu" else "sloped"
    if implementation in SCHEDULES:
        its = SCHEDULES[implementation]
        if schedule not in ("auto", its):
            raise UsageError(f"implementation {implementation} has schedule {its}")
        return its, None, "asked for"
    if implementation == "pallas" and (schedule != "auto" or traceback in chunked):
        raise UsageError(
            "implementation pallas has an order of its own: schedule auto, and "
            f"traceback auto, store, split or None, not {schedule} and {traceback}"
        )
    if schedule != "auto" or traceback in chunked:
        return (usual if schedule == "auto" else schedule), None, "asked for"
    kernels, why = backend.kernels()
    if kernels is None and implementation == "pallas":
        raise DeviceError(f"pallas: {why}")
    return usual, kernels and kernels.three, why


def refusal(triple, kernels, named: bool, paths: bool) -> str | None:
    """Why the kernels do not take a triple, or None; what refuses one refuses a longer
    one of the same costs.

    Raises
    ------
    UsageError
        The kernels were asked for by name.
    """
    why = gpu.refusal(triple, kernels)
    if why is None and triple.mode == "local" and (named or not paths):
        why = "mode local: the kernels know global, and the core of local"
    if why is None and paths and not gpu.walks(triple, kernels):
        why = "scores and costs too large for the kernels' paths"
    if why and named:
        raise UsageError(f"implementation pallas: {why}")
    return why


def budget(asked) -> int:
    """Bytes to plan with: those asked for, or what is free on a GPU, or half of what
    is free elsewhere."""
    if asked is None and first_device().platform != "cpu":
        return gpu.budget()
    return memory.budget(asked)


def name_of(triple, schedule: str) -> tuple[str, str]:
    """(implementation, schedule) as a result tells them."""
    fill = next(name for name, its in SCHEDULES.items() if its == schedule)
    if not triple.kernels:
        return fill, schedule
    if triple.mode == "local":  # ends by planes, what lies between by kernels
        return f"{fill}, pallas", f"{schedule}, {TILES}"
    return "pallas", TILES
