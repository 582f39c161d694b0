"""The facts outside the command line, known or asked for: device, model, environment.

A fact that is neither given nor implied is asked through `Choices`, so that the resolution runs once per answer that matters and the report
can say which fact would decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from graphlint.config.explore import Choices
from graphlint.config.gpu import Gpu, parse_gpu
from graphlint.config.models import ModelFacts, from_architecture, from_config, from_name
from graphlint.config.request import Request
from graphlint.config.tables import Tables

_DEVICES = ("H100", "A100", "B200", "RTX5090")
_BOOLEAN = (
    "moe",
    "hybrid",
    "mla",
    "sparse",
    "pooling",
    "encoder_decoder",
    "multimodal",
    "compiled",
    "chunked_attention",
    "quantized",
    "mm_prefix",
)
_POOLING_TASKS = {"embed", "embedding", "classify", "reward", "score", "pooling", "token_embed", "token_classify"}


@lru_cache(maxsize=1)
def _device_options() -> list[tuple[Gpu, str]]:
    """The devices that an unknown GPU is answered for, the expected one first."""
    return [(parse_gpu(name), parse_gpu(name).label) for name in _DEVICES]


class BadAssumption(ValueError):
    """An `--assume` that names no known fact or value."""


@dataclass
class Given:
    """What the user says beside the configuration: `--gpu`, `--model-config`, `--assume`."""

    gpu: Gpu | None = None
    model_config: dict[str, Any] | None = None
    platform: str | None = None
    backend: str | None = None
    support: str | None = None
    runner: str | None = None
    architecture: str | None = None
    traits: dict[str, bool] = field(default_factory=dict)

    def key(self) -> tuple[object, ...]:
        """What tells two sets of facts apart."""
        return (
            self.gpu,
            self.platform,
            self.backend,
            self.support,
            self.runner,
            self.architecture,
            tuple(sorted(self.traits.items())),
            id(self.model_config),
        )

    def on(self, device: str | None) -> Given:
        """These facts with the device that an input names, where none is given; names that are no device change nothing."""
        if device is None or self.gpu is not None or self.platform is not None:
            return self
        try:
            return replace(self, gpu=parse_gpu(device.replace("_", " ")))
        except ValueError:
            return self


def parse_assumptions(items: tuple[str, ...]) -> Given:
    """`moe`, `hybrid=false`, `backend=FLASHMLA`, `support=UNIFORM_BATCH`, `runner=v1`, `platform=rocm`, `arch=Qwen3ForCausalLM`."""
    given = Given()
    for item in items:
        name, equals, value = item.partition("=")
        key = name.strip().lower().replace("-", "_")
        if key in ("arch", "architecture") and value:
            given.architecture = value
        elif key == "backend" and value:
            given.backend = value.upper()
        elif key == "support" and value.upper() in ("NEVER", "UNIFORM_SINGLE_TOKEN_DECODE", "UNIFORM_BATCH", "ALWAYS"):
            given.support = value.upper()
        elif key == "runner" and value.lower() in ("v1", "v2"):
            given.runner = value.lower()
        elif key == "platform" and value.lower() in ("cuda", "rocm", "xpu", "cpu"):
            given.platform = value.lower()
        elif key == "gpu" and value:
            given.gpu = parse_gpu(value)
        elif key in _BOOLEAN and (not equals or value.lower() in ("true", "false", "yes", "no", "1", "0")):
            given.traits[key] = not equals or value.lower() in ("true", "yes", "1")
        else:
            raise BadAssumption(
                f"--assume {item}: expected one of {', '.join(b.replace('_', '-') for b in _BOOLEAN)}, arch=, backend=, support=, "
                "runner=v1|v2, platform=cuda|rocm|xpu|cpu"
            )
    return given


class Situation:
    """Facts for one run of the resolution."""

    def __init__(self, request: Request, tables: Tables, given: Given, choices: Choices) -> None:
        self.request = request
        self.tables = tables
        self.given = given
        self.choices = choices
        self.assumed: dict[str, str] = {}
        self._condition_facts: tuple[object, ...] | None = None
        self.model = self._model()

    def _model(self) -> ModelFacts:
        request, given = self.request, self.given
        if given.model_config is not None:
            facts = from_config(given.model_config, self.tables)
        elif given.architecture is not None:
            facts = from_architecture(given.architecture, self.tables)
        else:
            facts = from_name(request.model or "", self.tables)
        for trait, value in given.traits.items():
            setattr(facts, trait, value)
        runner, task = request.given("runner"), request.given("task")
        if runner == "pooling" or task in _POOLING_TASKS or request.given("convert") in ("embed", "classify", "reward"):
            facts.pooling = True
        elif runner == "generate" or task == "generate":
            facts.pooling = False
        if request.given("enable_expert_parallel") and facts.moe is None:
            facts.moe = True
        backend = self.tables.backends.get(given.backend or request.backend or "")
        if backend is not None and facts.mla is None:
            facts.mla = backend.mla
        if backend is not None and facts.sparse is None and backend.sparse:
            facts.sparse = True
        if facts.mla is None and request.speculation is not None and self._stated_method() == "deepseek_mtp":
            facts.mla = True
        return facts

    def _stated_method(self) -> Any:
        config = self.request.given("speculative_config")
        return config.get("method") if isinstance(config, dict) else None

    @property
    def platform(self) -> str:
        """`cuda`, `rocm`, `xpu` or `cpu`; CUDA where nothing says otherwise."""
        if self.given.platform:
            return self.given.platform
        if self.given.gpu is not None:
            return self.given.gpu.platform
        backend = self.request.backend or ""
        for prefix, platform in (("ROCM_", "rocm"), ("XPU_", "xpu"), ("CPU_", "cpu")):
            if backend.startswith(prefix):
                return platform
        if any(name.startswith(("VLLM_ROCM_", "HIP_VISIBLE")) for name in self.request.env):
            return "rocm"
        self.assumed.setdefault("platform", "CUDA")
        return "cuda"

    @property
    def gpu(self) -> Gpu:
        """The device, asked for when nothing gives it."""
        if self.given.gpu is not None:
            return self.given.gpu
        if self.platform != "cuda":
            return Gpu(self.platform, self.platform, None)
        return self.choices.pick("gpu", _device_options())

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability, (0, 0) outside CUDA."""
        return self.gpu.capability or (0, 0)

    def trait(self, name: str, question: str, ask: bool = True) -> bool:
        """A model trait; unknown ones are asked for, "no" first, or assumed absent."""
        value = getattr(self.model, name)
        if value is not None:
            return bool(value)
        if ask:
            return self.choices.pick(f"model:{name}", [(False, f"not {question}"), (True, question)])
        self.assumed[name] = f"not {question}"
        return False

    def condition_facts(self) -> tuple[object, ...] | None:
        """Everything that extracted conditions depend on, None while the device is open: asking for it must stay on record."""
        if self.given.gpu is None and self.platform == "cuda":
            return None
        if self._condition_facts is None:
            request, model, speculation = self.request, self.model, self.request.speculation
            given = request.given
            config = given("attention_config")
            self._condition_facts = (
                request.version,
                self.tables.version,
                self.platform,
                self.gpu.capability,
                given("kv_cache_dtype"),
                request.number("tensor_parallel_size", 1),
                request.number("decode_context_parallel_size", 1),
                repr(config),
                speculation is not None,
                self.query_len,
                speculation is not None and (speculation.adaptive, speculation.method),
                model.mla,
                model.mm_prefix,
                model.num_heads,
                model.num_kv_heads,
                model.head_dim,
                *(request.flag_env(n) for n in ("VLLM_BATCH_INVARIANT", "VLLM_FLASH_ATTN_VERSION", "VLLM_USE_TRTLLM_ATTENTION")),
            )
        return self._condition_facts

    @property
    def query_len(self) -> int:
        """Tokens per request of a uniform decode batch: 1 + speculative tokens; 2 stands for any number above 1."""
        speculation = self.request.speculation
        if speculation is None:
            return 1
        if speculation.tokens is None:
            return 2
        return 1 + speculation.tokens

    @property
    def query_len_known(self) -> bool:
        """Whether `query_len` is the real number."""
        return self.request.speculation is None or self.request.speculation.tokens is not None
