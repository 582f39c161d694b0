"""The program: `graphlint` and `python -m graphlint`."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line. `--version` answers before click is imported: hooks and editors call it often."""
    if sys.argv[1:] == ["--version"]:
        from graphlint import __version__

        sys.stdout.write(f"graphlint {__version__}\n")
        return
    from graphlint.cli import main

    main(prog_name="graphlint")


if __name__ == "__main__":
    run()
