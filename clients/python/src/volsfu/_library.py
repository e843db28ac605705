"""The functions of libvolsfu, as volsfu.h declares them."""

import ctypes
import os
import pathlib
import sys
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)

from . import errors

# The VOLSFU_API_VERSION of these declarations.
API_VERSION = 5


class Sized(Structure):
    """A struct that begins with its size, which the library checks."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), **fields)


class Config(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("url", c_char_p),
        ("room", c_char_p),
        ("identity", c_char_p),
        ("token", c_char_p),
        ("max_bitrate", c_int64),
        ("start_bitrate", c_int64),
        ("max_uplink", c_int64),
        ("min_uplink", c_int64),
        ("deadline_ms", c_uint32),
        ("frame_bytes", c_uint32),
        ("queue_frames", c_uint32),
        ("request_ms", c_uint32),
        ("queue_bytes", c_uint64),
        ("interfaces", c_char_p),
        ("redundancy", c_uint32),
        ("passphrase", c_char_p),
        ("ca_file", c_char_p),
    ]


class Box(Structure):
    _fields_ = [("min", c_float * 3), ("max", c_float * 3)]


class Tile(Structure):
    _fields_ = [("label", c_char_p), ("box", Box)]


class Quality(Structure):
    _fields_ = [("name", c_char_p), ("bitrate", c_int64)]


class Publication(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("mode", c_uint32),
        ("name", c_char_p),
        ("format", c_char_p),
        ("frame_rate", c_double),
        ("tiles", POINTER(Tile)),
        ("qualities", POINTER(Quality)),
        ("tile_count", c_uint32),
        ("quality_count", c_uint32),
    ]


class OutgoingFrame(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("number", c_uint32),
        ("codec", c_char * 4),
        ("capture_us", c_int64),
        ("data", c_char_p),
        ("length", c_size_t),
    ]


class Pose(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("box_count", c_uint32),
        ("position", c_double * 3),
        ("orientation", c_double * 4),
        ("scale", c_double),
        ("priority", c_double),
        ("boxes", POINTER(Box)),
    ]


class Frame(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("codec", c_char * 4),
        ("handle", c_uint64),
        ("participant", c_char_p),
        ("publication", c_char_p),
        ("tile", c_int32),
        ("quality", c_int32),
        ("number", c_int64),
        ("capture_us", c_int64),
        ("first_us", c_int64),
        ("complete_us", c_int64),
        ("data", c_void_p),
        ("length", c_size_t),
    ]


class Choice(Structure):
    _fields_ = [
        ("participant", c_char_p),
        ("publication", c_char_p),
        ("tile", c_int32),
        ("quality", c_int32),
        ("qualities", c_uint64),
    ]


class Viewpoint(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("at_us", c_int64),
        ("position", c_double * 3),
        ("orientation", c_double * 4),
        ("fov", c_double),
        ("aspect", c_double),
    ]


class Event(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("kind", c_uint32),
        ("handle", c_uint64),
        ("participant", c_char_p),
        ("publication", c_char_p),
        ("text", c_char_p),
        ("json", c_char_p),
        ("tile", c_int32),
        ("quality", c_int32),
        ("description", c_int32),
        ("delay_us", c_int64),
        ("estimate", c_int64),
        ("allocated", c_int64),
        ("wanted", c_int64),
        ("position", c_double * 3),
        ("orientation", c_double * 4),
        ("scale", c_double),
        ("priority", c_double),
    ]


class Points(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("color_bytes", c_uint32),
        ("positions", POINTER(c_float)),
        ("colors", POINTER(c_uint8)),
        ("capacity", c_size_t),
        ("count", c_size_t),
    ]


class Encoding(Sized):
    _fields_ = [
        ("size", c_uint32),
        ("codec", c_char * 4),
        ("position_bits", c_uint32),
        ("speed", c_uint32),
        ("color_quality", c_uint32),
        ("box", Box),
    ]


_arguments = {
    "volsfu_connect": [POINTER(Config), POINTER(c_uint64)],
    "volsfu_close": [c_uint64],
    "volsfu_set_limits": [c_uint64, c_int64, c_int64],
    "volsfu_server_time": [c_uint64, c_int64, POINTER(c_int64)],
    "volsfu_get_room": [c_uint64, c_char_p, c_size_t, POINTER(c_size_t)],
    "volsfu_set_key": [c_uint64, c_uint32, c_char_p, c_char_p, c_size_t],
    "volsfu_use_epoch": [c_uint64, c_uint32],
    "volsfu_forget_epoch": [c_uint64, c_uint32],
    "volsfu_publish": [c_uint64, POINTER(Publication), POINTER(c_uint64)],
    "volsfu_unpublish": [c_uint64],
    "volsfu_write_frame": [c_uint64, c_int32, c_int32, POINTER(OutgoingFrame)],
    "volsfu_wanted": [c_uint64, c_int32, c_int32],
    "volsfu_set_pose": [c_uint64, POINTER(Pose)],
    "volsfu_next_frame": [c_uint64, c_int32, POINTER(Frame)],
    "volsfu_release_frame": [POINTER(Frame)],
    "volsfu_set_quality": [c_uint64, POINTER(Choice), c_size_t],
    "volsfu_set_viewpoint": [c_uint64, POINTER(Viewpoint)],
    "volsfu_next_event": [c_uint64, c_int32, POINTER(Event)],
    "volsfu_release_event": [POINTER(Event)],
    "volsfu_get_codecs": [c_char_p, c_size_t, POINTER(c_size_t)],
    "volsfu_encode": [POINTER(Encoding), POINTER(Points), c_void_p, c_size_t, POINTER(c_size_t)],
    "volsfu_decode": [c_char_p, c_char_p, c_size_t, POINTER(Points)],
    "volsfu_get_statistics": [c_uint64, c_char_p, c_size_t, POINTER(c_size_t)],
}


def _path():
    named = os.environ.get("VOLSFU_LIBRARY")
    if named:
        return named
    name = {"win32": "volsfu.dll", "darwin": "libvolsfu.dylib"}.get(sys.platform, "libvolsfu.so")
    beside = pathlib.Path(__file__).with_name(name)
    if beside.exists():
        return str(beside)
    raise ImportError(
        f"{beside} does not exist: install the wheel, or set VOLSFU_LIBRARY to the path of {name}, which 'make clib' builds"
    )


def _load():
    path = _path()
    try:
        loaded = ctypes.CDLL(path)
    except OSError as cause:
        raise ImportError(f"the library {path} cannot be loaded: {cause}") from cause
    loaded.volsfu_api_version.restype = c_uint32
    version = loaded.volsfu_api_version()
    if version != API_VERSION:
        raise ImportError(f"the library {path} has version {version} of the interface, expected {API_VERSION}")
    loaded.volsfu_last_message.restype = c_char_p
    for name, arguments in _arguments.items():
        function = getattr(loaded, name)
        function.argtypes, function.restype = arguments, c_int32
    return loaded


_loaded = _load()


def call(name, *arguments):
    """Calls a function and returns its status, 0 or more. A status below 0 raises errors.Error.

    The library keeps the message of an error for the calling thread, so the message is read at once.
    """
    status = getattr(_loaded, name)(*arguments)
    if status < 0:
        message = _loaded.volsfu_last_message().decode("utf-8", "replace")
        raise errors.of(status, message)
    return status


def text(name, *arguments):
    """Calls a function that writes a text, and returns the text."""
    capacity = 4096
    while True:
        buffer, length = ctypes.create_string_buffer(capacity), c_size_t()
        try:
            call(name, *arguments, buffer, capacity, byref(length))
            return buffer.raw[: length.value].decode("utf-8")
        except errors.BufferTooSmall:
            # The text can have grown again before the next call.
            capacity = 2 * length.value + 1


def optional(value):
    """Returns a text as bytes, None for None."""
    return None if value is None else value.encode("utf-8")
