"""A page of HTML for people, in one file that needs no network."""

from collections.abc import Iterable
from html import escape

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left;
  border-bottom: 1px solid #ddd; } td.n, th.n { text-align: right; }
figure { margin: 1rem 0; } figcaption { color: #444; font-size: .9rem; }
svg { width: 100%; height: auto; font: 11px sans-serif; } svg .g { stroke: #e4e4e4; }
pre { overflow-x: auto; background: #f6f6f6; padding: .7rem; font-size: 12px; }
summary { cursor: pointer; } .ok { color: #1c6b34; } .leak { color: #a3261b; }
"""


def page(title: str, sections: Iterable[Iterable[str]]) -> str:
    """The whole page, of the lines of its sections."""
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
    )
    lines = (f"{line}\n" for section in sections for line in section)
    return "".join([head, *lines, "</body></html>\n"])
