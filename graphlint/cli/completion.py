"""`graphlint completion`."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  graphlint completion bash >> ~/.bashrc
  graphlint completion zsh >> ~/.zshrc
  graphlint completion fish > ~/.config/fish/completions/graphlint.fish"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the script that completes commands and options in SHELL. Bash needs version 4.4 or later."""
    from click.shell_completion import get_completion_class

    from graphlint.cli import main

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(main, {}, "graphlint", "_GRAPHLINT_COMPLETE").source())
