"""Make the pictures of `graphlint check` in the documentation: `python docs/hooks/screenshots.py`. Needs Chromium and its driver."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
#: widest line of the output, in characters
WIDTH = 160


def main() -> None:
    """Check the small engine of the tests; its output becomes check.svg, its HTML report becomes report.png."""
    sys.path[:0] = [str(ROOT / "tests" / "cli"), str(ROOT / "tests" / "report")]
    from browser import browser
    from engine import FILES

    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        command = [sys.executable, "-m", "graphlint", "check", "engine", "--output-format", "html=report.html,text"]
        environment = {**os.environ, "FORCE_COLOR": "1", "PYTHONPATH": str(ROOT)}
        output = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout
        (IMAGES / "check.svg").write_text(_terminal("graphlint check engine", output))
        with browser(Path(folder, "report.html").resolve(), 1000) as driver:
            driver.save_screenshot(str(IMAGES / "report.png"))


def _terminal(command: str, output: str) -> str:
    """A picture of a terminal. It names no fonts from elsewhere."""
    from rich.console import Console
    from rich.text import Text

    with open(os.devnull, "w") as nothing:
        console = Console(record=True, width=WIDTH, force_terminal=True, file=nothing)
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(output.rstrip("\n")))
        svg = console.export_svg(title="graphlint", unique_id="graphlint")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    title = f"Output of {command}"
    head, rest = svg.split(">", 1)
    return f'{head} role="img" aria-label="{title}"><title>{title}</title>{rest}'


if __name__ == "__main__":
    main()
