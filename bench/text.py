"""Plain tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns wide enough for their longest cell; numbers to the right."""
    cells = [list(head), *([f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    right = [all(isinstance(row[column], int | float) for row in rows) for column in range(len(head))]
    lines = [
        "  ".join(cell.rjust(width) if to_right else cell.ljust(width) for cell, width, to_right in zip(row, widths, right, strict=True))
        for row in cells
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(line.rstrip() for line in lines)
