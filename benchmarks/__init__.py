"""Figures, comparisons and fuzzing: ``python -m benchmarks.NAME``, or its file.

A script finds the others beside it in either way.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
