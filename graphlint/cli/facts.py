"""`graphlint facts`."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  graphlint facts vllm/v1/worker/gpu/block_table.py          functions, buffers and kernels of a file
  graphlint facts vllm/v1/worker/gpu/block_table.py:57       what is known on that line
  graphlint facts --output-format json FILE | jq ."""


@click.command("facts", epilog=EPILOG)
@click.argument("place", metavar="PATH[:LINE]")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print.")
@click.option("--engine", default="auto", show_default=True, metavar="NAME", help="Vocabulary to read the code with.")
@click.pass_context
def command(ctx: click.Context, /, place: str, output_format: str, engine: str) -> None:
    """Show what graphlint knows of a file, or of the functions around one line of it."""
    import os

    from graphlint import project
    from graphlint.source.discovery import display_path
    from graphlint.source.files import SourceFile, read_file

    path, _, number = place.rpartition(":")
    line = None
    if path and number.isdigit():
        line = int(number)
    else:
        path = place
    try:
        file = SourceFile(display_path(path, os.getcwd()), read_file(path))
    except OSError as error:
        raise click.UsageError(f"cannot read {path}: {error.strerror}", ctx) from None
    described = project.describe(file, line, engine=engine, output_format=output_format)
    click.echo(described.rstrip("\n"))
