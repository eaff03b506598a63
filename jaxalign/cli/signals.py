"""Signals that end a process: one line, nothing half written left, a code that tells.

Python raises ``KeyboardInterrupt`` wherever the main thread happens to be. In a module
of C++ that is being imported this may abort the process, in a callback of XLA it is
swallowed, and a thread that waits in a library is not reached at all. So nothing is
raised: a thread waits for signals, and ends the process.
"""

import os
import signal
import sys

LINES = {
    signal.SIGINT: "interrupted",
    signal.SIGTERM: "terminated",
    signal.SIGHUP: "the terminal hung up",
}
SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"  # and take a progress bar away


def watch() -> None:
    """Have the signals of ``LINES`` end the process, but for those that whoever
    started it has it ignore, as ``nohup`` does."""
    heeded = [n for n in LINES if signal.getsignal(n) is not signal.SIG_IGN]
    for number in heeded:  # at once, for nothing of C++ is here yet
        signal.signal(number, _end)
    import threading

    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    threading.Thread(target=_wait, args=(reader,), daemon=True).start()
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in heeded:
        signal.signal(number, _leave_it_to_the_thread)


def _leave_it_to_the_thread(*_) -> None:
    """A handler of Python's, without which no number would be written."""


def _wait(reader: int) -> None:
    while True:
        for number in os.read(reader, 64):
            if number in LINES:
                _end(number)


def _end(number: int, _frame: object = None) -> None:
    """No lock is taken here: another thread may hold it for ever."""
    try:
        output = sys.modules.get("jaxalign.io.output")
        # There is none of it where it is being imported.
        getattr(output, "remove_temporaries", bool)()
        if "rich.progress" in sys.modules and os.isatty(2):
            os.write(2, SHOW_CURSOR)
        os.write(2, f"jaxalign: error: {LINES[signal.Signals(number)]}\n".encode())
    except OSError:
        pass
    finally:
        os._exit(128 + number)
