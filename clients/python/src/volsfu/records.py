"""Readers of files: journals of `volpeer record`, and times of frames of `--frame-times`."""

import json
import struct
from typing import Any, NamedTuple

import numpy

from .coding import Cloud, decode

_magic = b"VOLJRNL1"
_header = struct.Struct("<4sII")
_times = struct.Struct("<4q")
_tile = struct.Struct("<HBx4s")
_count = struct.Struct("<II")


class JournalFrame(NamedTuple):
    """A frame of a journal. capture is its time in seconds since 1970.

    cloud is None in journals of encoded frames; tile, quality, codec and data are None in journals of points.
    """

    number: int
    capture: float
    cloud: Any
    tile: Any = None
    quality: Any = None
    codec: Any = None
    data: Any = None

    def decode(self):
        """Returns the points of the frame as a Cloud."""
        return self.cloud if self.cloud is not None else decode(self.codec, self.data)


def read_journal(path):
    """Returns the head of a journal, a dictionary, and an iterator of its frames (JournalFrame).

    docs/capture.md describes the format. A record that was cut off ends the journal, as after a loss of power.
    Checksums are not checked: `volpeer publish --source replay:FILE` checks them. Journals of images are not supported.
    """
    file = open(path, "rb")
    try:
        magic = file.read(len(_magic))
        if magic != _magic:
            raise ValueError(f"{path} begins with {magic!r}, expected {_magic!r}: it is no journal")
        first = _record(file)
        if first is None or first[0] != b"head":
            raise ValueError(f"{path} has no head, expected a record 'head' at the beginning")
        head = json.loads(first[1])
        if head.get("content") not in ("points", "encoded"):
            raise ValueError(f"{path} contains {head.get('content')!r}, expected 'points' or 'encoded'")
    except BaseException:
        file.close()
        raise
    return head, _frames(file)


def _record(file):
    """Returns the kind and the payload of the next record, or None at the end."""
    header = file.read(_header.size)
    if len(header) < _header.size:
        return None
    kind, length, _ = _header.unpack(header)
    payload = file.read(length) if length <= 1 << 30 else b""
    return None if len(payload) < length or kind not in (b"head", b"fram", b"tile") else (kind, payload)


def _frames(file):
    with file:
        while (record := _record(file)) is not None:
            kind, payload = record
            number, wall, _, _ = _times.unpack_from(payload)
            rest, capture = payload[_times.size :], wall / 1e9
            if kind == b"tile":
                tile, quality, codec = _tile.unpack_from(rest)
                yield JournalFrame(number, capture, None, tile, quality, codec.decode("ascii"), rest[_tile.size :])
            elif kind == b"fram":
                _, count = _count.unpack_from(rest)
                positions = numpy.frombuffer(rest, "<f4", 3 * count, _count.size).reshape(-1, 3)
                colors = numpy.frombuffer(rest, numpy.uint8, 3 * count, _count.size + 12 * count).reshape(-1, 3)
                yield JournalFrame(number, capture, Cloud(positions, colors))


class FrameTimes:
    """The frames of a file of `--frame-times`, as arrays of one entry per frame.

    participant and publication are arrays of texts; tile, quality, frame and bytes of integers. layers holds the layers
    of docs/latency.md by name, in milliseconds, NaN if unknown; stamps the stamps by name, in seconds since 1970.
    """

    def __init__(self, records):
        self.participant = numpy.array([r["participant"] for r in records], dtype=str)
        self.publication = numpy.array([r["publication"] for r in records], dtype=str)
        for name in ("tile", "quality", "frame", "bytes"):
            setattr(self, name, numpy.array([r[name] for r in records], dtype=numpy.int64))
        self.layers = _columns(records, "layers_ms", 1)
        self.stamps = _columns(records, "stamps_ns", 1e-9)

    def __len__(self):
        return len(self.frame)


def _columns(records, key, scale):
    names = sorted({name for r in records for name in r[key]})
    return {name: numpy.array([scale * r[key].get(name, numpy.nan) for r in records]) for name in names}


def read_frame_times(path):
    """Reads a file of JSON lines that `volpeer --frame-times` has written, and returns FrameTimes."""
    with open(path, encoding="utf-8") as file:
        return FrameTimes([json.loads(line) for line in file if line.strip()])
