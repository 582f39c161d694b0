"""`graphlint explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from graphlint.cli.options import chosen, running

if TYPE_CHECKING:
    from graphlint.finding import Finding
    from graphlint.runner import Outcome

EPILOG = """\b
Examples:
  graphlint explain vllm/v1/worker/gpu/spec_decode/eagle/speculator.py:450
  graphlint explain --output-format json PATH:LINE | jq .buffers"""


@click.command("explain", epilog=EPILOG)
@click.argument("place", metavar="PATH:LINE")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print.")
@running
@click.pass_context
def command(ctx: click.Context, /, place: str, output_format: str, **given: Any) -> None:
    """Say what graphlint believes around one line, and which rules fired there or did not.

    Prints the extents of names, the buffers with who writes and reads which lanes, and the region of the function around the line. Then
    the findings whose trace passes through it, those that were not reported and why, and the buffers that no rule objects to.
    """
    import json
    import os

    import msgspec

    from graphlint import project
    from graphlint.cli.progress import Progress
    from graphlint.project.describe import Described, render
    from graphlint.registry import PackError
    from graphlint.runner import run_check
    from graphlint.settings import ConfigError
    from graphlint.source.discovery import display_path
    from graphlint.source.files import SourceFile, read_file

    path, _, number = place.rpartition(":")
    if not path or not number.isdigit() or not int(number):
        raise click.UsageError(f"{place!r} is no PATH:LINE", ctx)
    if not os.path.isfile(path):
        raise click.UsageError(f"{path}: no such file", ctx)
    line, shown = int(number), display_path(path, os.getcwd())
    try:
        with Progress() as progress:
            options = chosen(ctx, given)
            outcome = run_check([path], options, progress=progress)
            facts = project.describe(SourceFile(shown, read_file(path)), line, engine=options.engine, output_format="json")
    except (ConfigError, PackError) as error:
        raise click.UsageError(str(error), ctx) from None
    for problem in outcome.report.errors:
        click.echo(f"error: {problem.path}:{problem.line}: {problem.message}", err=True)
    described = msgspec.json.decode(facts, type=Described)
    spans = [(part["line"], part["end_line"]) for part in (*described.functions, *described.kernels)] or [(line, line)]
    findings = _around(outcome, shown, spans)
    named = {finding.buffer for finding, _ in findings}
    quiet = sorted({buffer["name"] for function in described.functions for buffer in function["buffers"]} - named)
    if output_format == "json":
        from graphlint.report.json import finding_dict

        document = msgspec.to_builtins(described) | {
            "findings": [{**finding_dict(finding), "status": status} for finding, status in findings], "without_findings": quiet,
        }
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo(render(described))
        click.echo("")
        _verdicts(findings, quiet)
    ctx.exit(2 if outcome.report.errors else 0)


def _around(outcome: Outcome, path: str, spans: list[tuple[int, int]]) -> list[tuple[Finding, str]]:
    """Findings with a step in these lines, and what became of each."""
    every = [*((finding, "reported") for finding in outcome.report.findings), *outcome.unreported]

    def passes(finding: Finding) -> bool:
        steps = [(finding.path, finding.line), *((point.path, point.line) for point in finding.trace)]
        return any(where == path and first <= at <= last for where, at in steps for first, last in spans)

    return [(finding, status) for finding, status in every if passes(finding)]


def _verdicts(findings: list[tuple[Finding, str]], quiet: list[str]) -> None:
    if not findings:
        click.echo("No rule fired here.")
    for finding, status in findings:
        click.echo(f"{finding.rule} {finding.name}: {status} ({finding.severity}, {finding.confidence} confidence)")
        click.echo(f"  {finding.message}")
        for number, point in enumerate(finding.trace, 1):
            click.echo(f"  {number}. {point.path}:{point.line}: {point.label}")
    if quiet:
        click.echo(f"No rule objects to: {', '.join(quiet)}")
        click.echo("  Each event above that reads on past the lanes written before it would be a finding; a fill, or a reader that ends")
        click.echo("  at the written lanes, is why there is none. Where an extent is missing it is unknown, and rules are silent.")
