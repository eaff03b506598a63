"""``python -m jaxalign`` is the command ``jaxalign``."""

from jaxalign.cli.main import run

if __name__ == "__main__":
    run()
