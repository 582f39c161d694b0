"""`graphlint test-rules`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphlint.api import Example
    from graphlint.finding import Report
    from graphlint.registry import RuleEntry

EPILOG = """\b
Examples:
  graphlint test-rules tools/graphlint_rules
  graphlint test-rules --select HS101 --verbose tools/graphlint_rules

\b
Exit status:
  0  every bad example is reported and every good one is not
  1  one is wrong, or a rule has no bad or no good example
  2  a rule cannot be loaded, or an example cannot be analysed"""


@click.command("test-rules", epilog=EPILOG)
@click.argument("pack", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--select", multiple=True, metavar="RULES", help="Only these rules: ids, prefixes, names.")
@click.option("--verbose", "-v", is_flag=True, help="Print what each bad example reports.")
@click.pass_context
def command(ctx: click.Context, /, pack: Path, select: tuple[str, ...], verbose: bool) -> None:
    """Run the examples of the rules in DIR, a folder of rule files as `rule-packs` names them.

    Each example is a small tree of its own. A bad one must be reported by its rule, in the buffers it names; a good one must not be.
    """
    from graphlint import registry

    try:
        packs = [] if pack.resolve() == registry.built_in_pack() else [pack]
        loaded = registry.load(packs)
        wanted = loaded.select([part for value in select for part in value.split(",")])
    except (registry.PackError, registry.UnknownRule) as error:
        raise click.UsageError(str(error), ctx) from None
    own = pack.resolve()
    entries = [entry for entry in loaded if entry.rule.id in wanted and entry.path.resolve().is_relative_to(own)]
    for problem in loaded.errors:
        click.echo(f"error: {problem.path}:{problem.line}: {problem.message}", err=True)
    failures = problems = examples = 0
    for entry in entries:
        bad, crashed = _examples(entry, verbose)
        examples += len(entry.rule.bad) + len(entry.rule.good)
        failures += bad
        problems += crashed
    if not entries and not loaded.errors:
        raise click.UsageError(f"no rule in {pack} (a rule file defines `RULE = Rule(...)`)", ctx)
    click.echo(f"{len(entries)} rules, {examples} examples, {failures} failed" + (f", {problems} could not be run" if problems else ""))
    ctx.exit(2 if problems or loaded.errors else 1 if failures else 0)


def _examples(entry: RuleEntry, verbose: bool) -> tuple[int, int]:
    """Run one rule's examples; how many came out wrong, and how many could not be run."""
    from graphlint.api import Rule

    rule = entry.rule
    name = f"{rule.id} {rule.name}"
    if not isinstance(rule, Rule):
        click.echo(f"{name}: examples of deployment rules are not sources; skipped")
        return 0, 0
    failures = problems = 0
    for kind in ("bad", "good"):
        if not getattr(rule, kind):
            click.echo(f"FAIL {name}: no {kind} example")
            failures += 1
    for kind, example in [*(("bad", one) for one in rule.bad), *(("good", one) for one in rule.good)]:
        report = _run(entry, example)
        if report.errors:
            problems += 1
            click.echo(f"ERROR {name}, {kind} example {example.name!r}: {report.errors[0].message}")
            continue
        missing = set(example.buffers) - {finding.buffer for finding in report.findings}
        shown = [f"  line {finding.line}: {finding.message}" for finding in report.findings]
        if kind == "good" and report.findings:
            failures += 1
            click.echo("\n".join([f"FAIL {name}, good example {example.name!r} is reported:", *shown]))
        elif kind == "bad" and not report.findings:
            failures += 1
            click.echo(f"FAIL {name}, bad example {example.name!r} is not reported")
        elif kind == "bad" and missing:
            failures += 1
            click.echo("\n".join([f"FAIL {name}, bad example {example.name!r} does not name {', '.join(sorted(missing))}:", *shown]))
        elif verbose:
            click.echo("\n".join([f"ok   {name}, {kind} example {example.name!r}", *shown]))
    if not failures and not problems:
        click.echo(f"ok   {name}: {len(rule.bad)} bad, {len(rule.good)} good")
    return failures, problems


def _run(entry: RuleEntry, example: Example) -> Report:
    """The report on an example, in a folder of its own, with all confidences."""
    import tempfile

    from graphlint.registry import Registry
    from graphlint.runner import run_check
    from graphlint.settings import CheckOptions

    sources = {"example.py": example.source} if isinstance(example.source, str) else example.source
    with tempfile.TemporaryDirectory(prefix="graphlint-") as folder:
        for path, text in sources.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        options = CheckOptions(cache=False, jobs=1, min_confidence="low", select=(entry.rule.id,), respect_gitignore=False)
        return run_check([folder], options, rules=Registry([entry])).report
