"""``python -m jaxalign`` is the command ``jaxalign``."""

from jaxalign.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
