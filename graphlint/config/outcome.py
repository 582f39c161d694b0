"""The record of one resolution: the modes on the way, and everything that a report or rule asks about."""

from __future__ import annotations

from dataclasses import dataclass, field

from graphlint.config import modes
from graphlint.config.drafter import Drafter
from graphlint.config.modes import VLLM_COMPILE, Mode
from graphlint.config.runner import Runner
from graphlint.config.sizes import Sizes, StartupError
from graphlint.config.support import SupportResult


@dataclass(frozen=True)
class Rewrite:
    """One change of the mode: from what to what, the kind of reason, why, and where vLLM does it."""

    before: Mode
    after: Mode
    kind: str
    why: str
    file: str
    symbol: str

    @property
    def loses(self) -> bool:
        """Whether graphs are lost."""
        return modes.worse(self.before, self.after)


@dataclass
class Outcome:
    """The resolution of one deployment under one set of facts."""

    requested: Mode = "NONE"
    requested_by: str = ""
    mode: Mode = "NONE"
    compile_mode: int = VLLM_COMPILE
    error: StartupError | None = None
    rewrites: list[Rewrite] = field(default_factory=list)
    runner: Runner | None = None
    breakable: bool = False
    support: SupportResult | None = None
    sizes: Sizes | None = None
    initial_sizes: Sizes | None = None
    query_len: int = 1
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    covered: int | None = None
    drafter: Drafter | None = None
    #: (kind, text) of things that are no rewrite of the mode: sizes dropped, hazards met
    notes: list[tuple[str, str]] = field(default_factory=list)

    @property
    def effective(self) -> str:
        """The mode, or `startup-error <exception>`."""
        return f"startup-error {self.error.kind}" if self.error is not None else self.mode
