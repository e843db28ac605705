#include "boundary.h"

#include <stdlib.h>

// The calling thread's last message.
static _Thread_local char message[1024];

void volsfu_boundary_note(const char *text, size_t length) {
  if (length >= sizeof message) {
    length = sizeof message - 1;
    // Do not cut within a UTF-8 character.
    while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  }
  memcpy(message, text, length);
  message[length] = '\0';
}

const char *volsfu_last_message(void) { return message; }

void *volsfu_boundary_allocate(size_t size) { return malloc(size); }

uint32_t volsfu_api_version(void) { return VOLSFU_API_VERSION; }

static const char *refusal_text(int32_t status) {
  switch (status) {
    case VOLSFU_REFUSED_UNAUTHORIZED: return "the server refuses: no token, or one that is not valid";
    case VOLSFU_REFUSED_VERSION: return "the server refuses: it speaks another version of the protocol";
    case VOLSFU_REFUSED_MALFORMED: return "the server refuses: it could not read a message";
    case VOLSFU_REFUSED_TOO_LARGE: return "the server refuses: a message is too large";
    case VOLSFU_REFUSED_RATE_LIMITED: return "the server refuses: too many messages";
    case VOLSFU_REFUSED_FORBIDDEN: return "the server refuses: the token does not grant this";
    case VOLSFU_REFUSED_UNKNOWN_TYPE: return "the server refuses: it does not know this kind of message";
    case VOLSFU_REFUSED_NOT_JOINED: return "the server refuses: the session has not joined";
    case VOLSFU_REFUSED_ALREADY_JOINED: return "the server refuses: the session has joined already";
    case VOLSFU_REFUSED_INVALID: return "the server refuses: a value is invalid";
    case VOLSFU_REFUSED_IDENTITY_TAKEN: return "the server refuses: somebody with this identity is in the room";
    case VOLSFU_REFUSED_LIMIT: return "the server refuses: a limit is reached";
    case VOLSFU_REFUSED_EXISTS: return "the server refuses: there is a publication of this name already";
    case VOLSFU_REFUSED_NOT_FOUND: return "the server refuses: there is no such publication, tile or quality";
    case VOLSFU_REFUSED_UNEXPECTED_ANSWER: return "the server refuses: no offer waits for this answer";
    case VOLSFU_REFUSED_INVALID_SDP: return "the server refuses: the session description cannot be used";
    case VOLSFU_REFUSED_RESUME: return "the server refuses: the session cannot be resumed";
    case VOLSFU_REFUSED_DRAINING: return "the server refuses: it is about to stop";
    case VOLSFU_REFUSED_SLOW_READER: return "the server refuses: its messages were not read in time";
    case VOLSFU_REFUSED_REPLACED: return "the server refuses: the session went on over another connection";
    case VOLSFU_REFUSED_CONNECTION: return "the server refuses: the peer connection failed";
    case VOLSFU_REFUSED_INTERNAL: return "the server refuses: it failed; its log says why";
    case VOLSFU_REFUSED_KICKED: return "the server refuses: an operator removed the participant";
    case VOLSFU_REFUSED_CLOSED: return "the server refuses: an operator closed the room";
    case VOLSFU_REFUSED_REVOKED: return "the server refuses: an operator revoked the token";
    case VOLSFU_REFUSED: return "the server refuses, with a code that this library does not know";
    default: return "no status of this library";
  }
}

const char *volsfu_status_text(int32_t status) {
  if (status > 0) return "success";
  switch (status) {
    case VOLSFU_OK: return "success";
    case VOLSFU_E_NULL: return "a required pointer is NULL";
    case VOLSFU_E_SIZE: return "a struct was not initialised by VOLSFU_INIT, or header and library have different versions";
    case VOLSFU_E_HANDLE: return "no such session, publisher, listener, frame, message or event, or it was closed or released";
    case VOLSFU_E_ARGUMENT: return "a value is invalid";
    case VOLSFU_E_TOO_LARGE: return "the frame or the message has more bytes than can be sent";
    case VOLSFU_E_ORDER: return "the frame's number is not above the last one of its tile and quality";
    case VOLSFU_E_HELD: return "the struct contains a frame, a message or an event that was not released";
    case VOLSFU_E_TOO_MUCH_HELD: return "the program holds the maximum amount: it must release something first";
    case VOLSFU_E_BUFFER: return "the buffer is too small for the result";
    case VOLSFU_E_KEY: return "there is no usable secret for encryption";
    case VOLSFU_E_CODEC: return "the library has no such codec, or found no Opus";
    case VOLSFU_E_KIND: return "the publication is sound and the call is for frames, or the other way round";
    case VOLSFU_E_BACKLOG: return "too many data messages wait for the server's answer";
    case VOLSFU_E_MALFORMED: return "the frame is not a frame of its codec";
    case VOLSFU_E_NOT_PUBLISHED: return "the publication has no such tile or quality";
    case VOLSFU_E_TIMEOUT: return "nothing arrived in time";
    case VOLSFU_E_CLOSED: return "the session is closed";
    case VOLSFU_E_LOST: return "the session is lost";
    case VOLSFU_E_NOT_CONNECTED: return "media cannot be sent at present";
    case VOLSFU_E_INTERRUPTED: return "the connection broke before the answer";
    case VOLSFU_E_UNREACHABLE: return "there is no server at this address";
    case VOLSFU_E_INTERFACE: return "a network interface cannot be used";
    case VOLSFU_E_MEMORY: return "out of memory";
    case VOLSFU_E_INTERNAL: return "a defect of the library";
    default: return refusal_text(status);
  }
}
