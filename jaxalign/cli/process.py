"""The process of the command ``jaxalign``: its streams, signals, GPU and end.

Little is imported here: signals are watched before the rest is imported.

A signal that ends the process gives one line, leaves nothing half written, and a code
that tells. Python raises ``KeyboardInterrupt`` wherever the main thread happens to be.
In a module of C++ that is being imported this may abort the process, in a callback of
XLA it is swallowed, and a thread that waits in a library is not reached at all. So
nothing is raised: a thread waits for signals, and ends the process.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # that of typing would be imported
if TYPE_CHECKING:
    from typing import NoReturn

LINES = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "the terminal hung up",
}
BUDGET = "--memory-budget"
SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"  # and take a progress bar away


def begin() -> None:
    """Watch for signals, take the places of closed streams, and keep no memory that is
    free beside a budget."""
    watch_signals()
    open_closed_streams()
    return_memory(sys.argv[1:])


def end(code: int) -> "NoReturn":
    """End the process with an exit code, its answers written.

    Python would take its handlers of signals back first, and an interrupt then would
    end a job that is done with a code of its own. A process that has started JAX asks
    no device for anything any more: to give its memory back takes up to a second, and
    in the dead context of a device it would log an error each, wait for ever, or abort.
    Files were closed, and what was half written removed, on the way here. Who measures
    the process is told of its end, unless JAX has failed in it.
    """
    watched = sys.gettrace() or sys.getprofile() or "ray" in sys.modules
    if watched and not (code and "jax" in sys.modules):
        sys.exit(code)
    os._exit(code)


def open_closed_streams() -> None:
    """Have the numbers of closed standard streams taken: the next file that is opened
    would have one of them, and messages of libraries would go into it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # the lowest number that is free is this one
            os.open(os.devnull, os.O_RDWR)


def watch_signals() -> None:
    """Have the signals of ``LINES`` end the process, but for those that whoever
    started it has it ignore, as ``nohup`` does."""
    heeded = [n for n in LINES if signal.getsignal(n) is not signal.SIG_IGN]
    for number in heeded:  # at once, for nothing of C++ is here yet
        signal.signal(number, _end_by_signal)
    import threading

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_wait, args=(reader,), daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in heeded:
        signal.signal(number, _leave_it_to_the_thread)


def _leave_it_to_the_thread(*_: object) -> None:
    """A handler of Python's, without which no number would be written."""


def _wait(reader: int) -> None:
    while True:
        for number in os.read(reader, 64):
            if number in LINES:
                _end_by_signal(number)


def _end_by_signal(number: int, _frame: object = None) -> None:
    """No lock is taken here: another thread may hold it for ever."""
    try:
        output = sys.modules.get("jaxalign.io.output")
        # There is none of them where it is being imported.
        getattr(output, "remove_temporaries", bool)()
        line = LINES[signal.Signals(number)] + getattr(output, "resumable", str)()
        if "rich.progress" in sys.modules and os.isatty(2):
            os.write(2, SHOW_CURSOR)
        os.write(2, f"jaxalign: error: {line}\n".encode())
    except OSError:
        pass
    finally:
        os._exit(128 + number)


MMAP_THRESHOLD, MAPPED_BYTES = -3, 2**18  # of glibc: arrays from there on are mapped


def return_memory(words: list[str]) -> None:
    """Have the C library give back what arrays took, where a command has a budget:
    else glibc raises its threshold up to 32 MiB as arrays are freed, and each thread
    keeps those below in an arena of its own."""
    if any(word.split("=")[0] == BUDGET for word in words):
        import ctypes  # which others need not import

        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(MMAP_THRESHOLD, MAPPED_BYTES)


# ------------------------------------------------------------------------------
# A GPU starts before a command knows all of its options. NVIDIA's driver, JAX and its
# plugin take two to four seconds, which is most of many a job, and wait for files and
# for each other. They start in a thread while the verbs are imported and files are
# read, only where a GPU will be used: large files, and no option against it.

VERBOSE = {"-v", "--verbose"}
XLA_LOG, FATAL = "TF_CPP_MIN_LOG_LEVEL", "3"
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
NVIDIA, DRIVER = "/proc/driver/nvidia", "libcuda.so.1"
GPU_VERBS = {"all", "search", "cluster", "dedup", "split", "audit"}
NO_GPU = {"cpu", "rows", "sweep", "wavefront", "--help", "-h", "--plan"}
GPU_BYTES = 2**20  # of a file with which a job is none by rows


def start_gpu(words: list[str]) -> None:
    """Start a GPU in a thread if the command is likely to need it."""
    if seems_large(words) and os.path.exists(NVIDIA):
        import threading

        set_environment(words)
        threading.Thread(target=_start_gpu, daemon=True).start()


def seems_large(words: list[str]) -> bool:
    """Whether a command has files so large that it is a job for a GPU, if any."""
    said = {part for word in words for part in word.split("=")}
    if not words or words[0] not in GPU_VERBS or said & NO_GPU:
        return False
    sizes = (os.path.getsize(word) for word in words if os.path.isfile(word))
    return max(sizes, default=0) >= GPU_BYTES


def set_environment(words: list[str]) -> None:
    """Set what JAX reads when it starts, unless the user has.

    XLA says what ends the process and nothing else, unless asked for more: its errors
    reach the user as one line, where a failed device would log hundreds. Memory of a
    GPU is taken as it is needed: to reserve most of it takes two seconds.
    """
    os.environ.setdefault(PREALLOCATE, "false")
    if not VERBOSE & set(words):
        os.environ.setdefault(XLA_LOG, FATAL)


def _start_gpu() -> None:
    from contextlib import suppress

    # What fails here fails again where it is needed.
    with suppress(Exception):
        import ctypes  # which others need not import

        ctypes.CDLL(DRIVER).cuInit(0)  # without Python's lock
    with suppress(Exception):
        from jaxalign.pairs.api import start_jax

        start_jax()
