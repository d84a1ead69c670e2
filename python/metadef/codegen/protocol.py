"""Messages between the compiler and its workers: a JSON header and bytes, each after its length."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import IO, Any

_LENGTHS = struct.Struct("<QQ")

#: a line with this mark on standard error says what the worker is about to do
STAGE_MARK = "metadef stage: "
#: exit code of a worker that left because nobody asked
IDLE_EXIT = 75


@dataclass(frozen=True)
class Message:
    """`header` says what the message is, `body` carries text or object code."""

    header: dict[str, Any]
    body: bytes = b""


def send(stream: IO[bytes], message: Message) -> None:
    """Write a message and flush it."""
    header = json.dumps(message.header).encode()
    stream.write(_LENGTHS.pack(len(header), len(message.body)) + header)
    stream.write(message.body)
    stream.flush()


def receive(stream: IO[bytes]) -> Message | None:
    """Read a message; None at the end of the stream, also in the middle of a message."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, body_length = _LENGTHS.unpack(lengths)
    header, body = stream.read(header_length), stream.read(body_length)
    if len(header) < header_length or len(body) < body_length:
        return None
    return Message(json.loads(header), body)
