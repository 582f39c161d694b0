"""The cache of releases: what is extracted, what a half-done download leaves behind."""

from __future__ import annotations

import io
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench import releases
from bench.releases import Release, ReleaseError, package_dir, release_tree, verify

FILES = {"vllm/__init__.py": b"", "vllm/v1/a.py": b"x = 1\n", "vllm/kernel.cu": b"//", "README.md": b"#"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHLINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def offer(monkeypatch: pytest.MonkeyPatch, kind: str, extra: dict[str, bytes] | None = None) -> list[Release]:
    """Put an archive in place of the package index; the list tells what was asked for."""
    asked: list[Release] = []

    def download(release: Release, into: Path) -> Path:
        asked.append(release)
        path = into / f"{release}.{kind}"
        if kind == "whl":
            with zipfile.ZipFile(path, "w") as wheel:
                for name, content in {**FILES, **(extra or {})}.items():
                    wheel.writestr(name, content)
        else:
            with tarfile.open(path, "w:gz") as tar:
                for name, content in {**FILES, **(extra or {})}.items():
                    member = tarfile.TarInfo(f"{release}/{name}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        return path

    monkeypatch.setattr(releases, "_download", download)
    return asked


@pytest.mark.parametrize("kind", ["tar.gz", "whl"])
def test_only_python_files_are_kept_and_one_download_is_enough(kind: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = offer(monkeypatch, kind)
    release = Release("vllm", "1.0")
    assert package_dir(release) == cache / "vllm-1.0" / "vllm"
    kept = sorted(path.name for path in (cache / "vllm-1.0").rglob("*") if path.is_file())
    assert kept == [".graphlint-release.json", "__init__.py", "a.py"]
    release_tree(release)
    assert asked == [release]
    assert [path.name for path in cache.iterdir()] == ["vllm-1.0"]


def test_a_changed_or_lost_file_is_noticed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = offer(monkeypatch, "whl")
    release = Release("vllm", "1.0")
    tree = release_tree(release)
    assert verify(release)
    (tree / "vllm/v1/a.py").write_text("x = 2\n")
    assert not verify(release)
    (tree / "vllm/v1/a.py").unlink()
    release_tree(release)
    assert len(asked) == 2
    assert verify(release)


def test_two_at_a_time_get_the_same_tree(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "tar.gz")
    with ThreadPoolExecutor(4) as pool:
        trees = set(pool.map(release_tree, [Release("vllm", "1.0")] * 8))
    assert trees == {cache / "vllm-1.0"}
    assert verify(Release("vllm", "1.0"))
    assert [path.name for path in cache.iterdir()] == ["vllm-1.0"]


def test_an_archive_cannot_write_outside(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, "whl", {"../../evil.py": b"", "/tmp/evil.py": b""})
    release_tree(Release("vllm", "1.0"))
    assert not list(cache.parent.rglob("evil.py"))


def test_what_cannot_be_had_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReleaseError, match=r"vllm-9\.9 is not in"):
        release_tree(Release("vllm", "9.9"), download=False)
    with pytest.raises(ReleaseError, match="is no release"):
        Release.parse("vllm")
    offer(monkeypatch, "whl")
    with pytest.raises(ReleaseError, match="no folder sglang/"):
        package_dir(Release("sglang", "1.0"))
    assert cache.is_dir()
