"""``jaxalign selftest``: whether the GPU kernels are right on this card."""

from typing import Annotated

from cyclopts import Parameter, validators


def selftest(
    *,
    seconds: Annotated[float, Parameter(validator=validators.Number(gte=0))] = 36,
) -> int:
    """Compare the GPU kernels with NumPy on this card, and print a line to send.

    Random jobs of every mode and output run by both until the time is over; the first
    of each kind compiles. The kernels are measured on a few kinds of cards only
    (`jaxalign info` says on which): a line from another one is welcome at the project's
    issues. Ends with code 1 where a result differs, and with 5 where no kernels run.

    Parameters
    ----------
    seconds
        No job begins later. The whole command takes up to 20 seconds more: it starts
        JAX, ends its last jobs, and measures the speed.
    """
    from jaxalign import selftest
    from jaxalign.cli.terminal import answer, say

    line, equal = selftest.selftest(seconds, say)
    answer([line])
    return 0 if equal else 1
