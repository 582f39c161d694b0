"""Makes the bundled tables: `python -m graphlint.config.extract FOLDER...`, where each folder is an unpacked vLLM release."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from graphlint.config.extract.tables import NotACheckout, checkout_version, extract_tables
from graphlint.config.versions import parse_version

OUT = Path(__file__).resolve().parent.parent / "data" / "releases"


def main(folders: list[str]) -> int:
    """Writes one JSON file per folder; returns the number of folders that are no release."""
    OUT.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in folders:
        folder = Path(name)
        try:
            stated = checkout_version(folder)
            if stated is None:
                raise NotACheckout(f"{folder}: states no version")
            version = str(parse_version(stated))
            tables = extract_tables(folder, version)
        except (NotACheckout, ValueError) as error:
            sys.stderr.write(f"skipped: {error}\n")
            failed += 1
            continue
        data = msgspec.json.format(msgspec.json.encode(tables), indent=0)
        OUT.joinpath(f"{version}.json").write_bytes(data + b"\n")
        sys.stdout.write(f"{version}: {len(tables.backends)} backends, {len(tables.flags)} flags\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
