"""Options that `check`, `baseline` and `explain` share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from graphlint.settings import CheckOptions

Command = TypeVar("Command", bound=Callable[..., Any])


def split(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Options that take a comma-separated list and may be repeated."""
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def selection(command: Command) -> Command:
    """Which findings: --select, --ignore, --severity, --min-confidence."""
    for option in reversed((
        click.option(
            "--select", multiple=True, callback=split, metavar="RULES", help="Only these: ids, family prefixes (GL2), names or ALL.",
        ),
        click.option("--ignore", multiple=True, callback=split, metavar="RULES", help="All rules but these."),
        click.option(
            "--severity", type=click.Choice(["info", "warning", "error"]),
            help="Report nothing milder, and fail at this severity. Without it: report all, fail at warnings.",
        ),
        click.option(
            "--min-confidence", type=click.Choice(["low", "medium", "high"]),
            help="Report nothing less sure than this.  [default: medium]",
        ),
    )):
        command = option(command)
    return command


def running(command: Command) -> Command:
    """How to run: --engine, --jobs, --no-cache, --config, --no-config."""
    for option in reversed((
        click.option("--engine", metavar="NAME", help="Vocabulary to read the code with: auto, vllm, sglang, ...  [default: auto]"),
        click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Processes to parse with.  [default: one a core]"),
        click.option("--no-cache", is_flag=True, help="Neither use nor write the cache of facts."),
        click.option(
            "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
            help="Configuration to use, instead of the nearest graphlint.toml or pyproject.toml with [tool.graphlint].",
        ),
        click.option("--no-config", is_flag=True, help="Use no configuration file."),
        click.option("--no-deployments", is_flag=True, help="Check Python only, not what starts servers."),
    )):
        command = option(command)
    return command


def chosen(ctx: click.Context, given: Mapping[str, Any]) -> CheckOptions:
    """The options of a run, from the command line's values and the configuration file. Raises `ConfigError`."""
    from graphlint.settings import find_config, options

    values = dict(given)
    config, no_config, no_cache = values.pop("config"), values.pop("no_config"), values.pop("no_cache")
    no_deployments = values.pop("no_deployments")
    if config and no_config:
        raise click.UsageError("--config and --no-config exclude each other", ctx)
    file = None if no_config else config or find_config(Path.cwd())
    # an option that was not given leaves the word to the configuration
    said = {key: value for key, value in values.items() if value != ()}
    return options(file, {"cache": not no_cache, "deployments": not no_deployments, **said})
