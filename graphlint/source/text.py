"""Bytes to text, and text to lines, the way Python's own parser counts them."""

from __future__ import annotations

import io
import re
import tokenize

_LINE_END = re.compile("\r\n|\r|\n")


class DecodeError(Exception):
    """The bytes are not in the encoding that the file declares (UTF-8 where it declares none)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        #: 1-based line of the first bad byte
        self.line = line


def decode(data: bytes) -> str:
    """Source text of a Python file: byte-order mark, PEP 263 comment, else UTF-8.

    Raises `DecodeError`, which names the line and the byte, on anything else.
    """
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
    except SyntaxError as error:
        reason = str(error)
        if "unknown encoding" in reason:
            raise DecodeError(f"the file declares an {reason}", 1) from None
        encoding = "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"not {error.encoding}: byte {error.object[error.start]:#04x} at offset {error.start} (line {line}): {error.reason}"
        raise DecodeError(message, line) from None


def split_lines(text: str) -> list[str]:
    """Lines without their ends. Unlike `str.splitlines` this does not break at form feeds or U+2028, which do not end a line in Python."""
    return _LINE_END.split(text)
