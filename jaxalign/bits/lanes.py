"""How many targets lie side by side in the lanes of bit-parallel words."""

LCS_LANES = (32, 128)  # of an LCS; 64 and 256 took as long or longer
# Letters of short sequences, of which a block has more: a call would take longer than
# what it computes
SHORT, SHORT_LANES = 32, 512
MAX_SPREAD = 1.25  # times the shortest target that the longest of many lanes is


def block_size(lengths, at: int) -> int:
    """How many of some targets, longest first, are lanes of an LCS from place ``at``
    on: fewer where the others are much shorter than the first."""
    few, many = LCS_LANES
    if lengths[at] <= SHORT:
        return SHORT_LANES
    last = lengths[min(at + many, len(lengths)) - 1]
    return many if lengths[at] <= MAX_SPREAD * last else few
