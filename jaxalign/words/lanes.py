"""How many targets lie side by side in the lanes of bit-parallel words."""

LCS_LANES = (32, 128)  # of an LCS; 64 and 256 took as long or longer
# Letters of short sequences, of which a block has more: a call would take longer than
# what it computes
SHORT, SHORT_LANES = 32, 512
MAX_SPREAD = 1.25  # times the shortest target that the longest of many lanes is
