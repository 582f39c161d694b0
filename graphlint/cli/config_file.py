"""`graphlint config-file`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  graphlint config-file show                   what applies here, and which line says so
  graphlint config-file schema > schema.json   for an editor's completion"""


@click.group("config-file", epilog=EPILOG)
def command() -> None:
    """Explain graphlint's own configuration (graphlint.toml, or [tool.graphlint] in pyproject.toml).

    The file nearest to the current folder applies, alone: files further up add nothing. Options of the command line win over it.
    """


@command.command("show")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE", help="Instead of the nearest one.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print.")
@click.pass_context
def show(ctx: click.Context, /, config: Path | None, output_format: str) -> None:
    """Print every setting, and where it comes from."""
    import json

    from graphlint import settings

    file = config or settings.find_config(Path.cwd())
    try:
        table = {} if file is None else settings.table_of(file)
        settings.options(file, {})
    except settings.ConfigError as error:
        raise click.UsageError(str(error), ctx) from None
    lines = {} if file is None else _lines(file, table)
    shown = None if file is None else os.path.relpath(file)
    rows = [
        {"key": key, "value": table.get(key, default), "file": shown if key in table else None, "line": lines.get(key)}
        for key, default in settings.defaults().items()
    ]
    if output_format == "json":
        click.echo(json.dumps({"file": shown, "settings": rows}, indent=2))
        return
    click.echo(f"configuration: {shown}" if shown else "configuration: none found here or above; these are the defaults")
    width = max(len(row["key"]) for row in rows)
    values = [json.dumps(row["value"]) if row["value"] is not None else "none" for row in rows]
    wide = min(max(map(len, values)), 40)
    for row, value in zip(rows, values, strict=True):
        where = f"{row['file']}:{row['line']}" if row["line"] else row["file"] or "default"
        click.echo(f"  {row['key']:<{width}}  {value:<{wide}}  {where}")


@command.command("schema")
def schema() -> None:
    """Print the JSON schema of graphlint.toml."""
    import json

    from graphlint import settings

    click.echo(json.dumps(settings.schema(), indent=2))


def _lines(file: Path, table: dict[str, Any]) -> dict[str, int]:
    """The line of each key: the TOML reader does not say it, so the first that looks like it, in graphlint's own table."""
    own = file.name != "pyproject.toml"
    found: dict[str, int] = {}
    inside = own
    for number, line in enumerate(file.read_text("utf-8").split("\n"), 1):
        head = re.match(r"\s*\[+\s*([\w.\-]+)", line)
        if head:
            name = head[1] if own else head[1].removeprefix("tool.graphlint").removeprefix(".")
            inside = own or head[1] == "tool.graphlint" or head[1].startswith("tool.graphlint.")
            key = name.partition(".")[0]
            if inside and key in table:
                found.setdefault(key, number)
                inside = False
        elif inside and (match := re.match(r"\s*[\"']?([\w\-]+)[\"']?\s*[=.]", line)) and match[1] in table:
            found.setdefault(match[1], number)
    return found
