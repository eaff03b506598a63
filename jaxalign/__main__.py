"""``python -m jaxalign`` is the command ``jaxalign``."""

from jaxalign.cli.process import run

if __name__ == "__main__":
    run()
