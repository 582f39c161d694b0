"""`graphlint init`."""

from __future__ import annotations

import os
from pathlib import Path

import click

EPILOG = """\b
Examples:
  graphlint init                  write graphlint.toml
  graphlint init --pyproject      add [tool.graphlint] to pyproject.toml
  graphlint init --baseline       and record what is found today, so that only new findings are reported"""

HOOK = """\
  - repo: local
    hooks:
      - id: graphlint
        name: graphlint
        entry: graphlint check
        language: python
        additional_dependencies: [vllm-graphlint]
        types: [python]
        require_serial: true
"""


@click.command("init", epilog=EPILOG)
@click.option("--pyproject", is_flag=True, help="Use pyproject.toml rather than graphlint.toml.")
@click.option("--baseline", is_flag=True, help="Write a baseline of today's findings as well.")
@click.pass_context
def command(ctx: click.Context, /, pyproject: bool, baseline: bool) -> None:
    """Write a configuration for the project in the current folder, and say what to do next."""
    from graphlint.baseline.file import NAME

    target = Path("pyproject.toml" if pyproject else "graphlint.toml")
    before = target.read_text("utf-8") if target.is_file() else ""
    if pyproject and not before:
        raise click.UsageError("there is no pyproject.toml here; without --pyproject, graphlint.toml is written", ctx)
    if (target.exists() and not pyproject) or "[tool.graphlint" in before:
        raise click.UsageError(f"{target} configures graphlint already; `graphlint config-file show` explains it", ctx)
    try:
        with target.open("a", encoding="utf-8", newline="\n") as file:
            file.write(("" if not before or before.endswith("\n") else "\n") + ("\n" if before else "") + _settings(pyproject, baseline))
    except OSError as error:
        raise click.UsageError(f"cannot write {target}: {error.strerror}", ctx) from None
    click.echo(f"wrote {target}" if not before else f"added [tool.graphlint] to {target}")
    if baseline:
        from graphlint.cli.baseline import create

        ctx.invoke(_quietly, command=create, arguments=["--force"])
    click.echo("\nNext:")
    click.echo("  graphlint check                       look for bugs in this folder")
    if not baseline:
        click.echo(f"  graphlint baseline create             too many to mend now? record them in {NAME}, then set  baseline = \"{NAME}\"")
    click.echo("  graphlint rule GL301                  why a finding is a bug")
    hooks = Path(".pre-commit-config.yaml")
    if hooks.is_file():
        if "graphlint" not in hooks.read_text("utf-8", errors="replace"):
            click.echo(f"\nAs a pre-commit hook, in {hooks} below `repos:`:\n\n{HOOK}", nl=False)
    elif os.path.exists(".git"):
        click.echo(f"\nAs a pre-commit hook, in a new {hooks}:\n\nrepos:\n{HOOK}", nl=False)


def _quietly(command: click.Command, arguments: list[str]) -> None:
    """Run another command; this one goes on after it."""
    command.main(arguments, prog_name="graphlint baseline create", standalone_mode=False)


def _settings(pyproject: bool, baseline: bool) -> str:
    from graphlint.baseline.file import NAME
    from graphlint.registry import load

    families = sorted({(entry.rule.id[:3], entry.family) for entry in load() if entry.family})
    shown = ", ".join(f"{prefix} {family}" for prefix, family in families)
    excluded = [f'"{name}/"' for name in ("tests", "benchmarks") if Path(name).is_dir()]
    lines = [
        "[tool.graphlint]" if pyproject else "# graphlint: CUDA-graph padding bugs. `graphlint config-file show` explains what applies.",
        f"# rules: ids, names or families ({shown}); all run by default",
        '# ignore = ["GL203"]',
        "# report nothing less sure than this: low, medium or high",
        'min-confidence = "medium"',
        "# patterns as in .gitignore",
        f"exclude = [{', '.join(excluded)}]",
    ]
    if baseline:
        lines += ["# findings that were there when graphlint was adopted; `graphlint check` shrinks it", f'baseline = "{NAME}"']
    return "\n".join(lines) + "\n"
