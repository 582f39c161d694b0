"""`graphlint validate`: runs reproductions, and the kernels that findings name, under limits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphlint.validate.verdict import Verdict


@click.command("validate", short_help="Prove findings by running the kernel.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--scenario", "scenarios", multiple=True, metavar="NAME", help="Run a bundled reproduction (or `all`); needs no checkout.")
@click.option("--list-scenarios", is_flag=True, help="List the bundled reproductions and what each shows.")
@click.option("--device", type=click.Choice(["auto", "cpu", "cuda"]), default="auto", show_default=True,
              help="cpu: the Triton interpreter; cuda: compiled, captured in a CUDA graph and replayed.")
@click.option("--seed", "seeds", type=int, multiple=True, help="Seed of the inputs; repeat for several runs. [default: 0]")
@click.option("--sanitizer", type=click.Choice(["memcheck", "initcheck", "racecheck"]), help="Also run under compute-sanitizer (CUDA).")
@click.option("--timeout", type=click.FloatRange(min=1), help="Seconds one child process may take.")
@click.option("--memory", type=click.IntRange(min=256), help="MiB of memory one child process may take.")
@click.option("--quick", is_flag=True, help="Fewer schedules.")
@click.option("--verbose", "-v", is_flag=True, help="Show every schedule.")
@click.option("--output-format", "formats", multiple=True, metavar="FORMAT[=FILE]", help="text, json or html; repeatable. [default: text]")
@click.option("--exit-zero", is_flag=True, help="Exit 0 even when something is confirmed.")
def validate_command(
    paths: tuple[Path, ...], scenarios: tuple[str, ...], list_scenarios: bool, device: str, seeds: tuple[int, ...], sanitizer: str | None,
    timeout: float | None, memory: int | None, quick: bool, verbose: bool, formats: tuple[str, ...], exit_zero: bool,
) -> None:
    """Prove findings by running the kernel.

    Kernels run in a child process with a time and memory limit, without network, and may write only inside a temporary folder.

    \b
      graphlint validate --list-scenarios
      graphlint validate --scenario stale-decode-offsets
      graphlint validate --scenario all --device cuda --output-format json=verdicts.json

    Exit status: 0 no finding confirmed, and every scenario shows its fault and its correction; 1 otherwise; 2 something could not be run.
    """
    wanted = _formats(formats)
    if list_scenarios:
        _list(wanted)
        return
    if not scenarios and not paths:
        raise click.UsageError("name a scenario (--scenario NAME, see --list-scenarios) or paths to check")
    verdicts: list[Verdict] = []
    if scenarios:
        verdicts += _run_scenarios(scenarios, device, seeds or (0,), sanitizer or "", timeout, memory, quick)
    if paths:
        verdicts += _run_paths(paths, device, seeds or (0,), sanitizer or "", timeout, memory, quick)
    _write(verdicts, wanted, verbose)
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

        click.echo(json.dumps([{key: value for key, value in msgspec.to_builtins(one).items() if key != "path"} for one in found], indent=2))
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


def _run_scenarios(
    names: tuple[str, ...], device: str, seeds: tuple[int, ...], tool: str, timeout: float | None, memory: int | None, quick: bool,
) -> list[Verdict]:
    from graphlint.validate.scenarios import available, run_scenario

    known = {one.name: one for one in available()}
    if "all" in names:
        names = tuple(known)
    for name in names:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(known)}"
            raise click.BadParameter(f"no scenario {name!r}{hint}", param_hint="--scenario")
    chosen = _prepare(device)
    return [
        run_scenario(known[name], chosen, seed=seed, quick=quick, limits=_limits(chosen, timeout, memory), tool=tool) for name in names for seed in seeds
    ]


def _limits(device: str, timeout: float | None, memory: int | None):  # type: ignore[no-untyped-def]
    from graphlint.validate.sandbox import Limits

    seconds = timeout or (300.0 if device == "cuda" else 60.0)
    return Limits(seconds=seconds, memory=memory << 20) if memory else Limits(seconds=seconds)


def _run_paths(
    paths: tuple[Path, ...], device: str, seeds: tuple[int, ...], tool: str, timeout: float | None, memory: int | None, quick: bool,
) -> list[Verdict]:
    raise click.UsageError("validation of paths is not available in this build; use --scenario")


def _write(verdicts: list[Verdict], wanted: list[tuple[str, Path | None]], verbose: bool) -> None:
    from graphlint.validate import render

    makers = {"text": lambda: render.as_text(verdicts, verbose), "json": lambda: render.as_json(verdicts), "html": lambda: render.as_html(verdicts)}
    for name, target in wanted:
        text = makers[name]()
        if target is None:
            click.echo(text)
        else:
            try:
                target.write_text(text + "\n", encoding="utf-8")
            except OSError as error:
                click.echo(f"cannot write {target}: {error.strerror}", err=True)
                sys.exit(2)
