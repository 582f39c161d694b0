"""Releases of the engines: downloaded once, Python files only, kept in a folder that several processes may share.

The folder is $GRAPHLINT_CACHE, by default ~/.cache/graphlint/releases; a release lies in <project>-<version>/ there. vLLM comes from
its source archive. SGLang publishes no source archive from 0.5.11 on, so its wheel is taken.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
from packaging.version import Version

STAMP = ".graphlint-release.json"
WHEEL_TARGET = ("--py", "3.12", "--platform", "manylinux_2_34_x86_64")
SGLANG_WHEELS_FROM = Version("0.5.11")


class ReleaseError(Exception):
    """A release cannot be had; the message names it and says why."""


class Release(msgspec.Struct, frozen=True, order=True):
    """One version of one engine."""

    project: str
    version: str

    @classmethod
    def parse(cls, text: str) -> Release:
        """`vllm-0.33.0` or `vllm==0.33.0`."""
        project, _, version = text.replace("==", "-").partition("-")
        if not project or not version:
            raise ReleaseError(f"{text!r} is no release; write it as vllm-0.33.0")
        return cls(project, version)

    def __str__(self) -> str:
        return f"{self.project}-{self.version}"


class Stamp(msgspec.Struct):
    """What an extracted release was made of; written last, so a release with a stamp is complete."""

    archive: str
    sha256: str
    files: int
    #: digest over path and content of every extracted file, in order of path
    content: str


def cache_dir() -> Path:
    """The folder that holds the releases."""
    configured = os.environ.get("GRAPHLINT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "graphlint" / "releases"


def release_tree(release: Release, *, download: bool = True) -> Path:
    """The extracted release, downloaded when it is missing. ReleaseError when it cannot be had.

    A folder without a stamp is taken as it is (somebody put a tree there); one with a stamp must still hold as many files as it says.
    """
    root = cache_dir() / str(release)
    if root.is_dir() and _complete(root):
        return root
    if not download:
        raise ReleaseError(f"{release} is not in {cache_dir()}; `python -m bench fetch {release}` downloads it")
    cache_dir().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{release}-", dir=cache_dir()) as scratch:
        archive = _download(release, Path(scratch))
        tree = Path(scratch) / "tree"
        tree.mkdir()
        files, content = _extract(archive, tree)
        if not files:
            raise ReleaseError(f"{release}: {archive.name} holds no Python file")
        stamp = Stamp(archive=archive.name, sha256=_sha256(archive), files=files, content=content)
        (tree / STAMP).write_bytes(msgspec.json.format(msgspec.json.encode(stamp)))
        _publish(tree, root)
    return root


def package_dir(release: Release, *, download: bool = True) -> Path:
    """The engine's package inside the release: `vllm/`, `sglang/`."""
    root = release_tree(release, download=download)
    package = root / release.project
    if not package.is_dir():
        raise ReleaseError(f"{root} has no folder {release.project}/")
    return package


def verify(release: Release) -> bool:
    """Whether every file of an extracted release is as it was written; False where there is no stamp to compare with."""
    root = cache_dir() / str(release)
    if not (root / STAMP).is_file():
        return False
    stamp = msgspec.json.decode((root / STAMP).read_bytes(), type=Stamp)
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.py"))
    return len(paths) == stamp.files and _digest((path, (root / path).read_bytes()) for path in paths) == stamp.content


def _complete(root: Path) -> bool:
    stamp = root / STAMP
    if not stamp.is_file():
        return any(root.iterdir())
    return sum(1 for _ in root.rglob("*.py")) == msgspec.json.decode(stamp.read_bytes(), type=Stamp).files


def _publish(tree: Path, root: Path) -> None:
    """Rename `tree` to `root`. Another process may have been faster: its release is then the one to use."""
    try:
        tree.rename(root)
        return
    except OSError:
        if root.is_dir() and _complete(root):
            return
    shutil.rmtree(root, ignore_errors=True)
    tree.rename(root)


def _download(release: Release, into: Path) -> Path:
    wheel = release.project == "sglang" and Version(release.version) >= SGLANG_WHEELS_FROM
    kind = ("--only-binary", *WHEEL_TARGET) if wheel else ("--no-binary",)
    command = [sys.executable, "-m", "unearth", *kind, "-d", str(into), f"{release.project}=={release.version}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"{release}: no answer from the package index in 30 minutes") from error
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
        return Path(answer["local_path"])
    except (ValueError, KeyError, TypeError) as error:
        reason = done.stderr.strip().splitlines()[-1:] or ["no archive found"]
        raise ReleaseError(f"{release}: {reason[0]}") from error


def _extract(archive: Path, into: Path) -> tuple[int, str]:
    """Write the archive's Python files below `into`; their number and the digest over them."""
    members = dict(_wheel_members(archive) if archive.suffix in (".whl", ".zip") else _sdist_members(archive))
    for name, content in members.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return len(members), _digest((name, members[name]) for name in sorted(members))


def _sdist_members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as tar:
        for member in tar:
            stream = tar.extractfile(member) if member.isfile() and member.name.endswith(".py") else None
            name = _inside(PurePosixPath(member.name), strip=1)
            if stream is not None and name:
                yield name, stream.read()


def _wheel_members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.namelist():
            name = _inside(PurePosixPath(entry), strip=0)
            if entry.endswith(".py") and name:
                yield name, wheel.read(entry)


def _inside(path: PurePosixPath, strip: int) -> str | None:
    """The path without its first `strip` parts; None for one that would leave the folder."""
    parts = path.parts[strip:]
    return "/".join(parts) if parts and not path.is_absolute() and ".." not in parts else None


def _digest(members: Iterator[tuple[str, bytes]]) -> str:
    total = hashlib.sha256()
    for name, content in members:
        total.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return total.hexdigest()


def _sha256(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            total.update(block)
    return total.hexdigest()
