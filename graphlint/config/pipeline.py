"""From what was asked to what runs: configuration time, platform, runner, backends, sizes, drafter; each rewrite on record.

Follows `VllmConfig.__post_init__` and the model runner's initialisation of 0.10.1 to 0.33.0, branch by branch, gated by version.
"""

from __future__ import annotations

from graphlint.config import modes
from graphlint.config.breakable import breakable_enabled, piecewise_available
from graphlint.config.drafter import drafter_mode
from graphlint.config.json_values import Symbol
from graphlint.config.modes import DYNAMO_ONCE, NO_COMPILE, STOCK, VLLM_COMPILE, Mode, decode_mode, has_full, has_piecewise, separate
from graphlint.config.outcome import Outcome, Rewrite
from graphlint.config.request import Request, connector_of
from graphlint.config.resolver import Step, resolve_support, resolver_file, resolver_symbol, split_attention
from graphlint.config.runner import choose_runner
from graphlint.config.situation import Situation
from graphlint.config.sizes import SizeRequest, Sizes, StartupError, capture_sizes, covered_requests, round_for_spec_decode
from graphlint.config.support import resolve_groups
from graphlint.config.versions import V


def config_file(request: Request) -> str:
    """The file that held `VllmConfig` in this release."""
    return "vllm/config/vllm.py" if request.version >= V("0.11.1") else "vllm/config/__init__.py"


class _Resolution:
    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self.request = situation.request
        self.version = situation.request.version
        self.out = Outcome(query_len=situation.query_len)

    def rewrite(self, after: Mode, kind: str, why: str, file: str, symbol: str) -> None:
        if after != self.out.mode:
            self.out.rewrites.append(Rewrite(self.out.mode, after, kind, why, file, symbol))
            self.out.mode = after

    def steps(self, steps: list[Step], file: str, symbol: str) -> None:
        for step in steps:
            self.rewrite(step.mode, step.kind, step.why, file, symbol)

    def run(self) -> Outcome:
        try:
            self._rejected()
            self._encoder_graphs()
            self._defaults()
            self._config_time()
            self._platform()
            self._late()
            self._splitting()
            self._final_check()
            self._support()
            self._drafter()
        except StartupError as error:
            self.out.error = error
        return self.out

    def _rejected(self) -> None:
        for problem in self.request.problems:
            if problem.fatal:
                kind = {
                    "unknown-field": "validation",
                    "bad-mode": "validation",
                    "unknown-method": "validation",
                    "conflict": "ValueError",
                    "unknown-backend": "ValueError",
                    "model-option": "ValueError",
                    "config-twice": "AssertionError",
                }.get(problem.kind, "argparse")
                raise StartupError(kind, problem.message, "argument parsing")

    # -- configuration time

    def _defaults(self) -> None:
        request, version, out = self.request, self.version, self.out
        compile_mode = self._compile_symbol(request.compile_mode)
        file = config_file(request)
        level = request.level if request.level is not None else 2
        if request.enforce_eager and V("0.12.0") <= version < V("0.17.0"):
            level = 0
        if version >= V("0.12.0"):
            default = self.situation.tables.optimization.get(str(level), "FULL_AND_PIECEWISE")
            default_compile = VLLM_COMPILE if level > 0 else NO_COMPILE
            by = f"default of -O{level}" if request.level is not None else f"default of {version}"
        else:
            default_compile = NO_COMPILE if request.enforce_eager else VLLM_COMPILE
            by = f"default of {version}"
            default = ""
        requested: Mode | None = self._mode_symbol(request.mode)
        if requested is not None:
            out.requested_by = "compilation_config.cudagraph_mode"
        eager_now = request.enforce_eager and version >= V("0.17.0")
        if eager_now:
            compile_mode = NO_COMPILE
        stock_level = compile_mode
        if version >= V("0.20.0") and (request.flag_env("TORCH_COMPILE_DISABLE") == "1"):
            compile_mode = NO_COMPILE
            out.notes.append(("torch-compile-disable", "TORCH_COMPILE_DISABLE=1 sets the compilation mode to NONE"))
        out.breakable = breakable_enabled(self.situation)
        if out.breakable:
            if stock_level == VLLM_COMPILE and request.compile_mode == VLLM_COMPILE:
                out.notes.append(("breakable-mode", "breakable graphs overwrite the requested compilation mode with NONE"))
            compile_mode = NO_COMPILE
        out.compile_mode = default_compile if compile_mode is None else compile_mode
        if version < V("0.12.0"):
            if out.compile_mode != VLLM_COMPILE:
                default = "NONE"
            else:
                default = "FULL_AND_PIECEWISE" if version >= V("0.11.0") else "PIECEWISE"
                if version == V("0.11.0") and self._pooling_or_encoder():
                    default = "PIECEWISE"
        if requested is None:
            out.requested_by = by
        out.requested = out.mode = requested if requested is not None else next(m for m in modes.MODES if m == default)
        if eager_now:
            self.rewrite("NONE", "eager", "--enforce-eager turns all graphs off", file, "VllmConfig.__post_init__")

    def _compile_symbol(self, value: int | Symbol | None) -> int | None:
        if isinstance(value, Symbol):
            return self.situation.choices.pick(
                f"compilation mode {value}", [(VLLM_COMPILE, f"{value} = VLLM_COMPILE"), (NO_COMPILE, f"{value} = NONE")]
            )
        return value

    def _mode_symbol(self, value: str | Symbol | None) -> Mode | None:
        if isinstance(value, Symbol):
            options: list[tuple[Mode | None, str]] = [(None, f"{value} sets no mode")]
            options += [(m, f"{value} = {m}") for m in modes.MODES]
            return self.situation.choices.pick(f"mode {value}", options)
        return next((m for m in modes.MODES if m == value), None)

    def _pooling_or_encoder(self) -> bool:
        return self._pooling() or self._encoder_decoder()

    def _pooling(self) -> bool:
        return self.situation.trait("pooling", "a pooling model", ask=False)

    def _encoder_decoder(self) -> bool:
        return self.situation.trait("encoder_decoder", "an encoder-decoder model", ask=False)

    def _config_time(self) -> None:
        request, version, out = self.request, self.version, self.out
        file, symbol = config_file(request), "VllmConfig.__post_init__"
        self._dynamic_speculation()
        if version >= V("0.12.0"):
            self._normalise()
        if self.situation.platform not in ("cuda", "rocm", "xpu"):
            self.rewrite("NONE", "platform", f"{self.situation.platform} has no CUDA graphs here", file, symbol)
            return
        if self.situation.platform == "rocm" and self._encoder_decoder():
            self.rewrite(
                "NONE", "model", "encoder-decoder models run eager on ROCm", "vllm/config/model.py", "ModelConfig._verify_cuda_graph"
            )
        if version >= V("0.13.0"):
            if has_full(out.mode) and self._pooling():
                self.rewrite("PIECEWISE", "model", "pooling models never use full graphs", file, symbol)
            elif self._encoder_decoder() and out.mode not in ("NONE", "FULL_DECODE_ONLY"):
                self.rewrite("FULL_DECODE_ONLY", "model", "encoder-decoder models have full decode graphs only", file, symbol)
            self._connector(file, symbol)
        elif version >= V("0.11.1") and has_full(out.mode):
            if request.number("decode_context_parallel_size", 1) > 1:
                self.rewrite("PIECEWISE", "dcp", "decode context parallelism is incompatible with full graphs", file, symbol)
            elif request.number("prefill_context_parallel_size", 1) > 1 and version >= V("0.12.0"):
                self.rewrite("PIECEWISE", "dcp", "prefill context parallelism is incompatible with full graphs", file, symbol)
            elif self._pooling():
                self.rewrite("PIECEWISE", "model", "pooling models never use full graphs", file, symbol)
            elif self._encoder_decoder():
                self.rewrite("PIECEWISE", "model", "encoder-decoder models never use full graphs", file, symbol)
        if request.enforce_eager:
            self.rewrite("NONE", "eager", "--enforce-eager turns all graphs off", file, symbol)
        self._capture_sizes()

    def _dynamic_speculation(self) -> None:
        request, speculation = self.request, self.request.speculation
        if speculation is None or not speculation.dynamic or self.version < V("0.24.0"):
            return
        if request.number("data_parallel_size", 1) > 1:
            self.out.notes.append(("dynamic-dropped", "num_speculative_tokens_per_batch_size is dropped under data parallelism"))
            return
        runner = choose_runner(self.situation, self.out.compile_mode)
        if not runner.v2 and has_full(self.out.mode):
            self.rewrite(
                "PIECEWISE",
                "dynamic-speculation",
                "the verification length changes at run time and V1 has no full graphs for that",
                config_file(request),
                "VllmConfig._maybe_override_dynamic_sd_cudagraph_mode",
            )

    def _normalise(self) -> None:
        out, version = self.out, self.version
        if out.compile_mode == VLLM_COMPILE or out.mode == "NONE" or out.breakable:
            return
        if not has_piecewise(out.mode) and version >= V("0.13.0"):
            return
        after: Mode = modes.without_piecewise(out.mode) if version >= V("0.30.0") else "NONE"
        names = {NO_COMPILE: "NONE", STOCK: "STOCK_TORCH_COMPILE", DYNAMO_ONCE: "DYNAMO_TRACE_ONCE"}
        symbol = "VllmConfig._normalize_piecewise_cudagraph_mode" if version >= V("0.30.0") else "VllmConfig.__post_init__"
        self.rewrite(
            after,
            "compile",
            f"piecewise graphs need compilation mode VLLM_COMPILE, and it is {names[out.compile_mode]}",
            config_file(self.request),
            symbol,
        )

    def _connector(self, file: str, symbol: str) -> None:
        if self.version < V("0.17.0") or not has_full(self.out.mode):
            return
        config = connector_of(self.request)
        if config and self._layerwise(config):
            self.rewrite(
                "PIECEWISE",
                "connector",
                f"KV connector {config.get('kv_connector')} works layer by layer, which full graphs skip",
                file,
                symbol,
            )

    def _layerwise(self, config: dict[str, object]) -> bool:
        name = str(config.get("kv_connector") or "")
        extra = config.get("kv_connector_extra_config")
        if not isinstance(extra, dict):
            return False
        key = self.situation.tables.piecewise_connectors.get(name)
        if key == "*":
            children = extra.get("connectors")
            return isinstance(children, list) and any(isinstance(c, dict) and self._layerwise(c) for c in children)
        return key is not None and bool(extra.get(key))

    # -- sizes

    def _capture_sizes(self) -> None:
        request, out, situation = self.request, self.out, self.situation
        out.max_num_seqs, out.max_num_batched_tokens = self._limits()
        if out.mode == "NONE" or request.enforce_eager:
            out.sizes = out.initial_sizes = Sizes([])
            return
        gpu = situation.given.gpu
        gpt_oss = bool(situation.model.gpt_oss) and self.version >= V("0.11.1") and request.sizes is None and request.largest is None
        speculation = request.speculation
        size_request = SizeRequest(
            max_num_seqs=out.max_num_seqs,
            max_num_batched_tokens=out.max_num_batched_tokens,
            query_len=situation.query_len,
            user_sizes=request.sizes,
            user_max=1024 if gpt_oss else request.largest,
            tensor_parallel=request.number("tensor_parallel_size", 1),
            sequence_parallel=request.sequence_parallel,
            blackwell=gpu is not None and (gpu.capability or (0, 0))[0] == 10,
            interactivity=request.given("performance_mode") == "interactivity",
            legacy_sizes=request.legacy_sizes,
        )
        if speculation is not None and speculation.tokens is None and request.sizes is None:
            out.sizes = out.initial_sizes = None
            return
        out.sizes = out.initial_sizes = capture_sizes(size_request, self.version)

    def _limits(self) -> tuple[int, int]:
        """(max_num_seqs, max_num_batched_tokens) with the defaults of the device; 256 and 2048 where it is not known."""
        request = self.request
        gpu = self.situation.given.gpu
        api = not any(w in str(request.given("entry") or "") for w in ("api",))
        big = gpu is not None and gpu.memory >= 70 and gpu.name not in ("A100", "A800", "GA100", "GB10", "DGXSPARK")
        if big and gpu is not None and gpu.memory >= 160 and self.version >= V("0.25.0"):
            seqs, tokens = 1024, 16384
        else:
            seqs, tokens = (1024, 8192) if big else (256, 2048)
        if request.given("performance_mode") == "throughput" and api:
            seqs, tokens = seqs * 2, tokens * 2
        seqs_given = request.given("max_num_seqs") is not None
        seqs = request.number("max_num_seqs", seqs)
        tokens = request.number("max_num_batched_tokens", tokens)
        length = request.given("max_model_len")
        if request.given("max_num_batched_tokens") is None and isinstance(length, int) and seqs_given:
            tokens = min(tokens, seqs * length)
        return (seqs if seqs_given else min(seqs, tokens)), tokens

    # -- platform, late configuration, splitting ops

    def _platform(self) -> None:
        request, version = self.request, self.version
        dp = request.number("data_parallel_size", 1)
        if version < V("0.13.0") and dp > 1 and self._all2all() == "deepep_high_throughput":
            after: Mode = "PIECEWISE" if version == V("0.10.2") and has_full(self.out.mode) else "NONE"
            if version == V("0.10.2") and not has_full(self.out.mode):
                after = self.out.mode
            self.rewrite(
                after,
                "deepep",
                "DeepEP high-throughput kernels cannot be captured",
                "vllm/platforms/cuda.py",
                "CudaPlatform.check_and_update_config",
            )
        if self.situation.platform != "rocm" or not has_full(self.out.mode):
            return
        dcp = request.number("decode_context_parallel_size", 1) > 1 and V("0.13.0") <= version < V("0.29.0")
        if dcp or (request.number("prefill_context_parallel_size", 1) > 1 and version >= V("0.13.0")):
            self.rewrite(
                "PIECEWISE",
                "dcp",
                "ROCm has no full graphs under context parallelism",
                "vllm/platforms/rocm.py",
                "RocmPlatform.check_and_update_config",
            )

    def _all2all(self) -> str:
        value = self.request.given("all2all_backend")
        if isinstance(value, str):
            return value
        return self.request.flag_env("VLLM_ALL2ALL_BACKEND") or "" if self.version < V("0.13.0") else ""

    def _late(self) -> None:
        version, out = self.version, self.out
        if version >= V("0.30.0"):
            self._normalise()
        out.runner = choose_runner(self.situation, out.compile_mode)
        if version >= V("0.32.0") and out.runner.v2 and out.compile_mode == STOCK:
            self.rewrite(
                "NONE",
                "compile",
                "V2 runs stock torch.compile without graphs",
                config_file(self.request),
                "VllmConfig._disable_cudagraphs_for_v2_stock_torch_compile",
            )
        speculation = self.request.speculation
        if speculation is not None and speculation.adaptive and version >= V("0.29.0"):
            if self.request.given("enable_lora"):
                raise StartupError(
                    "ValueError", "adaptive verification is not compatible with LoRA", "VllmConfig._validate_adaptive_verification"
                )
            if not has_full(out.mode):
                raise StartupError(
                    "ValueError",
                    f"adaptive verification needs full CUDA graphs, and the mode is {out.mode}",
                    "VllmConfig._validate_adaptive_verification",
                )
            if self.request.number("pipeline_parallel_size", 1) > 1:
                raise StartupError(
                    "ValueError",
                    "adaptive verification is not compatible with pipeline parallelism",
                    "VllmConfig._validate_adaptive_verification",
                )
        if version >= V("0.32.0") and self._hisparse() and out.mode == "FULL":
            raise StartupError(
                "ValueError", "HiSparse does not support cudagraph_mode=FULL: use FULL_AND_PIECEWISE", "VllmConfig.__post_init__"
            )
        if self._all2all() == "moonep" and version >= V("0.32.0"):
            self.rewrite("NONE", "deepep", "MoonEP is eager only", config_file(self.request), "VllmConfig.__post_init__")

    def _encoder_graphs(self) -> None:
        request = self.request
        if request.version >= V("0.29.0") and request.given("language_model_only") and request.compilation.get("cudagraph_mm_encoder"):
            raise StartupError(
                "ValueError",
                "--language-model-only is incompatible with cudagraph_mm_encoder: the encoder is never run",
                "VllmConfig.__post_init__",
            )

    def _hisparse(self) -> bool:
        config = self.request.given("attention_config")
        return (isinstance(config, dict) and bool(config.get("hisparse_config"))) or connector_of(self.request).get(
            "kv_connector"
        ) == "HiSparseConnector"

    def _splitting(self) -> None:
        request, out, version = self.request, self.out, self.version
        file = "vllm/config/compilation.py"
        self.split = split_attention(
            out.mode,
            out.compile_mode,
            request.splitting_ops,
            self.situation.tables.attention_ops,
            version,
            request.inductor_partition,
            request.fuse_attention,
        )
        self.steps(self.split.steps, file, "CompilationConfig.set_splitting_ops_for_v1")
        dp = request.number("data_parallel_size", 1)
        if (
            version >= V("0.13.0")
            and dp > 1
            and self._all2all() == "deepep_high_throughput"
            and out.mode != "NONE"
            and out.compile_mode == VLLM_COMPILE
            and (version < V("0.14.0") or self.situation.trait("moe", "a mixture-of-experts model"))
        ):
            self.rewrite(
                "NONE",
                "deepep",
                "DeepEP high-throughput kernels cannot be captured",
                file,
                "CompilationConfig.set_splitting_ops_for_v1",
            )

    def _final_check(self) -> None:
        request, out, version = self.request, self.out, self.version
        cuda_alike = self.situation.platform in ("cuda", "rocm")
        if cuda_alike and has_piecewise(out.mode) and out.compile_mode != VLLM_COMPILE and not out.breakable:
            raise StartupError(
                "AssertionError", f"cudagraph_mode={out.mode} needs compilation mode VLLM_COMPILE", "VllmConfig.__post_init__"
            )
        if request.given("enable_dbo") or request.number("ubatch_size", 0) > 1:
            allowed = ["deepep_low_latency", "deepep_high_throughput"]
            if version >= V("0.24.0"):
                allowed.append("nixl_ep")
            if self.situation.platform == "rocm" and version >= V("0.33.0"):
                allowed.append("allgather_reducescatter")
            backend = self._all2all() or "allgather_reducescatter"
            if backend not in allowed and not request.is_symbolic("all2all_backend"):
                raise StartupError(
                    "AssertionError",
                    f"microbatching supports only the all2all backends {', '.join(allowed)}, not {backend}",
                    "VllmConfig.__post_init__",
                )
        if version >= V("0.11.0") and not out.breakable and has_piecewise(out.mode) and not (out.runner and out.runner.v2):
            inductor_v010 = request.inductor_partition and version < V("0.11.1")
            if not self.split.contains_attention and not inductor_v010:
                missing = [op for op in self.situation.tables.attention_ops if op not in self.split.ops]
                raise StartupError(
                    "AssertionError",
                    f"splitting_ops must list every attention op of {version} for piecewise graphs on V1; missing: {', '.join(missing[:4])}"
                    + (f" and {len(missing) - 4} more" if len(missing) > 4 else ""),
                    "CudagraphDispatcher.__init__",
                )

    # -- backends

    def _support(self) -> None:
        request, out, version, situation = self.request, self.out, self.version, self.situation
        support = out.support = resolve_groups(situation)
        dcp = request.number("decode_context_parallel_size", 1)
        chosen = situation.tables.backends.get(support.chosen)
        if dcp > 1 and version >= V("0.13.0") and situation.platform == "cuda" and chosen is not None and chosen.lse is False:
            raise StartupError(
                "AssertionError",
                f"decode context parallelism needs the softmax sum during decode, which {support.chosen} does not return",
                "check_attention_cp_compatibility",
            )
        if out.mode == "NONE":
            return
        if out.runner is not None and out.runner.v2 and version < V("0.20.0"):
            out.notes.append(("v2-unresolved", "V2 before 0.20.0 takes the mode as given, whatever the backends declare"))
            return
        if situation.platform == "xpu":
            return
        steps = resolve_support(
            out.mode,
            support.weakest.level,
            support.weakest.backend,
            out.query_len,
            out.compile_mode,
            self.split.contains_attention,
            version,
            request.inductor_partition,
            piecewise_available(situation, out),
        )
        self.steps(steps, resolver_file(version), resolver_symbol(version))
        self._round_sizes()

    def _round_sizes(self) -> None:
        request, out, version = self.request, self.out, self.version
        v2 = bool(out.runner and out.runner.v2)
        if out.sizes is None:
            return
        applies = version >= V("0.11.1") and decode_mode(out.mode) == "FULL" and out.query_len > 1
        if version < V("0.20.0"):
            applies = applies and separate(out.mode)
        if applies and not (v2 and version >= V("0.25.0")):
            out.sizes = round_for_spec_decode(
                out.sizes, out.query_len, version, request.number("tensor_parallel_size", 1), request.sequence_parallel
            )
        self._compile_sizes()
        if out.mode != "NONE" and self.situation.query_len_known:
            if decode_mode(out.mode) == "FULL":
                out.covered = covered_requests(out.sizes.sizes, out.query_len, out.max_num_seqs, v2)
            else:
                out.covered = min(out.sizes.largest // out.query_len, out.max_num_seqs)

    def _compile_sizes(self) -> None:
        sizes = self.request.compilation.get("compile_sizes")
        if self.version < V("0.16.0") or not isinstance(sizes, list) or self.out.sizes is None or not self.out.sizes.sizes:
            return
        captured = self.out.sizes.sizes
        for size in sizes:
            if isinstance(size, int) and size <= captured[-1]:
                padded = next(s for s in captured if s >= size)
                if padded != size:
                    valid = ", ".join(map(str, captured[:6]))
                    raise StartupError(
                        "ValueError",
                        f"compile size {size} would be padded to {padded}; valid sizes are {valid}, ...",
                        "CudagraphDispatcher._compute_bs_to_padded_graph_size",
                    )

    def _drafter(self) -> None:
        speculation = self.request.speculation
        if speculation is None or speculation.symbolic:
            return
        unresolved = self.out.mode
        for rewrite in self.out.rewrites:
            if rewrite.kind.startswith("support"):
                unresolved = rewrite.before
                break
        runner = self.out.runner
        self.out.drafter = drafter_mode(
            speculation,
            self.out.mode,
            unresolved,
            bool(runner and runner.v2),
            self.out.compile_mode,
            self.version,
            self.request.enforce_eager,
        )


def resolve(situation: Situation) -> Outcome:
    """The resolution under the facts of `situation`."""
    return _Resolution(situation).run()
