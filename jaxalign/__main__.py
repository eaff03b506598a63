"""``python -m jaxalign`` is the command ``jaxalign``.

An interrupt that comes while the verbs are imported ends the process like any other.
"""

import sys

from jaxalign.cli import process

TYPE_CHECKING = False  # that of typing would be imported
if TYPE_CHECKING:
    from typing import NoReturn


def run() -> "NoReturn":
    """The command ``jaxalign``."""
    process.begin()
    process.start_gpu(sys.argv[1:])
    from jaxalign.cli.main import main

    process.end(main())


if __name__ == "__main__":
    run()
