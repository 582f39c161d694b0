"""`graphlint matrix`."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  graphlint matrix 0.33.0
  graphlint matrix path/to/vllm                  the checkout's own source is read
  graphlint matrix 0.25.1 0.33.0                 what changed
  graphlint matrix --output-format html 0.33.0 > support.html"""


@click.command("matrix", epilog=EPILOG)
@click.argument("targets", nargs=-1, required=True, metavar="CHECKOUT|VERSION [CHECKOUT|VERSION]")
@click.option(
    "--output-format", type=click.Choice(["text", "json", "markdown", "html"]), default="text", show_default=True, help="How to print."
)
@click.option("--backend", "backends", multiple=True, metavar="NAME", help="Only these backends.")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], output_format: str, backends: tuple[str, ...]) -> None:
    """Show which CUDA-graph support each attention backend of a release declares, and which modes result.

    With two releases or checkouts: what changed between them.
    """
    from graphlint.config.matrix import UnknownRelease, compare, load_matrix
    from graphlint.config.matrix_render import matrix_json, render_changes, render_html, render_markdown, render_text

    if len(targets) > 2:
        raise click.UsageError("give one release or checkout, or two to compare", ctx)
    try:
        matrices = [load_matrix(target) for target in targets]
    except UnknownRelease as error:
        raise click.UsageError(str(error), ctx) from None
    if backends:
        wanted = {b.upper() for b in backends}
        unknown = wanted - {r.name.upper() for m in matrices for r in m.rows}
        if unknown:
            raise click.UsageError(f"no backend {', '.join(sorted(unknown))} in {' or '.join(targets)}", ctx)
        matrices = [m._replace(rows=[r for r in m.rows if r.name.upper() in wanted]) for m in matrices]
    if len(matrices) == 2:
        changes = compare(matrices[0], matrices[1])
        if output_format == "json":
            _json({"schema": 1, "from": matrices[0].version, "to": matrices[1].version, "changes": [c._asdict() for c in changes]})
        elif output_format == "html":
            raise click.UsageError("two releases are compared as text, markdown or json", ctx)
        else:
            click.echo(render_changes(matrices[0], matrices[1], changes, output_format == "markdown"), nl=False)
        return
    matrix = matrices[0]
    if output_format == "json":
        _json(matrix_json(matrix))
    elif output_format == "html":
        click.echo(render_html(matrix), nl=False)
    elif output_format == "markdown":
        click.echo(render_markdown(matrix), nl=False)
    else:
        click.echo(render_text(matrix), nl=False)


def _json(document: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
