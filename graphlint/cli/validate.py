"""`graphlint validate`: runs reproductions, and the kernels that findings name, under limits."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from graphlint.cli.options import split

if TYPE_CHECKING:
    from graphlint.settings import CheckOptions
    from graphlint.validate.sandbox import Limits
    from graphlint.validate.verdict import Verdict


@click.command("validate", short_help="Prove findings by running the kernel.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Run a bundled reproduction (or `all`); needs no checkout.")
@click.option("--list-scenarios", is_flag=True, help="List the bundled reproductions and what each shows.")
@click.option("--cases", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Run findings saved with their sources (JSON).")
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="cpu: the Triton interpreter; cuda: compiled, captured in a CUDA graph and replayed.",
)
@click.option("--seed", "seeds", type=int, multiple=True, help="Seed of the inputs; repeat for several runs. [default: 0]")
@click.option("--sanitizer", type=click.Choice(["memcheck", "initcheck", "racecheck"]), help="Also run under compute-sanitizer (CUDA).")
@click.option("--timeout", type=click.FloatRange(min=1), help="Seconds one child process may take.")
@click.option("--memory", type=click.IntRange(min=256), help="MiB of memory one child process may take.")
@click.option("--select", multiple=True, callback=split, metavar="RULES", help="With PATHS: only findings of these rules.")
@click.option("--min-confidence", type=click.Choice(["low", "medium", "high"]), help="With PATHS: nothing less sure.  [default: medium]")
@click.option("--quick", is_flag=True, help="Fewer schedules.")
@click.option("--verbose", "-v", is_flag=True, help="Show every schedule.")
@click.option("--output-format", "formats", multiple=True, metavar="FORMAT[=FILE]", help="text, json or html; repeatable. [default: text]")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when something is confirmed.")
def validate_command(
    paths: tuple[Path, ...],
    scenarios: tuple[str, ...],
    list_scenarios: bool,
    cases: Path | None,
    device: str,
    seeds: tuple[int, ...],
    sanitizer: str | None,
    timeout: float | None,
    memory: int | None,
    select: tuple[str, ...],
    min_confidence: str | None,
    quick: bool,
    verbose: bool,
    formats: tuple[str, ...],
    exit_zero: bool,
) -> None:
    """Prove findings by running the kernel.

    Kernels run in a child process with a time and memory limit, without network, and may write only inside a temporary folder.

    \b
      graphlint validate vllm/v1/worker/gpu
      graphlint validate --list-scenarios
      graphlint validate --scenario stale-decode-offsets
      graphlint validate --scenario all --device cuda --output-format json=verdicts.json

    Exit status: 0 no finding confirmed, and every scenario shows its fault and its correction; 1 otherwise; 2 something could not be run.
    """
    wanted = _formats(formats)
    if list_scenarios:
        _list(wanted)
        return
    if not scenarios and not paths and cases is None:
        raise click.UsageError("name a scenario (--scenario NAME, see --list-scenarios) or paths to check")
    verdicts: list[Verdict] = []
    run = _Run(device, seeds or (0,), sanitizer or "", timeout, memory, quick, select, min_confidence)
    for verdict in itertools.chain(run.scenarios(scenarios), run.cases(cases), run.paths(paths)):
        verdicts.append(verdict)
        _write_files(verdicts, wanted)  # after each: a run that is cut short leaves what it had
    _print(verdicts, wanted, verbose)
    ran = [verdict for verdict in verdicts if verdict.kind == "scenario"]
    if any(verdict.result == "unsupported" for verdict in ran):
        sys.exit(2)
    failed = any(verdict.result != "confirmed" or verdict.fix != "verified" for verdict in ran)
    if (failed or any(verdict.result == "confirmed" for verdict in verdicts if verdict.kind == "finding")) and not exit_zero:
        sys.exit(1)


command = validate_command


def _formats(values: tuple[str, ...]) -> list[tuple[str, Path | None]]:
    result: list[tuple[str, Path | None]] = []
    for value in values or ("text",):
        name, _, target = value.partition("=")
        if name not in ("text", "json", "html"):
            raise click.BadParameter(f"{name!r} is not one of text, json, html", param_hint="--output-format")
        result.append((name, Path(target) if target else None))
    return result


def _list(wanted: list[tuple[str, Path | None]]) -> None:
    from graphlint.validate.scenarios import available

    found = available()
    if any(name == "json" for name, _ in wanted):
        import json

        import msgspec

        click.echo(
            json.dumps([{key: value for key, value in msgspec.to_builtins(one).items() if key != "path"} for one in found], indent=2)
        )
        return
    for one in found:
        click.echo(f"{one.name}  [{', '.join(one.rules)}]\n  {one.title}\n")


def _prepare(device: str) -> str:
    """The device that will be used; a usage error when its packages are not installed."""
    from graphlint.validate.devices import missing_packages, resolve

    chosen = resolve(device)  # type: ignore[arg-type]
    missing = missing_packages(chosen)
    if missing:
        click.echo(f"graphlint validate needs {', '.join(missing)}: pip install 'vllm-graphlint[validate]'", err=True)
        sys.exit(2)
    return chosen


class _Run:
    """Settings of one invocation; each method yields verdicts as they come."""

    def __init__(
        self, device: str, seeds: tuple[int, ...], tool: str, timeout: float | None, memory: int | None, quick: bool,
        select: tuple[str, ...] = (), min_confidence: str | None = None,
    ) -> None:
        self.select, self.min_confidence = select, min_confidence
        self.device, self.seeds, self.tool, self.timeout, self.memory, self.quick = device, seeds, tool, timeout, memory, quick

    def limits(self, device: str) -> Limits:
        """Limits of one child: a CUDA device compiles first, which takes its time."""
        from graphlint.validate.sandbox import Limits

        seconds = self.timeout or (300.0 if device == "cuda" else 60.0)
        return Limits(seconds=seconds, memory=self.memory << 20) if self.memory else Limits(seconds=seconds)

    def scenarios(self, names: tuple[str, ...]) -> Iterator[Verdict]:
        """Bundled reproductions by name, or all of them."""
        if not names:
            return
        from graphlint.validate.scenarios import available, run_scenario

        known = {one.name: one for one in available()}
        names = tuple(known) if "all" in names else names
        for name in names:
            if name not in known:
                import difflib

                near = difflib.get_close_matches(name, known, 1)
                hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
                raise click.BadParameter(f"no scenario {name!r}{hint}", param_hint="--scenario")
        device = _prepare(self.device)
        for name in names:
            for seed in self.seeds:
                yield run_scenario(known[name], device, seed=seed, quick=self.quick, limits=self.limits(device), tool=self.tool)

    def cases(self, path: Path | None) -> Iterator[Verdict]:
        """Saved findings."""
        if path is None:
            return
        from graphlint.validate.confirm import confirm, warm_jail
        from graphlint.validate.saved import load

        try:
            found = load(path)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--cases") from error
        device = _prepare(self.device)
        with warm_jail() as warm:
            for case in found:
                verdict = confirm(
                    case.finding, case.sources, device, self.limits(device), fixed=case.fixed, seeds=self.seeds, quick=self.quick,
                    tool=self.tool, warm=warm,
                )
                verdict.subject = case.name
                yield verdict

    def paths(self, paths: tuple[Path, ...]) -> Iterator[Verdict]:
        """Findings of `graphlint check` in these paths that can be executed, each with its fix."""
        if not paths:
            return
        from graphlint.cli.probing import Probe, has_probe, verdicts
        from graphlint.fix import attach
        from graphlint.runner import run_check
        from graphlint.validate.confirm import warm_jail

        device = _prepare(self.device)
        checked = _check_options(self.select, self.min_confidence)
        with warm_jail() as warm:
            if device == "cpu":
                warm.warm_up()  # torch is imported while the files are checked
            outcome = run_check([str(path) for path in paths], checked)
            for error in outcome.report.errors:
                place = f"{error.path}:{error.line}" if error.line else error.path
                click.echo(f"error: {place}: {error.message}", err=True)
            if outcome.discovery.missing:
                sys.exit(2)
            findings = outcome.report.findings
            probed = [finding for finding in findings if has_probe(finding)]
            attach(probed, outcome.sources.lines)
            rest = len(findings) - len(probed)
            told = f"; {rest} more are about host code or settings, which are not executed" if rest else ""
            click.echo(f"running {len(probed)} of {len(findings)} findings{told}", err=True)
            probe = Probe(device=device, limits=self.limits(device), seeds=self.seeds, quick=self.quick, tool=self.tool)
            yield from (verdict for _, verdict in verdicts(probed, probe, warm))


def _check_options(select: tuple[str, ...], min_confidence: str | None) -> CheckOptions:
    """Options as `check` would have them here, with the configuration file."""
    from graphlint.settings import ConfigError, find_config, options

    try:
        return options(find_config(Path.cwd()), {"select": select or None, "min_confidence": min_confidence, "cache": True})
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _text(verdicts: list[Verdict], name: str, verbose: bool = False) -> str:
    from graphlint.validate import render

    return {"json": render.as_json, "html": render.as_html}[name](verdicts) if name != "text" else render.as_text(verdicts, verbose)


def _write_files(verdicts: list[Verdict], wanted: list[tuple[str, Path | None]]) -> None:
    for name, target in wanted:
        if target is None:
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_text(verdicts, name, verbose=True) + "\n", encoding="utf-8")
        except OSError as error:
            click.echo(f"cannot write {target}: {error.strerror}", err=True)
            sys.exit(2)


def _print(verdicts: list[Verdict], wanted: list[tuple[str, Path | None]], verbose: bool) -> None:
    for name, target in wanted:
        if target is None:
            click.echo(_text(verdicts, name, verbose))
