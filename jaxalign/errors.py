"""Every failure a user can meet: its class, and the exit code of the command line.

A message names the value and the rule; a failure in a file also names the file,
the record, the line and the column.
"""

EXIT_CODES = {
    0: "done",
    1: "failed while running",
    2: "usage: an option or an argument is wrong",
    3: "bad input: file, record, line and column are named",
    4: "the plan exceeds the memory; the size that would fit is named",
    5: "the device asked for is absent",
    6: "audit: a pair across parts is at or above the cut",
    7: "audit: a certificate is not what it says",
    130: "interrupted (143 by SIGTERM, 129 by SIGHUP)",
}


class JaxalignError(Exception):
    """Anything jaxalign refuses or fails at; exit code 1."""

    exit_code = 1


class UsageError(JaxalignError, ValueError):
    """An argument breaks a rule; exit code 2."""

    exit_code = 2


class InputError(JaxalignError, ValueError):
    """Data breaks a rule; exit code 3."""

    exit_code = 3


class MemoryPlanError(JaxalignError, MemoryError):
    """The plan of a job exceeds the memory budget; exit code 4."""

    exit_code = 4


class DeviceError(JaxalignError, RuntimeError):
    """The device or the implementation asked for cannot run the job; exit code 5."""

    exit_code = 5


class LeakError(JaxalignError):
    """A split has a pair across parts at or above its cut; exit code 6."""

    exit_code = 6


class VerificationError(JaxalignError):
    """A certificate of an audit is not what it says; exit code 7."""

    exit_code = 7


class DeviceFailure(DeviceError):
    """The device failed while it ran the job; exit code 1."""

    exit_code = 1


class CertificateError(JaxalignError, RuntimeError):
    """A path does not have the score that was computed; exit code 1."""
