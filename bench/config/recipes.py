"""Every recipe and every file that mentions `vllm serve` in a source release: read, resolve, count. `python -m bench.config.recipes`."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import time
from collections import Counter
from pathlib import Path

from bench.releases import ReleaseError, cache_dir
from graphlint.config.check import Options, Result, check_files
from graphlint.config.versions import parse_version

RELEASE = "0.33.0"
#: what a recipe or a document may be; the rest of the archive is not unpacked
KINDS = (".yaml", ".yml", ".md", ".sh", ".py", ".json", ".toml")


def full_tree(version: str = RELEASE) -> Path:
    """The source release with its recipes, documents and scripts, downloaded once. ReleaseError where it cannot be had."""
    plain = cache_dir() / f"vllm-{version}"
    if (plain / "recipes").is_dir():
        return plain
    root = cache_dir() / f"vllm-{version}-full"
    if (root / "recipes").is_dir():
        return root
    downloads = cache_dir() / ".downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "unearth", "--no-binary", "-d", str(downloads), f"vllm=={version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = sorted(downloads.glob(f"vllm-{version}.tar.gz"))
    if done.returncode or not archives:
        raise ReleaseError(f"vllm {version} cannot be downloaded: {done.stderr.strip()[-200:]}")
    with tarfile.open(archives[0]) as archive:
        for member in archive:
            inside = member.name.partition("/")[2]
            if member.isfile() and inside.endswith(KINDS) and ".." not in inside:
                target = root / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                data = archive.extractfile(member)
                if data is not None:
                    target.write_bytes(data.read())
    archives[0].unlink()
    return root


def inputs(root: Path) -> list[tuple[str, bytes]]:
    """(path below the root, bytes) of all recipes and of all files with `vllm serve` in them."""
    out = []
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.suffix not in KINDS or path.stat().st_size > 4_000_000:
            continue
        data = path.read_bytes()
        relative = path.relative_to(root).as_posix()
        if b"vllm serve" in data or (relative.startswith("recipes/") and path.suffix == ".yaml"):
            out.append((relative, data))
    return out


def run(root: Path) -> tuple[Result, float]:
    """The check of all inputs and the seconds it took."""
    files = inputs(root)
    start = time.perf_counter()
    result = check_files(files, Options(version=parse_version(RELEASE)))
    return result, time.perf_counter() - start


def main() -> int:
    """Prints counts by rule and severity; exit status 1 when a file or deployment could not be handled."""
    result, seconds = run(full_tree())
    print(f"{result.files} files, {len(result.checked)} deployments, {seconds:.1f} s")
    for (rule, severity), number in sorted(Counter((f.rule, f.severity) for f in result.findings).items()):
        print(f"  {rule} {severity}: {number}")
    for error in result.errors:
        print(f"  error: {error.path}: {error.message}")
    return 1 if result.errors else 0


if __name__ == "__main__":
    sys.exit(main())
