"""From a filled box, or a part of it, to a path."""
