# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Options of three sequences, checked: with a fill, and bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

from jaxalign.errors import DeviceError, UsageError
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import MODES, Scoring
from jaxalign.model.triple import GAP_MODELS
from jaxalign.options import Schedule, TripleOptions
from jaxalign.runtime import backend
from jaxalign.runtime.devices import budget_of, first_device, resolve_devices
from jaxalign.triples import gpu

# Of the fills in ``dp``.
SCHEDULE_OF_FILL: dict[str, Schedule] = {"planes": "sloped", "layers": "layered"}
KERNEL_SCHEDULE = "tiles"  # the order of the kernels
SCHEDULE_NAMES = get_args(Schedule)
CHUNKED = ("bt1", "bt2", "bt3")
TRACEBACKS = ("auto", "store", "split", *CHUNKED)
IMPLEMENTATIONS = (*SCHEDULE_OF_FILL, "pallas")


def check(scoring: Scoring, options: TripleOptions) -> None:
    """Refuse unknown words, chunks of what has none, and affine costs where the model
    is linear."""
    words = {
        "gap_model": GAP_MODELS,
        "mode": MODES,
        "schedule": SCHEDULE_NAMES,
        "traceback": (*TRACEBACKS, None),
    }
    for name, known in words.items():
        if (word := getattr(options, name)) not in known:
            names = ", ".join(map(str, known))
            raise UsageError(f"unknown {name} {word!r}: one of {names}")
    if options.gap_model == "linear" and scoring.open != scoring.extend:
        raise UsageError(
            f"gap_model 'linear' needs gap_open == gap_extend, not "
            f"{scoring.gap_open:g} and {scoring.gap_extend:g}"
        )
    for name in ("chunk", "height", "depth"):
        check_whole(name, value := getattr(options, name))
        if value is not None and options.traceback not in CHUNKED:
            raise UsageError(f"{name} = {value}: only bt1, bt2 and bt3 have chunks")


@dataclass(frozen=True)
class TripleRequest:
    """Checked options, whose schedule is that of a fill, and their bytes. ``kernels``
    are those of a GPU, where they may be used; ``named`` says that nothing else may.
    ``devices`` are those that share the work, none where the caller named none."""

    options: TripleOptions
    budget: int
    kernels: Any = None
    named: bool = False
    devices: tuple[Any, ...] = ()


def make_request(options: TripleOptions) -> TripleRequest:
    """Checked options with their fill, their kernels and their bytes.

    A schedule or a traceback that is named is one of ``dp``'s fills; kernels are for
    the rest. ``auto`` is ``layered`` on a CPU, where a layer's rows stay in the cache;
    elsewhere its many small steps would wait for each other, and a plane is one large
    one.
    """
    implementation, schedule = options.implementation, options.schedule
    if implementation not in (None, *IMPLEMENTATIONS):
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    on_cpu, kernels = first_device().platform == "cpu", None
    usual: Schedule = "layered" if on_cpu else "sloped"
    own_order = schedule != "auto" or options.traceback in CHUNKED
    if implementation in SCHEDULE_OF_FILL:
        its = SCHEDULE_OF_FILL[implementation]
        if schedule not in ("auto", its):
            raise UsageError(f"implementation {implementation} has schedule {its}")
        schedule = its
    elif own_order:
        if implementation == "pallas":
            raise UsageError(
                "implementation pallas needs schedule auto, and traceback auto, store, "
                f"split or None, not {schedule} and {options.traceback}"
            )
        schedule = usual if schedule == "auto" else schedule
    else:
        package, why = backend.kernels()
        if package is None and implementation == "pallas":
            raise DeviceError(f"pallas: {why}")
        schedule, kernels = usual, package and package.three
    # By default the bytes that are free on a GPU, elsewhere half of them.
    size = options.memory_budget
    devices = resolve_devices(options.devices)
    free = size is None and not on_cpu
    budget = min(map(gpu.budget, devices or (None,))) if free else budget_of(size)
    options = replace(options, schedule=schedule)
    named = implementation == "pallas"
    return TripleRequest(options, budget, kernels, named, devices)
