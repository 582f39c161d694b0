"""`graphlint lsp`."""

from __future__ import annotations

import click


@click.command("lsp")
@click.pass_context
def command(ctx: click.Context, /) -> None:
    """Serve an editor over standard input and output (language server protocol).

    Needs the extra lsp: pip install 'vllm-graphlint[lsp]'. The documentation says how to set up editors.
    """
    try:
        import pygls  # noqa: F401
    except ImportError:
        raise click.UsageError("the language server needs pygls: pip install 'vllm-graphlint[lsp]'", ctx) from None
    from graphlint.lsp.server import create

    create().start_io()
