"""Helpers: check a text or a command line the way the command does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from graphlint.config.check import Options, Result, check_files
from graphlint.config.gpu import parse_gpu
from graphlint.config.situation import parse_assumptions
from graphlint.config.versions import parse_version

Check = Callable[..., Result]


@pytest.fixture
def check() -> Check:
    """`check("vllm serve M", version="0.25.1", gpu="H100", assume=("moe",), path="run.sh")`."""

    def run(
        text: str, *, version: str | None = "0.33.0", gpu: str | None = None, assume: tuple[str, ...] = (), path: str = "run.sh"
    ) -> Result:
        given = parse_assumptions(assume)
        if gpu is not None:
            given.gpu = parse_gpu(gpu)
        return check_files([(path, text.encode())], Options(given=given, version=parse_version(version) if version else None))

    return run
