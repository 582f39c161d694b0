"""`graphlint rule`."""

from __future__ import annotations

import click

EPILOG = """\b
Examples:
  graphlint rule                  list all rules
  graphlint rule GL201            the page of one rule
  graphlint rule stale-tail       the same by name
  graphlint rule --output-format json > rules.json"""


@click.command("rule", epilog=EPILOG)
@click.argument("rule", required=False, metavar="[ID]")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print.")
@click.pass_context
def command(ctx: click.Context, /, rule: str | None, output_format: str) -> None:
    """Print the page of the rule ID (an id or a name), or list all rules."""
    from pathlib import Path

    from graphlint import registry, rule_pages, settings

    try:
        rules = registry.load(settings.options(settings.find_config(Path.cwd()), {}).rule_packs)
    except (registry.PackError, settings.ConfigError) as error:
        raise click.UsageError(str(error), ctx) from None
    for problem in rules.errors:
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        click.echo(f"error: {place}: {problem.message}", err=True)
    pages = rule_pages.pages(rules)
    if rule is not None:
        wanted = rule.strip()
        pages = [page for page in pages if page.id == wanted.upper() or page.name == wanted.lower()]
        if not pages:
            raise click.UsageError(f"there is no rule {rule!r}{rules.suggestion(rule)}", ctx)
    if output_format == "json":
        click.echo(rule_pages.as_json(pages))
    elif rule is None:
        click.echo(rule_pages.as_list(pages), nl=False)
    else:
        click.echo(pages[0].text, nl=False)
    ctx.exit(2 if rules.errors else 0)
