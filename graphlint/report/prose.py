"""The Markdown that rule pages are written in, as HTML: headings, paragraphs, lists, indented or fenced code, code spans."""

from __future__ import annotations

import re
from html import escape


def inline(text: str) -> str:
    """Text of one paragraph; what stands in backticks becomes code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last backtick closes nothing
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(f"<code>{escape(part)}</code>" if number % 2 else escape(part) for number, part in enumerate(parts))


def to_html(text: str, *, below: int = 0) -> str:
    """A page; headings are lowered by `below` levels. The first heading is left out: the page's frame says it."""
    out: list[str] = []
    for block in _blocks(text):
        heading = re.fullmatch(r"(#+) +(.+)", block)
        if heading:
            if len(heading[1]) > 1:
                level = min(len(heading[1]) + below, 6)
                out.append(f"<h{level}>{inline(heading[2])}</h{level}>")
        elif block.startswith("    "):
            out.append(_code(block, 4))
        elif block.startswith("```"):
            out.append(_code("\n".join(block.split("\n")[1:-1]), 0))
        elif all(re.match(r"[-*] |  ", line) for line in block.split("\n")):
            items = re.split(r"(?m)^[-*] ", block)[1:]
            out.append("<ul>" + "".join(f"<li>{inline(' '.join(item.split()))}</li>" for item in items) + "</ul>")
        else:
            out.append(f"<p>{inline(' '.join(block.split()))}</p>")
    return "".join(out)


def _code(block: str, indent: int) -> str:
    return "<pre>" + escape("\n".join(line[indent:] for line in block.split("\n"))) + "</pre>"


def _blocks(text: str) -> list[str]:
    """Paragraphs, headings, lists and code blocks; a blank line inside code does not end it."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in text.rstrip().split("\n"):
        if line.startswith("```"):
            if not fenced:
                blocks.append([])
            blocks[-1].append(line)
            fenced = not fenced
            if not fenced:
                blocks.append([])
        elif fenced:
            blocks[-1].append(line)
        elif not line.strip():
            if blocks[-1] and blocks[-1][0].startswith("    "):
                blocks[-1].append("")
            else:
                blocks.append([])
        elif line.startswith("#"):
            blocks += [[line], []]
        else:
            if blocks[-1] and blocks[-1][0].startswith("    ") != line.startswith("    ") and not blocks[-1][0].startswith(("- ", "* ")):
                blocks.append([])
            blocks[-1].append(line)
    return ["\n".join(block).rstrip() for block in blocks if any(line.strip() for line in block)]
