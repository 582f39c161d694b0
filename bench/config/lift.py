"""Released methods run alone: cut out of a release's source by AST and executed against stand-ins, without importing vLLM.

`python -m bench.config.lift 0.33.0 ...` compares each release with the resolution and prints the number of combinations and mismatches.
"""

from __future__ import annotations

import ast
import enum
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.releases import Release, release_tree
from graphlint.config.modes import LEVELS, MODES
from graphlint.config.resolver import resolve_support, split_attention
from graphlint.config.sizes import SizeRequest, StartupError, capture_sizes, round_for_spec_decode
from graphlint.config.tables import load_release
from graphlint.config.versions import V, Version, parse_version

#: what a message about a compilation mode may be called in the release
_COMPILE = ("CompilationMode", "CompilationLevel")


class _Silent:
    def __getattr__(self, name: str) -> Any:
        return lambda *a, **k: None


class _Passes(SimpleNamespace):
    """Compiler passes, off unless set."""

    def __getattr__(self, name: str) -> bool:
        return False


class _NoImports(ast.NodeTransformer):
    """Imports inside lifted functions give way to the stand-ins; an emptied block keeps a `pass`."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        return ast.Pass()

    visit_Import = visit_ImportFrom  # type: ignore[assignment]


def find(tree: ast.Module, name: str, kind: type[ast.AST], inside: str | None = None) -> Any:
    """The definition of this name, in a class where one is named; None where there is none."""
    scope: ast.AST = tree
    if inside is not None:
        scope = next((n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == inside), ast.Module([], []))
    return next((n for n in ast.walk(scope) if isinstance(n, kind) and getattr(n, "name", None) == name), None)


def define(node: Any, globals_: dict[str, Any]) -> Any:
    """Executes one lifted definition and returns what it defines."""
    node = _NoImports().visit(node)
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.returns = None
        for argument in [*node.args.args, *node.args.kwonlyargs]:
            argument.annotation = None
    module = ast.fix_missing_locations(ast.Module([node], []))
    exec(compile(module, "<lifted>", "exec"), globals_)
    return globals_[node.name]


class Released:
    """The lifted methods of one release."""

    def __init__(self, root: Path, version: Version) -> None:
        self.version = version
        self.compilation = _tree(root / "vllm/config/compilation.py")
        self.globals: dict[str, Any] = {
            "enum": enum,
            "Enum": enum.Enum,
            "IntEnum": enum.IntEnum,
            "logger": _Silent(),
            "round_up": lambda x, m: -(-x // m) * m,
            "envs": _Silent(),
            "Any": Any,
            "MambaSpec": type("MambaSpec", (), {}),
        }
        mode = find(self.compilation, "CUDAGraphMode", ast.ClassDef)
        mode.bases = [ast.parse("enum.Enum", mode="eval").body]
        self.mode = define(mode, self.globals)
        self.compile_name = next(n for n in _COMPILE if find(self.compilation, n, ast.ClassDef) is not None)
        level = find(self.compilation, self.compile_name, ast.ClassDef)
        self.compile = define(level, self.globals | {"IntEnum": enum.IntEnum}) if level.bases else define(level, self.globals)
        self.globals[self.compile_name] = self.compile
        backend = root / "vllm/v1/attention/backend.py"
        support_file = backend if backend.is_file() else root / "vllm/v1/attention/backends/utils.py"
        self.support = define(find(_tree(support_file), "AttentionCGSupport", ast.ClassDef), self.globals)
        self.attention_ops = list(load_release(version).attention_ops)
        self.config_class = self._config_class()
        runner = find(self.compilation, "resolve_cudagraph_mode_and_sizes", ast.FunctionDef)
        if runner is None:
            tree = _tree(root / "vllm/v1/worker/gpu_model_runner.py")
            self.in_runner = "_check_and_update_cudagraph_mode" if version >= V("0.11.1") else "initialize_cudagraph_capture"
            runner = find(tree, self.in_runner, ast.FunctionDef)
        else:
            self.in_runner = ""
        self.resolve_method = define(runner, self.globals)
        config_file = root / "vllm/config/vllm.py"
        config_tree = _tree(config_file if config_file.is_file() else root / "vllm/config/__init__.py")
        self.sizes_method = (
            define(find(config_tree, "_set_cudagraph_sizes", ast.FunctionDef, "VllmConfig"), self.globals)
            if version >= V("0.11.1")
            else None
        )
        sequence = find(config_tree, "update_sizes_for_sequence_parallelism", ast.FunctionDef, "VllmConfig")
        self.sequence_method = define(sequence, self.globals) if sequence is not None else None

    def _config_class(self) -> type:
        names = [
            "splitting_ops_contain_attention",
            "set_splitting_ops_for_v1",
            "set_splitting_ops_for_attn_fusion",
            "set_splitting_ops_for_inductor_graph_partition",
            "adjust_cudagraph_sizes_for_spec_decode",
        ]
        members: dict[str, Any] = {"_attention_ops": self.attention_ops}
        for name in names:
            node = find(self.compilation, name, ast.FunctionDef, "CompilationConfig")
            if node is not None:
                members[name] = define(node, self.globals)
        for stub in (
            "post_init_cudagraph_sizes",
            "compute_bs_to_padded_graph_size",
            "init_with_cudagraph_sizes",
            "adjust_cudagraph_sizes_for_mamba_cache",
        ):
            members[stub] = lambda self, *a, **k: None
        return type("CompilationConfig", (), members)

    def config(self, mode: str, compile_mode: int, ops: tuple[str, ...] | None, inductor: bool, fuse: bool) -> Any:
        """A stand-in configuration in the release's own field names."""
        out = self.config_class()
        out.cudagraph_mode = self.mode[mode]
        out.mode = out.level = self.compile(compile_mode) if isinstance(self.compile, enum.EnumMeta) else compile_mode
        out.splitting_ops = None if ops is None else list(ops)
        out.use_inductor_graph_partition = inductor
        out.pass_config = _Passes(fuse_attn_quant=fuse, enable_attn_fusion=fuse)
        out.cudagraph_capture_sizes, out.max_cudagraph_capture_size = [1, 2, 4, 8, 16, 24], 24
        return out

    def split(self, config: Any) -> None:
        """`set_splitting_ops_for_v1`, called as the release calls it."""
        if self.version < V("0.12.0"):
            if config.mode == 3:
                config.set_splitting_ops_for_v1()
            elif config.splitting_ops is None:
                config.splitting_ops = None
        elif self.version < V("0.13.0"):
            config.set_splitting_ops_for_v1()
        else:
            config.set_splitting_ops_for_v1(all2all_backend="naive", data_parallel_size=1)

    def resolve(self, config: Any, level: str, query_len: int, piecewise: bool = True) -> str:
        """The mode after the release's own resolution."""
        support = self.support[level]
        if not self.in_runner:
            extra: dict[str, Any] = {"piecewise_capture_available": piecewise} if self.version >= V("0.30.0") else {}
            if self.version < V("0.25.0"):
                extra["tensor_parallel_size"] = 1
            names = self.resolve_method.__code__.co_varnames[: self.resolve_method.__code__.co_argcount]
            extra = {k: v for k, v in extra.items() if k in names}
            self.resolve_method(config, support, "B", query_len, **extra)
            return str(config.cudagraph_mode.name)
        builder = SimpleNamespace(
            get_cudagraph_support=lambda *a: support, cudagraph_support=support, __class__=SimpleNamespace(__name__="B")
        )
        backend = type("B", (), {"get_builder_cls": staticmethod(lambda: builder)})
        group = SimpleNamespace(metadata_builder=builder, get_metadata_builder=lambda *a: builder, kv_cache_spec=None, backend=backend)
        runner = SimpleNamespace(
            compilation_config=config,
            uniform_decode_query_len=query_len,
            vllm_config=None,
            kv_cache_config=None,
            speculative_config=None,
            parallel_config=SimpleNamespace(tensor_parallel_size=1),
            cudagraph_dispatcher=_Silent(),
            _attn_group_iterator=lambda: iter([group]),
        )
        if self.in_runner == "initialize_cudagraph_capture":
            self.resolve_method(runner)
        else:
            self.resolve_method(runner, [{backend}], [group])
        return str(config.cudagraph_mode.name)


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def compare_modes(released: Released) -> tuple[int, list[str]]:
    """Every combination of mode, level, query length, splitting ops and compilation mode: (number, mismatches)."""
    version = released.version
    ops = tuple(released.attention_ops)
    total, wrong = 0, []
    for mode in MODES:
        for level in LEVELS:
            for query_len in (1, 2, 4):
                for given in (None, (), ops, ops[:1]):
                    for compile_mode in (0, 1, 2, 3):
                        for inductor in (False, True):
                            for fuse in (False, True):
                                for piecewise in (True, False) if version >= V("0.30.0") else (True,):
                                    total += 1
                                    have = _ours(mode, level, query_len, given, ops, compile_mode, inductor, fuse, piecewise, version)
                                    want = _theirs(released, mode, level, query_len, given, compile_mode, inductor, fuse, piecewise)
                                    if have != want:
                                        wrong.append(
                                            f"{mode} {level} q={query_len} ops={_ops_name(given, ops)} compile={compile_mode} "
                                            f"inductor={inductor} fuse={fuse} piecewise={piecewise}: {have}, released {want}"
                                        )
    return total, wrong


def _ops_name(given: tuple[str, ...] | None, ops: tuple[str, ...]) -> str:
    return "default" if given is None else "all" if given == ops else "one" if given else "none"


def _ours(
    mode: Any,
    level: Any,
    query_len: int,
    given: Any,
    ops: Any,
    compile_mode: int,
    inductor: bool,
    fuse: bool,
    piecewise: bool,
    version: Version,
) -> str:
    try:
        split = split_attention(mode, compile_mode, given, ops, version, inductor, fuse)
        current = split.steps[-1].mode if split.steps else mode
        steps = resolve_support(current, level, "B", query_len, compile_mode, split.contains_attention, version, inductor, piecewise)
        return steps[-1].mode if steps else current
    except StartupError as error:
        return error.kind


def _theirs(
    released: Released, mode: str, level: str, query_len: int, given: Any, compile_mode: int, inductor: bool, fuse: bool, piecewise: bool
) -> str:
    config = released.config(mode, compile_mode, given, inductor, fuse)
    try:
        released.split(config)
        return released.resolve(config, level, query_len, piecewise)
    except (ValueError, AssertionError) as error:
        return type(error).__name__


def compare_sizes(released: Released, number: int, seed: int = 7) -> tuple[int, list[str]]:
    """Random size settings through `_set_cudagraph_sizes` and the speculative rounding: (number, mismatches)."""
    if released.sizes_method is None:
        return 0, []
    generator = random.Random(seed)
    wrong = []
    for _ in range(number):
        request = _random_request(generator, released.version)
        have, want = _our_sizes(request, released.version), _their_sizes(released, request)
        if have != want:
            wrong.append(f"{request}: {have}, released {want}")
    return number, wrong


def _random_request(generator: random.Random, version: Version) -> SizeRequest:
    query_len = generator.choice([1, 1, 2, 3, 4, 5, 8, 16])
    sizes = tuple(sorted(generator.sample(range(1, 700), generator.randint(1, 12)))) if generator.random() < 0.35 else None
    if generator.random() < 0.03:
        sizes = ()
    largest = generator.choice([None, None, generator.randint(1, 700), sizes[-1] if sizes else 64])
    return SizeRequest(
        max_num_seqs=generator.choice([1, 2, 6, 16, 48, 100, 256, 1024, generator.randint(1, 2000)]),
        max_num_batched_tokens=generator.choice([64, 512, 2048, 8192, generator.randint(8, 9000)]),
        query_len=query_len,
        user_sizes=sizes,
        user_max=largest,
        tensor_parallel=generator.choice([1, 1, 2, 4, 8]),
        sequence_parallel=generator.random() < 0.2,
        blackwell=generator.random() < 0.3,
        interactivity=generator.random() < 0.15,
    )


def _our_sizes(request: SizeRequest, version: Version) -> Any:
    try:
        sizes = capture_sizes(request, version)
        return round_for_spec_decode(sizes, request.query_len, version, request.tensor_parallel, request.sequence_parallel).sizes
    except StartupError as error:
        return error.kind


def _their_sizes(released: Released, request: SizeRequest) -> Any:
    config = released.config("FULL_AND_PIECEWISE", 3, None, False, False)
    config.pass_config.enable_sp = config.pass_config.enable_sequence_parallelism = request.sequence_parallel
    config.cudagraph_capture_sizes = None if request.user_sizes is None else list(request.user_sizes)
    config.max_cudagraph_capture_size = request.user_max
    speculative = None
    if request.query_len > 1:
        speculative = SimpleNamespace(num_speculative_tokens=request.query_len - 1, uses_dynamic_speculative_decoding=lambda: False)
    platform = SimpleNamespace(is_device_capability_family=lambda n: request.blackwell, is_device_capability=lambda n: request.blackwell)
    released.globals["current_platform"] = platform
    holder = SimpleNamespace(
        model_config=SimpleNamespace(enforce_eager=False),
        compilation_config=config,
        performance_mode="interactivity" if request.interactivity else "balanced",
        scheduler_config=SimpleNamespace(max_num_seqs=request.max_num_seqs, max_num_batched_tokens=request.max_num_batched_tokens),
        parallel_config=SimpleNamespace(tensor_parallel_size=request.tensor_parallel),
        speculative_config=speculative,
        uniform_decode_query_len=request.query_len,
        num_speculative_tokens=request.query_len - 1,
    )
    sequence_method = released.sequence_method
    if sequence_method is not None:
        holder.update_sizes_for_sequence_parallelism = lambda sizes: sequence_method(holder, sizes)
    try:
        assert released.sizes_method is not None
        released.sizes_method(holder)
        adjust = type(config).adjust_cudagraph_sizes_for_spec_decode
        arguments = (request.tensor_parallel,) if adjust.__code__.co_argcount == 3 else ()
        if request.query_len > 1:
            config.adjust_cudagraph_sizes_for_spec_decode(request.query_len, *arguments)
        return config.cudagraph_capture_sizes
    except (ValueError, AssertionError) as error:
        return type(error).__name__


def main(versions: list[str]) -> int:
    """Compares the releases named; exit status 1 on any mismatch."""
    failed = 0
    for text in versions:
        version = parse_version(text)
        released = Released(release_tree(Release("vllm", str(version))), version)
        modes, wrong_modes = compare_modes(released)
        sizes, wrong_sizes = compare_sizes(released, 2000)
        print(f"{version}: {modes} mode combinations, {len(wrong_modes)} mismatches; {sizes} size settings, {len(wrong_sizes)} mismatches")
        for line in [*wrong_modes[:5], *wrong_sizes[:5]]:
            print(f"    {line}")
        failed += bool(wrong_modes or wrong_sizes)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
