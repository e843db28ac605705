"""Sessions: participants of a room."""

import ctypes
import json
import math
from ctypes import byref, c_int64, c_uint64
from typing import Any, NamedTuple, Optional, Sequence

import numpy

from . import _library, coding, errors

_RECEIVE, _TCP, _GCC, _ENCRYPT = 1, 2, 4, 8
_OFF, _AUTO = -1, -2
_kinds = (
    "", "connected", "interrupted", "resumed", "closing", "participant_joined", "participant_left", "published",
    "unpublished", "sending", "wanted", "uplink", "pose", "bandwidth", "refused", "attributes", "metadata", "muted",
    "permissions", "recording", "moved", "audience",
)  # fmt: skip


class Tile(NamedTuple):
    """One part of an object: two corners of its box, and a name."""

    box: Any
    label: Optional[str] = None


class Quality(NamedTuple):
    """One quality. Publisher.send encodes a share of the points, 0 to 1, with this number of bits per coordinate."""

    name: Optional[str] = None
    share: float = 1.0
    bits: int = 11
    bitrate: int = 0


class Frame(NamedTuple):
    """One complete frame of a tile. Times are seconds since 1970 by the server's clock, None if unknown."""

    participant: str
    publication: str
    tile: int
    quality: int
    number: int
    codec: str
    capture: Optional[float]
    first: Optional[float]
    complete: Optional[float]
    data: bytes

    def decode(self):
        """Returns the points of the frame as a Cloud. A frame without bytes has no points, and perhaps no codec."""
        return coding.decode(self.codec, self.data) if self.data else coding.Cloud(numpy.empty((0, 3)))


class Event(NamedTuple):
    """An event. kind is a name, such as "connected" or "published"; detail is the event's JSON, or None.

    docs/client.md explains the kinds, volsfu.h the fields that each of them sets.
    """

    kind: str
    participant: str
    publication: str
    tile: int
    quality: int
    text: str
    detail: Any
    delay: float
    estimate: int
    allocated: int
    wanted: int


def connect(
    url, room=None, identity=None, token=None, receive=True, tcp=False, gcc=False, passphrase=None, encrypt=False,
    max_bitrate=0, start_bitrate=0, max_uplink=0, min_uplink=0, deadline=0, queue_frames=0, queue_bytes=0,
    interfaces=None, redundancy="auto", ca_file=None,
):  # fmt: skip
    """Enters a room and returns the Session. Waits until the server has accepted the participant.

    A token that names room and identity replaces them. passphrase encrypts from end to end; encrypt does so with the
    secrets of Session.set_key. deadline is the time for repairs of a frame, in seconds. interfaces names at most two
    network interfaces, and redundancy the packets that leave on both: "auto", "off" or "all". ca_file is a PEM file with
    certificate authorities to trust in place of the system's. 0 and None select the defaults of volsfu.h.
    """
    copies = {"auto": 0, "off": 1, "all": 2}
    if redundancy not in copies:
        raise ValueError(f"redundancy is {redundancy!r}, expected 'auto', 'off' or 'all'")
    flags = receive * _RECEIVE | tcp * _TCP | gcc * _GCC | encrypt * _ENCRYPT
    config = _library.Config(
        flags=flags, url=_library.optional(url), room=_library.optional(room), identity=_library.optional(identity),
        token=_library.optional(token), max_bitrate=max_bitrate, start_bitrate=start_bitrate, max_uplink=max_uplink,
        min_uplink=min_uplink, deadline_ms=round(1000 * deadline), queue_frames=queue_frames, queue_bytes=queue_bytes,
        interfaces=_library.optional(interfaces and ",".join(interfaces)), redundancy=copies[redundancy],
        passphrase=_library.optional(passphrase), ca_file=_library.optional(ca_file),
    )  # fmt: skip
    handle = c_uint64()
    _library.call("volsfu_connect", byref(config), byref(handle))
    return Session(handle.value)


class Session:
    """One participant's presence in a room, as connect returns it. Any thread may call any method."""

    def __init__(self, handle):
        self._handle = handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves the room. Calls of other threads that wait raise ClosedError. A second call has no effect."""
        if self._handle:
            handle, self._handle = self._handle, 0
            _library.call("volsfu_close", handle)

    def publish(self, name, box=None, tiles=None, qualities=None, frame_rate=30.0, codec="zstd", descriptions=False):
        """Publishes an object and returns its Publisher.

        box, two corners, encloses all points of the object, which then has one tile; or tiles is a list of Tile, one for
        each part. qualities is a list of Quality, ascending; by default there are a quarter of the points, and all.
        """
        if (box is None) == (tiles is None):
            raise ValueError("expected either box or tiles")
        tiles = [Tile(box)] if tiles is None else list(tiles)
        qualities = [Quality("low", 0.25), Quality("high")] if qualities is None else list(qualities)
        coding.fourcc(codec)
        publication = _library.Publication(
            mode=int(descriptions), name=_library.optional(name), format=f"codec={codec}".encode(),
            frame_rate=frame_rate, tile_count=len(tiles), quality_count=len(qualities),
        )  # fmt: skip
        publication.tiles = (_library.Tile * len(tiles))(
            *(_library.Tile(_library.optional(tile.label), coding.box_of(tile.box)) for tile in tiles)
        )
        publication.qualities = (_library.Quality * len(qualities))(
            *(_library.Quality(_library.optional(quality.name), quality.bitrate) for quality in qualities)
        )
        handle = c_uint64()
        _library.call("volsfu_publish", self._handle, byref(publication), byref(handle))
        return Publisher(handle.value, tiles, qualities, codec)

    def next_frame(self, timeout=None):
        """Waits for the next complete Frame. Timeout is raised after timeout seconds; None waits without end."""
        frame = _library.Frame()
        _library.call("volsfu_next_frame", self._handle, _milliseconds(timeout), byref(frame))
        try:
            return Frame(
                frame.participant.decode(), frame.publication.decode(), frame.tile, frame.quality, frame.number,
                frame.codec.decode("ascii", "replace"), _seconds(frame.capture_us), _seconds(frame.first_us),
                _seconds(frame.complete_us), ctypes.string_at(frame.data, frame.length),
            )  # fmt: skip
        finally:
            _library.call("volsfu_release_frame", byref(frame))

    def frames(self, timeout=None):
        """Iterates over complete frames, until none arrives for timeout seconds or the session is closed."""
        while True:
            try:
                yield self.next_frame(timeout)
            except (errors.Timeout, errors.ClosedError):
                return

    def next_event(self, timeout=None):
        """Waits for the next Event, like next_frame."""
        event = _library.Event()
        _library.call("volsfu_next_event", self._handle, _milliseconds(timeout), byref(event))
        try:
            detail = json.loads(event.json) if event.json else None
            kind = _kinds[event.kind] if event.kind < len(_kinds) else str(event.kind)
            return Event(
                kind, event.participant.decode(), event.publication.decode(), event.tile, event.quality,
                event.text.decode(), detail, event.delay_us / 1e6, event.estimate, event.allocated, event.wanted,
            )  # fmt: skip
        finally:
            _library.call("volsfu_release_event", byref(event))

    def wait_for(self, kind, timeout=10.0):
        """Reads events up to the first of a kind, such as "connected", and returns that event."""
        if kind not in _kinds:
            raise ValueError(f"the kind is {kind!r}, expected one of {', '.join(_kinds[1:])}")
        while True:
            event = self.next_event(timeout)
            if event.kind == kind:
                return event

    def set_quality(self, participant, publication, quality, tile=None):
        """Chooses a quality of a publication, "auto" or "off", for one tile or for all."""
        chosen = {"auto": _AUTO, "off": _OFF}.get(quality, quality)
        if not isinstance(chosen, int):
            raise ValueError(f"the quality is {quality!r}, expected a number, 'auto' or 'off'")
        choice = _library.Choice(participant.encode(), publication.encode(), -1 if tile is None else tile, chosen, 0)
        _library.call("volsfu_set_quality", self._handle, byref(choice), 1)

    def set_viewpoint(self, position, orientation=(0, 0, 0, 1), fov=math.pi / 3, aspect=1.0):
        """Sends the viewpoint, so that visible objects get the best qualities. fov is the vertical angle in radians."""
        viewpoint = _library.Viewpoint(fov=fov, aspect=aspect)
        viewpoint.position[:], viewpoint.orientation[:] = position, orientation
        _library.call("volsfu_set_viewpoint", self._handle, byref(viewpoint))

    def set_limits(self, max_bitrate=0, min_bitrate=0):
        """Bounds the rate to this participant; 0 means no limit."""
        _library.call("volsfu_set_limits", self._handle, max_bitrate, min_bitrate)

    def set_key(self, epoch, secret, identity=None):
        """Sets the secret of an epoch, of all participants or of one. docs/encryption.md explains rotation."""
        _library.call("volsfu_set_key", self._handle, epoch, _library.optional(identity), secret, len(secret))

    def use_epoch(self, epoch):
        """Encrypts published frames with the secret of this epoch from now on."""
        _library.call("volsfu_use_epoch", self._handle, epoch)

    def forget_epoch(self, epoch):
        """Removes the secrets of an epoch."""
        _library.call("volsfu_forget_epoch", self._handle, epoch)

    def server_time(self):
        """Returns the present time of the server's clock, which stamps frames, in seconds since 1970."""
        now = c_int64()
        _library.call("volsfu_server_time", self._handle, 0, byref(now))
        return now.value / 1e6

    def room(self):
        """Returns the participants of the room and their publications, as docs/signalling.md describes them."""
        return json.loads(_library.text("volsfu_get_room", self._handle))

    def statistics(self):
        """Returns the counts of the session, those of volsfu_totals in volsfu.h, and of each received tile."""
        return json.loads(_library.text("volsfu_get_statistics", self._handle))


class Publisher:
    """A published object, as Session.publish returns it."""

    def __init__(self, handle, tiles: Sequence[Tile], qualities: Sequence[Quality], codec):
        self._handle = handle
        self.tiles, self.qualities, self.codec = tiles, qualities, codec
        # The next number of send.
        self._number = 0
        corners = [coding.box_of(tile.box) for tile in tiles]
        self._box = (
            [min(box.min[axis] for box in corners) for axis in range(3)],
            [max(box.max[axis] for box in corners) for axis in range(3)],
        )

    def unpublish(self):
        """Ends the publication."""
        _library.call("volsfu_unpublish", self._handle)

    def wanted(self, tile, quality):
        """Reports whether the tile has a receiver at the quality, and the uplink can carry it."""
        return _library.call("volsfu_wanted", self._handle, tile, quality) == 1

    def send(self, clouds, capture=None, random=None):
        """Encodes one capture at all wanted qualities and sends it. Returns the number of frames sent.

        clouds is a Cloud, or a list of one Cloud for each tile. capture is the time in seconds since 1970; None means
        now. Without a connection nothing is sent.
        """
        clouds = [clouds] if isinstance(clouds, coding.Cloud) else list(clouds)
        if len(clouds) != len(self.tiles):
            raise ValueError(f"{len(clouds)} clouds, expected one for each of {len(self.tiles)} tiles")
        number, self._number = self._number, (self._number + 1) % (1 << 32)
        sent = 0
        for tile, cloud in enumerate(clouds):
            for index, quality in enumerate(self.qualities):
                if not self.wanted(tile, index):
                    continue
                chosen = cloud.sample(round(quality.share * len(cloud)), random)
                data = coding.encode(chosen, self.codec, self._box, quality.bits)
                try:
                    self.write(tile, index, number, self.codec, data, capture)
                except errors.NotConnectedError:
                    return sent
                sent += 1
        return sent

    def write(self, tile, quality, number, codec, data, capture=None):
        """Sends one encoded frame. number counts captures, and is the same for all tiles and qualities of a capture."""
        frame = _library.OutgoingFrame(
            number=number, codec=coding.fourcc(codec), data=data, length=len(data),
            capture_us=0 if capture is None else round(1e6 * capture),
        )  # fmt: skip
        _library.call("volsfu_write_frame", self._handle, tile, quality, byref(frame))

    def set_pose(self, position=(0, 0, 0), orientation=(0, 0, 0, 1), scale=1.0):
        """Sends the pose of the object in the room to the others."""
        pose = _library.Pose(scale=scale)
        pose.position[:], pose.orientation[:] = position, orientation
        _library.call("volsfu_set_pose", self._handle, byref(pose))


def _milliseconds(timeout):
    return -1 if timeout is None else max(0, round(1000 * timeout))


def _seconds(microseconds):
    return microseconds / 1e6 if microseconds else None
