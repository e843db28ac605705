"""The errors of the library."""


class Error(Exception):
    """An error of the library. status is the status of volsfu.h, below 0."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument is invalid."""


class CodecError(Error):
    """The library has no such codec."""


class MalformedError(Error, ValueError):
    """A frame is not a frame of its codec."""


class BufferTooSmall(Error):
    """A buffer is too small. The functions of this package enlarge their buffers and do not raise it."""


class Timeout(Error, TimeoutError):
    """Nothing arrived in time, or the server did not answer in time."""


class NotConnectedError(Error):
    """Media cannot be sent at present. Drop the frame, and continue."""


class ClosedError(Error):
    """The session is closed."""


class LostError(Error):
    """The session has ended, and could not be resumed: connect again."""


class RefusedError(Error):
    """The server refuses the request. The message names the reason."""


_classes = {
    -4: ArgumentError,
    -5: ArgumentError,
    -6: ArgumentError,
    -9: BufferTooSmall,
    -10: ArgumentError,
    -12: CodecError,
    -13: MalformedError,
    -20: Timeout,
    -21: ClosedError,
    -22: LostError,
    -23: NotConnectedError,
    -24: NotConnectedError,
}


def of(status, message):
    """Returns the error of a status below 0."""
    return _classes.get(status, RefusedError if status <= -100 else Error)(status, message)
