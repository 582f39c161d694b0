"""Model runner V1 or V2, and what each refuses (`VllmConfig.use_v2_model_runner` and its lists)."""

from __future__ import annotations

from typing import NamedTuple

from graphlint.config.modes import STOCK
from graphlint.config.request import Request
from graphlint.config.situation import Situation
from graphlint.config.sizes import StartupError
from graphlint.config.versions import V


class Runner(NamedTuple):
    """The runner and why."""

    v2: bool
    why: str

    @property
    def name(self) -> str:
        """`V1` or `V2`."""
        return "V2" if self.v2 else "V1"


_V2_METHODS = {"0.22.0": ("eagle", "eagle3", "mtp"), "0.24.0": ("eagle", "eagle3", "mtp", "dflash", "dspark")}


def choose_runner(situation: Situation, compile_mode: int) -> Runner:
    """The runner of this deployment. Raises StartupError where an explicit choice cannot be honoured."""
    request = situation.request
    version = request.version
    stated = request.flag_env("VLLM_USE_V2_MODEL_RUNNER")
    explicit = None if stated is None or version < V("0.12.0") else stated.strip() not in ("0", "", "false", "False")
    if situation.given.runner is not None and explicit is None:
        return Runner(situation.given.runner == "v2", "assumed")
    if version < V("0.12.0"):
        return Runner(False, f"{version} has only V1")
    if version < V("0.22.0"):
        return Runner(bool(explicit), "VLLM_USE_V2_MODEL_RUNNER" if explicit is not None else f"default of {version}")
    unsupported = v2_unsupported(situation, compile_mode, explicit is not None)
    if explicit is not None:
        refused = unsupported if explicit else v1_unsupported(situation)
        if refused:
            name = "V2" if explicit else "V1"
            raise StartupError(
                "ValueError",
                f"VLLM_USE_V2_MODEL_RUNNER={stated} forces model runner {name}, which does not support {', '.join(refused)}",
                f"VllmConfig._validate_{name.lower()}_model_runner",
            )
        return Runner(explicit, "VLLM_USE_V2_MODEL_RUNNER")
    if _forced_v2(request):
        if unsupported:
            raise StartupError(
                "ValueError",
                f"model runner V2 is required here and does not support {', '.join(unsupported)}",
                "VllmConfig._validate_v2_model_runner",
            )
        return Runner(True, "required by the speculative method or context parallelism")
    if not _default_v2(situation):
        return Runner(False, f"not a default V2 model in {version}")
    if unsupported:
        return Runner(False, f"V2 does not support {', '.join(unsupported)}")
    return Runner(True, f"default of {version} for this model")


def _forced_v2(request: Request) -> bool:
    speculation = request.speculation
    if V("0.24.0") <= request.version < V("0.29.0") and speculation is not None and speculation.method == "dspark":
        return True
    return V("0.28.0") <= request.version < V("0.29.0") and request.number("prefill_context_parallel_size", 1) > 1


def _default_v2(situation: Situation) -> bool:
    version, model, tables = situation.request.version, situation.model, situation.tables
    listed = (model.architecture or "") in tables.v2_archs
    if version >= V("0.29.0"):
        return not (situation.platform == "rocm" and (model.architecture or "") in tables.v2_excluded_rocm)
    if situation.trait("pooling", "a pooling model", ask=False):
        return False
    if version < V("0.25.0"):
        if not listed:
            return False
        dense_only = version < V("0.24.0") or not model.architecture or "Moe" not in model.architecture
        if version < V("0.23.0"):
            return not situation.trait("moe", "a mixture-of-experts model", ask=False) and not situation.trait(
                "quantized", "quantised", ask=False
            )
        return listed if not dense_only else not bool(model.moe and version < V("0.24.0"))
    if situation.trait("hybrid", "a hybrid (linear attention or Mamba) model"):
        return listed and version >= V("0.28.0")
    return listed or not situation.trait("moe", "a mixture-of-experts model")


def v2_unsupported(situation: Situation, compile_mode: int, explicit: bool) -> list[str]:
    """`_get_v2_model_runner_unsupported_features`, as far as the command line shows it."""
    request, version = situation.request, situation.request.version
    speculation = request.speculation
    out: list[str] = []
    given = request.given
    if (
        given("distributed_executor_backend") == "external_launcher"
        and request.number("pipeline_parallel_size", 1) > 1
        and version >= V("0.24.0")
    ):
        out.append("pipeline parallelism with external_launcher")
    if version < V("0.29.0"):
        out += _v2_unsupported_until_028(situation, compile_mode)
    elif speculation is not None and (
        speculation.method in ("suffix", "custom_class") or (version < V("0.31.0") and speculation.method == "ngram_gpu")
    ):
        out.append(f"speculative method '{speculation.method}'")
    if speculation is not None:
        if speculation.parallel_drafting and speculation.method not in ("dflash", "dspark"):
            out.append("parallel drafting for EAGLE speculative decoding")
        config = given("speculative_config")
        if isinstance(config, dict) and config.get("use_heterogeneous_vocab") and version >= V("0.29.0"):
            out.append("heterogeneous-vocabulary draft models")
    if given("enable_dbo") or request.number("ubatch_size", 0) > 1:
        if version < V("0.33.0") or not explicit:
            out.append("dual batch overlap")
        else:
            for bad, name in (
                (given("enable_lora"), "LoRA"),
                (speculation is not None, "speculative decoding"),
                (request.number("pipeline_parallel_size", 1) > 1, "pipeline parallelism"),
                (
                    request.number("decode_context_parallel_size", 1) > 1 or request.number("prefill_context_parallel_size", 1) > 1,
                    "context parallelism",
                ),
                (situation.model.hybrid, "hybrid models"),
                (situation.model.multimodal, "multimodal models"),
                (request.mode == "PIECEWISE", "PIECEWISE CUDA graphs"),
            ):
                if bad:
                    out.append(f"dual batch overlap with {name}")
    return out


def _v2_unsupported_until_028(situation: Situation, compile_mode: int) -> list[str]:
    request, version = situation.request, situation.request.version
    speculation, given = request.speculation, request.given
    out: list[str] = []
    if version < V("0.24.0") and situation.model.hybrid:
        out.append("hybrid/mamba models")
    if request.number("prefill_context_parallel_size", 1) > 1 and not (version >= V("0.28.0") and situation.model.mla):
        out.append("prefill context parallelism")
    if compile_mode == STOCK:
        out.append("stock torch.compile")
    if request.sequence_parallel and request.number("tensor_parallel_size", 1) > 1:
        out.append("sequence parallelism")
    if speculation is not None and speculation.method is not None:
        known = _V2_METHODS["0.24.0" if version >= V("0.24.0") else "0.22.0"]
        if speculation.method not in known:
            out.append(f"speculative method '{speculation.method}'")
        if speculation.method == "eagle3" and request.number("pipeline_parallel_size", 1) > 1:
            out.append("EAGLE3 with pipeline parallelism")
    for name, text in (
        ("enable_elastic_ep", "elastic expert parallelism"),
        ("logits_processors", "custom logits processors"),
        ("enable_prompt_embeds", "prompt embeds"),
        ("kv_sharing_fast_prefill", "KV sharing fast prefill"),
    ):
        if given(name):
            out.append(text)
    if version < V("0.28.0"):
        if given("enable_return_routed_experts"):
            out.append("routed experts capture")
        if given("logprobs_mode") in ("raw_logits", "processed_logits"):
            out.append(f"logprobs mode '{given('logprobs_mode')}'")
        if given("ec_transfer_config"):
            out.append("EC transfer")
    return out


def v1_unsupported(situation: Situation) -> list[str]:
    """`_get_v1_model_runner_unsupported_features`, as far as the command line shows it."""
    request, version, speculation = situation.request, situation.request.version, situation.request.speculation
    out: list[str] = []
    if version < V("0.29.0"):
        if speculation is not None and speculation.method == "dspark" and version >= V("0.24.0"):
            out.append("dspark speculative decoding")
        return out
    if request.number("prefill_context_parallel_size", 1) > 1:
        out.append("prefill context parallel")
    if request.number("pipeline_parallel_size", 1) > 1 and request.given("async_scheduling"):
        out.append("pipeline parallelism with async scheduling")
    if speculation is not None:
        if speculation.method == "dspark":
            out.append("dspark speculative decoding")
        if speculation.adaptive:
            out.append("adaptive draft verification")
    if request.given("enable_batch_sharded_sampling"):
        out.append("batch-sharded sampling")
    if (situation.model.architecture or "").startswith("Step5"):
        out.append("Step5")
    return out
