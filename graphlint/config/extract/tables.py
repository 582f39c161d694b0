"""One call: a checkout in, its tables out."""

from __future__ import annotations

from pathlib import Path

from graphlint.config.extract import backends, lists, options
from graphlint.config.extract.source import Checkout
from graphlint.config.tables import Tables


class NotACheckout(ValueError):
    """The folder holds no `vllm` package with a compilation configuration."""


def package_root(path: Path) -> Path:
    """The folder that contains the `vllm` package; `path` may be it, the package itself, or a site-packages folder."""
    for root in (path, path.parent):
        if (root / "vllm" / "config").is_dir() or (root / "vllm" / "config.py").is_file():
            return root
    raise NotACheckout(f"{path}: no vllm package here (expected {path / 'vllm' / 'config'})")


def checkout_version(root: Path) -> str | None:
    """The version that the checkout states: `_version.py`, `PKG-INFO`, a `vllm-X.Y.Z` folder name or dist-info."""
    import re

    for relative, pattern in (("vllm/_version.py", r"version = ['\"]v?(\d[\w.]*)"), ("PKG-INFO", r"(?m)^Version: (\d[\w.]*)")):
        file = root / relative
        if file.is_file():
            match = re.search(pattern, file.read_text(encoding="utf-8", errors="replace"))
            if match:
                return match.group(1)
    for name in (root.name, *(p.name for p in root.glob("vllm-*.dist-info"))):
        match = re.search(r"vllm[-_](\d+\.\d+[\w.]*?)(?:\.dist-info)?$", name)
        if match:
            return match.group(1)
    return None


def extract_tables(path: Path, version: str, architectures: bool = True) -> Tables:
    """All tables of the checkout under `path`. Raises NotACheckout."""
    checkout = Checkout(package_root(path))
    enum = backends.extract_backends(checkout)
    cuda, rocm = lists.breakable_architectures(checkout)
    return Tables(
        version=version,
        backends=enum,
        builders=backends.extract_builders(checkout, {b.builder for b in enum.values()}),
        optimization=lists.extract_optimization(checkout),
        attention_ops=lists.extract_attention_ops(checkout),
        break_points=lists.extract_break_points(checkout),
        breakable_archs=cuda,
        breakable_archs_rocm=rocm,
        v2_archs=lists.architecture_set(checkout, "DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES"),
        v2_excluded_rocm=lists.architecture_set(checkout, "ROCM_EXCLUDED_V2_MODEL_RUNNER_ARCHITECTURES"),
        priorities=backends.extract_priorities(checkout),
        piecewise_connectors=lists.piecewise_connectors(checkout),
        flags=options.extract_flags(checkout),
        fields=options.extract_fields(checkout),
        env=options.extract_env(checkout),
        methods=options.extract_methods(checkout),
        modes=lists.extract_modes(checkout),
        architectures=lists.extract_architectures(checkout) if architectures else {},
    )
