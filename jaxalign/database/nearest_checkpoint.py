"""The state of an interrupted ``nearest`` as arrays, and back."""

import numpy as np

from jaxalign.database.hit_list import Hits, Records
from jaxalign.database.nearest_state import NearestState

Arrays = dict[str, np.ndarray]
COUNTS = ("sequences", "residues", "aligned")


def arrays_of(state: NearestState) -> Arrays:
    """The state of a scan by identity."""
    fields = {name: getattr(state, name) for name in ("identity", "count", "index")}
    counts = np.array([getattr(state, name) for name in COUNTS], np.int64)
    about = {"counts": counts, "implementation": np.array(state.implementation)}
    return fields | about | _of_records(state.records)


def state_of(arrays: Arrays) -> NearestState:
    """The state of a scan by identity that was interrupted."""
    fields = (arrays[name].copy() for name in ("identity", "count", "index"))
    state = NearestState(*fields, records=_records(arrays))
    for name, value in zip(COUNTS, arrays["counts"].tolist(), strict=True):
        setattr(state, name, value)
    state.implementation = str(arrays["implementation"])
    return state


def arrays_of_hits(hits: Hits, first: Records) -> Arrays:
    """The hits of a search; ``first`` has the first record of all."""
    counts = np.array([hits.sequences, hits.residues], np.int64)
    info = np.array(hits.info["implementation"])
    about = {"score": hits.score, "index": hits.index, "counts": counts}
    named = _of_records(hits.records) | {"implementation": info}
    return about | named | _of_records(first, "first_")


def hits_of(arrays: Arrays) -> tuple[Hits, Records]:
    """(hits, the first record) of a search that was interrupted."""
    sequences, residues = arrays["counts"].tolist()
    sides = arrays["score"], arrays["index"]
    hits = Hits(*sides, residues, sequences, _records(arrays))
    return hits, _records(arrays, "first_")


def _of_records(records: Records, prefix: str = "") -> Arrays:
    indices = sorted(records)
    codes = [np.asarray(records[i][1]) for i in indices]
    ends = np.cumsum([0, *map(len, codes)]).astype(np.int64)
    names = "\n".join(records[i][0] for i in indices).encode()
    return {
        f"{prefix}records": np.array(indices, np.int64),
        f"{prefix}names": np.frombuffer(names, np.uint8),
        f"{prefix}codes": np.concatenate([np.zeros(0, np.uint8), *codes]),
        f"{prefix}ends": ends,
    }


def _records(arrays: Arrays, prefix: str = "") -> Records:
    """A name is the first word of a line, so it has no newline."""
    indices = arrays[f"{prefix}records"].tolist()
    names = arrays[f"{prefix}names"].tobytes().decode().split("\n")
    codes, ends = arrays[f"{prefix}codes"], arrays[f"{prefix}ends"].tolist()
    return {
        index: (name, codes[start:stop])
        for index, name, start, stop in zip(
            indices, names, ends, ends[1:], strict=False
        )
    }
