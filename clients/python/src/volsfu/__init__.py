"""Participation in volumetric video conferences: join a room, publish clouds, receive the clouds of others.

    import volsfu

    with volsfu.connect("ws://127.0.0.1:8080", room="lab", identity="ada") as session:
        for frame in session.frames(timeout=5):
            cloud = frame.decode()
            print(frame.participant, frame.number, len(cloud))

README.md has the introduction. All times are seconds, as time.time() returns them; rates are bits per second; lengths
are metres.
"""

from .coding import Cloud, codecs, decode, encode
from .errors import (
    ArgumentError,
    ClosedError,
    CodecError,
    Error,
    LostError,
    MalformedError,
    NotConnectedError,
    RefusedError,
    Timeout,
)
from .records import FrameTimes, read_frame_times, read_journal
from .session import Event, Frame, Publisher, Quality, Session, Tile, connect

__all__ = [
    "ArgumentError",
    "ClosedError",
    "Cloud",
    "CodecError",
    "Error",
    "Event",
    "Frame",
    "FrameTimes",
    "LostError",
    "MalformedError",
    "NotConnectedError",
    "Publisher",
    "Quality",
    "RefusedError",
    "Session",
    "Tile",
    "Timeout",
    "codecs",
    "connect",
    "decode",
    "encode",
    "read_frame_times",
    "read_journal",
]
