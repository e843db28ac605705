/*
 * volsfu.h: participation in volumetric video conferences from C, and from any language that can call C.
 *
 * A session is one participant's presence in a room. A session publishes objects, each cut into tiles at several qualities, and receives the objects of
 * the others, frame by frame. Frames are bytes: the program encodes and decodes them, with the codecs of this library or with its own. A session also
 * publishes and plays sound, and exchanges data messages.
 *
 * General rules
 *
 * - Every function may be called from any thread at any time, also concurrently on one session. Functions that wait, for the server or for data,
 *   are documented as such; all others return immediately.
 * - Functions return VOLSFU_OK (0), volsfu_wanted also 1, or a negative status. volsfu_status_text returns the meaning of a status, and
 *   volsfu_last_message the exact error of this thread's last call that failed. A failed call does not change its output arguments, unless it is
 *   documented otherwise.
 * - VOLSFU_INIT initialises structs that begin with size: with zeros, which are a sensible default everywhere, and with the size. By the size,
 *   the library detects a header of another version (VOLSFU_E_SIZE).
 * - Handles are numbers that are never reused, so that a closed or released handle is detected (VOLSFU_E_HANDLE). 0 is never a handle.
 * - Texts are UTF-8 and end with a zero byte. Arguments are copied, and may be freed when the function has returned.
 * - The library owns the data that it returns. The data stays unchanged until the program releases it, also after the session is closed. Waiting
 *   data is bounded; beyond the bounds, the oldest data is dropped and counted (volsfu_get_totals).
 * - Times are microseconds of UTC since 1970, rates are bits per second, lengths are metres. Coordinates are right-handed: x right, y up, z
 *   towards the viewer. Orientations are unit quaternions x, y, z, w; four zeros mean 0, 0, 0, 1.
 * - The library cannot detect a pointer that is not NULL but does not point to the documented object.
 * - The library stays loaded until the process ends, and does not support fork() without exec().
 */
#ifndef VOLSFU_H_
#define VOLSFU_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(_WIN32) && defined(VOLSFU_BUILDING)
#define VOLSFU_API __declspec(dllexport)
#elif defined(_WIN32)
#define VOLSFU_API __declspec(dllimport)
#else
#define VOLSFU_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header, which changes when programs must be recompiled; volsfu_api_version returns the library's. */
#define VOLSFU_API_VERSION 5

/* Initialises a struct that begins with size. The argument is the struct itself, not a pointer. */
#define VOLSFU_INIT(object) ((void)(memset(&(object), 0, sizeof(object)), (object).size = (uint32_t)sizeof(object)))

/* The results of functions. */
enum {
  VOLSFU_OK = 0,

  /* The call is wrong. */
  VOLSFU_E_NULL = -1,          /* a required pointer is NULL */
  VOLSFU_E_SIZE = -2,          /* a struct was not initialised by VOLSFU_INIT, or header and library have different versions */
  VOLSFU_E_HANDLE = -3,        /* no such session, publisher, listener, frame, message or event, or it was closed or released */
  VOLSFU_E_ARGUMENT = -4,      /* an invalid value, such as a tile below 0 or a text that is too long */
  VOLSFU_E_TOO_LARGE = -5,     /* a frame or a message with more bytes than can be sent */
  VOLSFU_E_ORDER = -6,         /* the frame's number is not above the last number of this tile and quality */
  VOLSFU_E_HELD = -7,          /* the struct contains a frame, a message or an event that was not released */
  VOLSFU_E_TOO_MUCH_HELD = -8, /* the program holds the maximum amount: it must release something first */
  VOLSFU_E_BUFFER = -9,        /* the buffer is too small for the text, the frame, the points or the raster */
  VOLSFU_E_NOT_PUBLISHED = -10, /* the publication has no such tile or quality */
  VOLSFU_E_KEY = -11,           /* a secret that is too short, an epoch without a secret, or no secret to encrypt a frame with */
  VOLSFU_E_CODEC = -12,         /* the library has no such codec, or found no Opus */
  VOLSFU_E_MALFORMED = -13,     /* the frame is not a frame of its codec */
  VOLSFU_E_KIND = -14,          /* frames for a publication of sound, or sound for one of frames */

  /* The call is valid, but not possible, or not at present. */
  VOLSFU_E_TIMEOUT = -20,       /* nothing arrived in time, or the server did not answer in time */
  VOLSFU_E_CLOSED = -21,        /* the session was closed meanwhile */
  VOLSFU_E_LOST = -22,          /* the session has ended, and could not be resumed: connect again */
  VOLSFU_E_NOT_CONNECTED = -23, /* media cannot be sent yet, or not at present; the frame was not sent */
  VOLSFU_E_INTERRUPTED = -24,   /* the connection broke before the answer; the server may have executed the request */
  VOLSFU_E_UNREACHABLE = -25,   /* there is no server at this address */
  VOLSFU_E_INTERFACE = -26,     /* a network interface of the configuration does not exist, is down, or has no usable address */
  VOLSFU_E_BACKLOG = -27,       /* too many data messages wait for the server's answer */
  VOLSFU_E_MEMORY = -30,        /* out of memory */
  VOLSFU_E_INTERNAL = -31,      /* a defect of this library; volsfu_last_message helps to find the defect */

  /* The server rejects the request. docs/signalling.md explains the corresponding codes. */
  VOLSFU_REFUSED = -100, /* with a code unknown to this library; volsfu_last_message contains the code */
  VOLSFU_REFUSED_UNAUTHORIZED = -101,
  VOLSFU_REFUSED_VERSION = -102,
  VOLSFU_REFUSED_MALFORMED = -103,
  VOLSFU_REFUSED_TOO_LARGE = -104,
  VOLSFU_REFUSED_RATE_LIMITED = -105,
  VOLSFU_REFUSED_FORBIDDEN = -106,
  VOLSFU_REFUSED_UNKNOWN_TYPE = -107,
  VOLSFU_REFUSED_NOT_JOINED = -108,
  VOLSFU_REFUSED_ALREADY_JOINED = -109,
  VOLSFU_REFUSED_INVALID = -110,
  VOLSFU_REFUSED_IDENTITY_TAKEN = -111,
  VOLSFU_REFUSED_LIMIT = -112,
  VOLSFU_REFUSED_EXISTS = -113,
  VOLSFU_REFUSED_NOT_FOUND = -114,
  VOLSFU_REFUSED_UNEXPECTED_ANSWER = -115,
  VOLSFU_REFUSED_INVALID_SDP = -116,
  VOLSFU_REFUSED_RESUME = -117,
  VOLSFU_REFUSED_DRAINING = -118,
  VOLSFU_REFUSED_SLOW_READER = -119,
  VOLSFU_REFUSED_REPLACED = -120,
  VOLSFU_REFUSED_CONNECTION = -121,
  VOLSFU_REFUSED_INTERNAL = -122,
  VOLSFU_REFUSED_KICKED = -123, /* an operator removed the participant, who must not reconnect automatically */
  VOLSFU_REFUSED_CLOSED = -124, /* an operator closed the room */
  VOLSFU_REFUSED_REVOKED = -125 /* an operator revoked the token */
};

/* Returns the meaning of a status in English. The text is constant; unknown numbers have one, too. */
VOLSFU_API const char *volsfu_status_text(int32_t status);

/* Returns the error of this thread's last call that failed, with the names concerned; empty if none has failed. It is valid until the thread's
 * next call that fails. */
VOLSFU_API const char *volsfu_last_message(void);

/* Returns the library's VOLSFU_API_VERSION. */
VOLSFU_API uint32_t volsfu_api_version(void);

/* ---- sessions ---- */

typedef uint64_t volsfu_session;

/* Flags of a configuration. */
enum {
  VOLSFU_RECEIVE = 1, /* receive the publications of others */
  VOLSFU_TCP = 2,     /* send and receive media over TCP, for networks that block UDP */
  VOLSFU_GCC = 4,     /* Google Congestion Control on the uplink, and not L4S: no sent packet has ECN */
  VOLSFU_ENCRYPT = 8  /* encrypt what is published, and receive encrypted publications only, with the secrets of volsfu_set_key */
};

/* The packets that are sent on two network interfaces, in both directions. */
enum {
  VOLSFU_REDUNDANCY_AUTO = 0, /* the packets that matter most, for at most 30 % more bytes; everything while the first interface fails */
  VOLSFU_REDUNDANCY_OFF = 1,  /* none: the second interface is used only after the first has failed */
  VOLSFU_REDUNDANCY_ALL = 2   /* everything that the second interface carries; requires two interfaces */
};

/* The address, the identity and the settings of a session. */
typedef struct {
  uint32_t size;
  uint32_t flags;         /* VOLSFU_RECEIVE | VOLSFU_TCP | VOLSFU_GCC | VOLSFU_ENCRYPT */
  const char *url;        /* the server's address, as ws://host:port or wss://host:port */
  const char *room;       /* NULL if the token names the room */
  const char *identity;   /* this participant's name in the room; NULL if the token names the participant */
  const char *token;      /* the access token; NULL for servers without tokens */
  int64_t max_bitrate;    /* the maximum rate to receive; 0: no limit */
  int64_t start_bitrate;  /* the assumed capacity of the downlink until the server has measured it; 0: the server's own start rate */
  int64_t max_uplink;     /* the maximum rate to send; 0: 1 Gbit/s */
  int64_t min_uplink;     /* the known minimum capacity of the uplink: a lower estimate does not reduce the sent rate below it; 0: 500 kbit/s */
  uint32_t deadline_ms;   /* the time for repairs of a frame after its first packet; 0: 150, or 250 if the round trip exceeds 50 ms */
  uint32_t frame_bytes;   /* the maximum size of a received frame; 0: 16 MiB */
  uint32_t queue_frames;  /* the maximum number of frames that wait for volsfu_next_frame, and of those held by the program; 0: 256 */
  uint32_t request_ms;    /* the time limit for answers of the server; 0: 10,000 */
  uint64_t queue_bytes;   /* the maximum bytes of waiting frames, and of held ones, but at least one frame each; 0: 64 MiB */
  const char *interfaces; /* the network interfaces for media, at most two, the preferred one first, such as "wlan0,wwan0"; NULL: the system
                             chooses. Not with VOLSFU_TCP */
  uint32_t redundancy;    /* VOLSFU_REDUNDANCY_AUTO, _OFF or _ALL; without effect unless there are two interfaces */
  const char *passphrase; /* a passphrase from which the secret of epoch 0 is derived; implies VOLSFU_ENCRYPT. NULL: none */
  const char *ca_file;    /* a PEM file with the certificate authorities to trust in place of the system's, for wss and for TURN over TLS. NULL: the
                             system's */
} volsfu_config;

/* Enters a room. Waits until the server has accepted the participant. Media is transferred from the event VOLSFU_EVENT_CONNECTED on, directly or by the
 * TURN servers that the server names. */
VOLSFU_API int32_t volsfu_connect(const volsfu_config *config, volsfu_session *session);

/* Leaves the room, and ends the session's publishers and listeners. Waits for the server for at most 2 seconds. Calls of other threads that wait on this
 * session return VOLSFU_E_CLOSED. Frames, messages and events held by the program stay valid. A session that has ended by itself must be closed, too. */
VOLSFU_API int32_t volsfu_close(volsfu_session session);

/* Sets the maximum rate for this participant, and the known minimum capacity of the link, below which the server's estimate does not fall. 0 means
 * no limit. Waits for the server. */
VOLSFU_API int32_t volsfu_set_limits(volsfu_session session, int64_t max_bitrate, int64_t min_bitrate);

/* Converts a time of this host to the server's clock, which is used for the stamps of frames. local_us 0 means now. */
VOLSFU_API int32_t volsfu_server_time(volsfu_session session, int64_t local_us, int64_t *server_us);

/* Writes the participants of the room and their publications as JSON: {"room", "identity", "participants": [{"identity", "publications": […]}]},
 * with publications as in docs/signalling.md. length is set to that of the text without the zero byte, also with VOLSFU_E_BUFFER, when nothing is
 * written: a call with NULL and 0 returns only the length. length may be NULL. */
VOLSFU_API int32_t volsfu_get_room(volsfu_session session, char *buffer, size_t capacity, size_t *length);

/* Changes attributes of a participant, of this one if participant is NULL. json is an object of texts, such as {"color": "red"}. Attributes that json
 * does not name stay, and an attribute with an empty text is deleted. Other participants need a token with the grant admin. The event
 * VOLSFU_EVENT_ATTRIBUTES reports changes, and volsfu_get_room has the attributes of the others. Waits for the server. */
VOLSFU_API int32_t volsfu_set_attributes(volsfu_session session, const char *participant, const char *json);

/* ---- end-to-end encryption: docs/encryption.md ---- */

/* Sets the secret of an epoch, 0 to 65535, which is shared by all participants, or used by one of them if identity is not NULL. Frames of the epoch
 * can then be decrypted. The first secret is also used for publishing; volsfu_use_epoch selects a later epoch. length is at least 16; 32 random
 * bytes are recommended. VOLSFU_E_ARGUMENT means that the session was configured without encryption, or that length exceeds 1,024. */
VOLSFU_API int32_t volsfu_set_key(volsfu_session session, uint32_t epoch, const char *identity, const void *secret, size_t length);

/* Encrypts published frames with the secret of this epoch from now on. */
VOLSFU_API int32_t volsfu_use_epoch(volsfu_session session, uint32_t epoch);

/* Removes the secrets of an epoch. Frames of the epoch are refused from now on. */
VOLSFU_API int32_t volsfu_forget_epoch(volsfu_session session, uint32_t epoch);

/* ---- publishing ---- */

typedef uint64_t volsfu_publisher;

/* The number of qualities of one tile that a receiver can receive. */
enum {
  VOLSFU_ALTERNATIVES = 0, /* at most one */
  VOLSFU_DESCRIPTIONS = 1  /* any set of qualities, which complement each other */
};

/* Flags of a publication. */
enum {
  VOLSFU_VR2GATHER = 1 /* VR2Gather's clients receive it, too: the library adds VR2Gather's header, with codec and capture time, to each frame.
                          These clients support the codecs "cwi0" and "cwi1", and alternatives only */
};

typedef struct {
  float min[3];
  float max[3];
} volsfu_box;

/* One part of an object. */
typedef struct {
  const char *label; /* its name, or NULL */
  volsfu_box box;    /* its position in the object's own coordinates */
} volsfu_tile;

/* One quality, the same for all tiles. */
typedef struct {
  const char *name; /* its name, or NULL */
  int64_t bitrate;  /* the nominal rate of one tile at this quality; 0 if unknown */
} volsfu_quality;

/* The description of a published object. */
typedef struct {
  uint32_t size;
  uint32_t flags;                  /* VOLSFU_VR2GATHER */
  uint32_t mode;                   /* VOLSFU_ALTERNATIVES or VOLSFU_DESCRIPTIONS */
  const char *name;                /* unique among this participant's publications */
  const char *format;              /* parameters of the codec for receivers, such as "codec=drco", or NULL */
  double frame_rate;               /* the nominal number of frames per second; 0 if unknown */
  const volsfu_tile *tiles;
  const volsfu_quality *qualities; /* ascending */
  uint32_t tile_count;             /* 1 to 256 */
  uint32_t quality_count;          /* 1 to 64 */
} volsfu_publication;

/* Publishes an object. Waits for the server. */
VOLSFU_API int32_t volsfu_publish(volsfu_session session, const volsfu_publication *publication, volsfu_publisher *publisher);

/* Ends a publication. The publisher's handle is closed in any case. Waits for the server. */
VOLSFU_API int32_t volsfu_unpublish(volsfu_publisher publisher);

/* One encoded tile at one quality. */
typedef struct {
  uint32_t size;
  uint32_t number;    /* the number of the capture: the same for all tiles and qualities of one instant, and incremented for the next */
  char codec[4];      /* the codec of data, such as "drco" */
  int64_t capture_us; /* the capture time by this host's clock, the same for all frames of one number: the first one counts. 0: the time of that call */
  const void *data;   /* may be NULL if length is 0 */
  size_t length;      /* 0 for a tile without points, which must also be written */
} volsfu_outgoing_frame;

/* Sends one frame, spread over part of the frame interval, without waiting for the end. Data is copied. A frame without receivers, or beyond the
 * capacity of the uplink, is counted and not sent. VOLSFU_E_NOT_CONNECTED means that there is no connection at present: drop the frame, and
 * continue. VOLSFU_E_KEY means that there is no secret to encrypt with. Several threads may write tiles, with the frames of one tile at one quality in
 * the order of their numbers; numbers may wrap around. */
VOLSFU_API int32_t volsfu_write_frame(volsfu_publisher publisher, int32_t tile, int32_t quality, const volsfu_outgoing_frame *frame);

/* Returns whether a tile should be encoded at a quality: 1 if it has a receiver and the uplink can carry it, else 0. Call it for each frame. */
VOLSFU_API int32_t volsfu_wanted(volsfu_publisher publisher, int32_t tile, int32_t quality);

/* The pose of an object in the room: a point of its boxes is scaled, rotated and translated, in this order. */
typedef struct {
  uint32_t size;
  uint32_t box_count; /* the number of the publication's tiles, or 0, which keeps the last boxes */
  double position[3];
  double orientation[4];
  double scale;    /* 0 means 1 */
  double priority; /* the weight of the object relative to others of the same visible size, 0.01 to 100; 0 means 1 */
  const volsfu_box *boxes;
} volsfu_pose;

/* Sends the pose of the object to the others. The newest pose is sent at most 60 times per second. */
VOLSFU_API int32_t volsfu_set_pose(volsfu_publisher publisher, const volsfu_pose *pose);

/* ---- receiving ---- */

/* Timeouts are milliseconds: 0 does not wait, VOLSFU_FOREVER waits until data arrives or the session ends. */
#define VOLSFU_FOREVER (-1)

/* One complete frame of a tile, as published. Only volsfu_release_frame may modify it. */
typedef struct {
  uint32_t size;
  char codec[4];           /* the codec of data; zeros if unknown */
  uint64_t handle;         /* 0 while the struct contains no frame */
  const char *participant; /* the publisher */
  const char *publication;
  int32_t tile;
  int32_t quality;
  int64_t number;      /* the number of the capture, which does not wrap around */
  int64_t capture_us;  /* by the server's clock; 0 if unknown */
  int64_t first_us;    /* arrival of the first packet, by the server's clock */
  int64_t complete_us; /* arrival of the last necessary packet */
  const uint8_t *data;
  size_t length; /* 0 for a tile without points */
} volsfu_frame;

/* Waits for the next complete frame, which must be released with volsfu_release_frame. VOLSFU_E_TIMEOUT means that none arrived, VOLSFU_E_HELD that
 * the struct already contains one, VOLSFU_E_TOO_MUCH_HELD that the program holds the maximum amount. At the end of the session, the remaining
 * frames are returned before the status with the reason of the end. */
VOLSFU_API int32_t volsfu_next_frame(volsfu_session session, int32_t timeout_ms, volsfu_frame *frame);

/* Releases a frame, and prepares the struct for the next frame. */
VOLSFU_API int32_t volsfu_release_frame(volsfu_frame *frame);

/* Qualities of a choice besides 0 to 63. */
enum {
  VOLSFU_OFF = -1,  /* nothing */
  VOLSFU_AUTO = -2, /* the decision of the server, by viewpoint and bandwidth */
  VOLSFU_SET = -3   /* the qualities whose bit is set in qualities, for VOLSFU_DESCRIPTIONS */
};

/* The tile of a choice for all tiles. */
#define VOLSFU_ALL_TILES (-1)

/* The choice of a receiver for a publication. */
typedef struct {
  const char *participant;
  const char *publication;
  int32_t tile;       /* or VOLSFU_ALL_TILES */
  int32_t quality;    /* 0 to 63, VOLSFU_OFF, VOLSFU_AUTO or VOLSFU_SET */
  uint64_t qualities; /* bit 0 is quality 0; read with VOLSFU_SET only */
} volsfu_choice;

/* Chooses qualities for this participant; the default is VOLSFU_AUTO. The server accepts all choices or none; later ones replace earlier ones for the
 * same tiles. They may precede the publication. It waits for the server. The event VOLSFU_EVENT_SENDING reports the switch. */
VOLSFU_API int32_t volsfu_set_quality(volsfu_session session, const volsfu_choice *choices, size_t count);

/* The viewpoint of the program, in the room's coordinates. */
typedef struct {
  uint32_t size;
  int64_t at_us; /* the time of the viewpoint by this host's clock; 0: now */
  double position[3];
  double orientation[4]; /* 0, 0, 0, 1 looks along -z with +y up */
  double fov;            /* the vertical angle of view in radians; 0: 60 degrees */
  double aspect;         /* the width of the view divided by its height; 0: 1 */
} volsfu_viewpoint;

/* Sends the viewpoint to the server, so that visible objects get the best qualities. It may be called for every drawn frame: the newest viewpoint
 * is sent at most 60 times per second. */
VOLSFU_API int32_t volsfu_set_viewpoint(volsfu_session session, const volsfu_viewpoint *viewpoint);

/* ---- sound: one channel of 48,000 samples per second, from -1 to 1, as Opus on the network ---- */

/* The description of published sound. */
typedef struct {
  uint32_t size;
  uint32_t bitrate; /* 6,000 to 510,000; 0: 64,000 */
  const char *name; /* unique among this participant's publications */
} volsfu_sound;

/* Publishes sound. volsfu_unpublish ends the publication, volsfu_set_pose sets its pose. VOLSFU_E_CODEC means that the library found no Opus: the
 * library loads libopus.so.0 (on Android libopus.so), libopus.0.dylib or opus.dll, from its own folder or from where the system has it. Waits for the
 * server. */
VOLSFU_API int32_t volsfu_publish_sound(volsfu_session session, const volsfu_sound *sound, volsfu_publisher *publisher);

/* Sends samples, at most 48,000. Packets of 20 ms leave as soon as they are complete. capture_us is the capture time of the first sample by this host's
 * clock; 0: the last sample was captured now. A gap of 200 ms or more begins a new packet. VOLSFU_E_NOT_CONNECTED means that packets were not sent. */
VOLSFU_API int32_t volsfu_write_sound(volsfu_publisher publisher, const float *samples, size_t count, int64_t capture_us);

typedef uint64_t volsfu_listener;

/* Begins to decode the sound of a publication of another participant. The publication may begin later, and again. There is at most one listener for a
 * publication, and 256 in a session. Packets of sound without a listener are counted as ignored. VOLSFU_E_CODEC is explained above. */
VOLSFU_API int32_t volsfu_listen(volsfu_session session, const char *participant, const char *publication, volsfu_listener *listener);

/* Stores the next samples to play, at most 48,000, without waiting: a sound card's callback may call it. Lost packets are concealed. The first 40 ms of
 * sound are held back against the jitter of arrival, and up to 200 ms after gaps. Samples without sound are 0; heard is set to the number of samples
 * before them, and may be NULL. After the end of the session the status is the reason of the end, and the rest of the sound is stored before the
 * zeros. With VOLSFU_E_HANDLE no sample is stored. */
VOLSFU_API int32_t volsfu_read_sound(volsfu_listener listener, float *samples, size_t count, size_t *heard);

/* Ends the decoding. The handle is closed. */
VOLSFU_API int32_t volsfu_end_listening(volsfu_listener listener);

/* ---- data messages: docs/signalling.md ---- */

/* Flags of data messages. */
enum {
  VOLSFU_LOSSY = 1, /* may be lost; of the lossy messages of one topic, only newer ones arrive. At most 1,000 bytes */
  VOLSFU_BINARY = 2 /* data is bytes, else it is a text in UTF-8 */
};

/* A data message to send. */
typedef struct {
  uint32_t size;
  uint32_t flags;        /* VOLSFU_LOSSY | VOLSFU_BINARY */
  const char *topic;     /* a name by which programs distinguish messages, or NULL */
  const char *const *to; /* the recipients */
  size_t to_count;       /* at most 64; 0: all other participants */
  const void *data;      /* not NULL unless length is 0 */
  size_t length;         /* at most 16,384 */
} volsfu_outgoing_message;

/* Sends a data message. If the message is not lossy, the call waits until the server has accepted the message, and repeats the message after an
 * interruption. VOLSFU_REFUSED_NOT_FOUND means that a recipient is not in the room; the others get the message. */
VOLSFU_API int32_t volsfu_send_message(volsfu_session session, const volsfu_outgoing_message *message);

/* A received data message. Only volsfu_release_message may modify it. */
typedef struct {
  uint32_t size;
  uint32_t flags;          /* VOLSFU_LOSSY | VOLSFU_BINARY */
  uint64_t handle;         /* 0 while the struct contains no message */
  const char *participant; /* the sender; empty for the operator of the server */
  const char *topic;
  const uint8_t *data; /* followed by a zero byte */
  size_t length;
  int64_t missed; /* the number of messages before this one that are lost although they were not lossy */
} volsfu_message;

/* Waits for the next data message, like volsfu_next_frame. Up to 1,024 messages wait; beyond that, newer ones are lost. */
VOLSFU_API int32_t volsfu_next_message(volsfu_session session, int32_t timeout_ms, volsfu_message *message);

/* Releases a message, and prepares the struct for the next message. */
VOLSFU_API int32_t volsfu_release_message(volsfu_message *message);

/* ---- events ---- */

/* The kinds of events, with the fields that are set. docs/client.md explains them. */
enum {
  VOLSFU_EVENT_CONNECTED = 1,          /* media can be sent and received */
  VOLSFU_EVENT_INTERRUPTED = 2,        /* the connection broke, and is being resumed. text: the reason */
  VOLSFU_EVENT_RESUMED = 3,            /* the session continues; volsfu_get_room returns the present state of the room */
  VOLSFU_EVENT_CLOSING = 4,            /* the server will end the session. text: the reason; delay_us: the time until then */
  VOLSFU_EVENT_PARTICIPANT_JOINED = 5, /* participant; json: with publications */
  VOLSFU_EVENT_PARTICIPANT_LEFT = 6,   /* participant; text: the reason */
  VOLSFU_EVENT_PUBLISHED = 7,          /* participant, publication; json: the publication */
  VOLSFU_EVENT_UNPUBLISHED = 8,        /* participant, publication */
  VOLSFU_EVENT_SENDING = 9,            /* a tile is now sent at another quality. participant, publication, tile, quality; text: the reason, "choice",
                                          "auto", "budget" or "unseen"; delay_us: since the server read the request, 0 without one. With
                                          VOLSFU_DESCRIPTIONS, description is the one that is now on or off */
  VOLSFU_EVENT_WANTED = 10,            /* the set of wanted tracks has changed. publication; json: {"tiles": [[qualities]…], "parity"} */
  VOLSFU_EVENT_UPLINK = 11,            /* the set of tracks that are not sent for lack of bandwidth has changed. estimate; json: {"gave_up": […]} */
  VOLSFU_EVENT_POSE = 12,              /* the pose of an object has changed. participant, publication, position, orientation, scale, priority;
                                          json: {"boxes": […]} if they have changed */
  VOLSFU_EVENT_BANDWIDTH = 13,         /* the server's estimate of this participant's link. estimate, allocated, wanted */
  VOLSFU_EVENT_REFUSED = 14,           /* a frame was not decrypted, or not encrypted. participant, publication, tile, quality; text: the reason.
                                          One event for each publication and reason; volsfu_totals counts the frames */
  VOLSFU_EVENT_ATTRIBUTES = 15,        /* attributes of a participant have changed. participant; json: all of its attributes */
  VOLSFU_EVENT_METADATA = 16,          /* the metadata of the room has changed. json: all of it */
  VOLSFU_EVENT_MUTED = 17,             /* the muting of a publication has changed. participant, publication; json: {"own", "operator"} */
  VOLSFU_EVENT_PERMISSIONS = 18,       /* an operator has changed the permissions of this participant. json: the permissions */
  VOLSFU_EVENT_RECORDING = 19,         /* the recording of the room begins or ends. json: {"active"} */
  VOLSFU_EVENT_MOVED = 20,             /* the session continues on another server, without an interruption. text: the address */
  VOLSFU_EVENT_AUDIENCE = 21           /* the number of participants that are not announced has changed. json: {"count"} */
};

/* An event. Fields that a kind does not set are empty, 0, or -1 for tile, quality and description. Texts are never NULL. */
typedef struct {
  uint32_t size;
  uint32_t kind;
  uint64_t handle; /* 0 while the struct contains no event */
  const char *participant;
  const char *publication;
  const char *text;
  const char *json;
  int32_t tile;
  int32_t quality;
  int32_t description;
  int64_t delay_us;
  int64_t estimate;  /* the capacity of the link, or of the uplink */
  int64_t allocated; /* the rate that the server has decided to send */
  int64_t wanted;    /* the rate that the server would send without a limit of the link */
  double position[3];
  double orientation[4];
  double scale;
  double priority;
} volsfu_event;

/* Waits for the next event, like volsfu_next_frame. Up to 1,024 events wait, and as many may be held. Calling it is optional. */
VOLSFU_API int32_t volsfu_next_event(volsfu_session session, int32_t timeout_ms, volsfu_event *event);

/* Releases an event, and prepares the struct for the next event. */
VOLSFU_API int32_t volsfu_release_event(volsfu_event *event);

/* ---- codecs ---- */

/* Points in arrays of the program. */
typedef struct {
  uint32_t size;
  uint32_t color_bytes; /* the bytes of a colour: 3 for red, green and blue, 4 with an alpha, which volsfu_decode sets to 255; 0: 3 */
  float *positions;     /* three per point: x, y, z */
  uint8_t *colors;      /* NULL to encode without colours, or to decode no colours */
  size_t capacity;      /* the number of points that the arrays have room for; only volsfu_decode reads it */
  size_t count;         /* the number of points, at most 67,108,864 */
} volsfu_points;

/* Parameters of an encoder. docs/codec.md describes the codecs. */
typedef struct {
  uint32_t size;
  char codec[4];          /* the codec, such as "zstd" */
  uint32_t position_bits; /* the bits per coordinate, 1 to 30; 0: 11. The longest edge of box is divided into 2^bits - 1 steps */
  uint32_t speed;         /* 1 (the smallest frames) to 10 (the fastest encoder); 0: 10 */
  uint32_t color_quality; /* the quality of lossy colours, 1 to 100; 0: 85 */
  volsfu_box box;         /* encloses the points. All tiles and qualities of an object share one box */
} volsfu_encoding;

/* Writes the codecs of this library as JSON, like volsfu_get_room: {"codecs": [{"name", "fourcc", "encodes", "max_points"}]}. */
VOLSFU_API int32_t volsfu_get_codecs(char *buffer, size_t capacity, size_t *length);

/* Encodes points as one frame. length is set to the bytes of the frame, also with VOLSFU_E_BUFFER, when nothing else is written; 0 for no points.
 * The memory of the encoder is kept for the next call; calls of several threads run concurrently. */
VOLSFU_API int32_t volsfu_encode(const volsfu_encoding *encoding, const volsfu_points *points, void *buffer, size_t capacity, size_t *length);

/* Decodes a frame to points. codec has four characters, as in volsfu_frame. points->count is set to the number of points, also with
 * VOLSFU_E_BUFFER, when nothing else is written. The memory of the decoder is kept for the next call; calls of several threads run concurrently. */
VOLSFU_API int32_t volsfu_decode(const char *codec, const void *data, size_t length, volsfu_points *points);

/* The raster of a frame of "rgbd": a rectangle of a depth camera's image, row by row, for programs that draw the surface between the pixels, or each
 * point as large as its pixel. The program sets the arrays, any of which may be NULL; volsfu_decode_raster sets everything below capacity.
 *
 * The image is reduced by 2^reduction in both directions. Pixel (column, row) of the raster is the centre of a square of the camera's pixels, whose
 * first pixel is at ((left + column) * 2^reduction, (top + row) * 2^reduction). The point of a pixel with the depth d and the ray (x, y) is
 * rotation * (x * d, -y * d, -d) + position in the object's coordinates, and its pixel is d * 2^reduction / focal[0] metres wide. */
typedef struct {
  uint32_t size;
  uint32_t color_bytes; /* as in volsfu_points */
  float *depths;        /* metres along the axis of the camera; 0: no point */
  uint8_t *colors;      /* of the same pixels; those of pixels without a point have no meaning */
  float *rays;          /* two per pixel: where its ray crosses the plane at depth 1, x right, y down; not a number if there is no ray */
  size_t capacity;      /* the number of pixels that the arrays have room for */
  size_t count;         /* the number of pixels: width * height, 0 for a frame without points */
  uint32_t camera;      /* the number of the camera within the publication */
  uint32_t reduction;   /* 0, 1 or 2 */
  uint32_t left, top, width, height;    /* the rectangle in the reduced image */
  uint32_t camera_width, camera_height; /* the image of the camera in pixels */
  uint32_t distortion;                  /* the model of the lens, as docs/codec.md numbers it; 0: none. rays has its effect */
  double focal[2], centre[2];           /* focal lengths and principal point in pixels of the camera's image */
  double coefficients[8];               /* of the model */
  double position[3];
  double rotation[9]; /* row by row */
} volsfu_raster;

/* Decodes a frame of a depth camera to its raster. raster->count, width and height are set also with VOLSFU_E_BUFFER, when nothing else is written.
 * VOLSFU_E_ARGUMENT means that frames of this codec have no raster. */
VOLSFU_API int32_t volsfu_decode_raster(const char *codec, const void *data, size_t length, volsfu_raster *raster);

/* ---- statistics ---- */

/* The received packets of one network interface. */
typedef struct {
  uint64_t packets_first;    /* that no other interface had delivered before */
  uint64_t packets_repeated; /* that another interface had delivered */
  uint64_t packets_only;     /* of packets_first, those that no other interface has delivered, or not yet */
} volsfu_path;

/* Counts since the start of the session, of frames of one tile at one quality each. */
typedef struct {
  uint32_t size;

  /* Received. frames_complete is frames_queued + frames_taken + frames_dropped. */
  uint64_t frames_complete;
  uint64_t frames_queued;      /* waiting for volsfu_next_frame */
  uint64_t frames_taken;       /* returned by volsfu_next_frame */
  uint64_t frames_held;        /* of these, not yet released */
  uint64_t frames_dropped;     /* the oldest waiting frames, dropped beyond the limits */
  uint64_t frames_undecodable; /* received partly, and incomplete at the deadline */
  uint64_t frames_missing;     /* not received at all */
  uint64_t frames_dropped_by_server;
  uint64_t packets;
  uint64_t packets_lost;      /* missing when due */
  uint64_t packets_recovered; /* of these, received later */
  uint64_t bytes;             /* of the packets' payloads */
  uint64_t packets_ignored;   /* of sound without a listener, and of other codecs that this library does not return */

  /* Published. */
  uint64_t frames_written;  /* volsfu_write_frame returned VOLSFU_OK */
  uint64_t frames_paused;   /* of these, not sent because there were no receivers */
  uint64_t frames_given_up; /* of these, not sent because the uplink is too slow */
  uint64_t frames_left_out; /* of these, not sent after waiting too long for the uplink */
  int64_t uplink_estimate;  /* the capacity of the uplink; 0 until the first report of the server */
  int64_t round_trip_us;
  double uplink_loss; /* the share of packets lost over the last seconds */

  uint64_t events_dropped; /* the oldest waiting events, dropped beyond the limit */

  /* Sent and received on two interfaces; zeros unless a packet has arrived, or was sent, on the second one. */
  volsfu_path paths[2];     /* in the order of volsfu_config.interfaces */
  uint64_t packets_copied;  /* sent packets that left on the second interface, too */
  uint64_t outages;         /* failures of the first interface, as the server's reports have shown them */

  uint64_t frames_refused; /* received completely, and not decrypted */
} volsfu_totals;

/* Stores the counts of a session. */
VOLSFU_API int32_t volsfu_get_totals(volsfu_session session, volsfu_totals *totals);

/* Writes the same as JSON, with the counts of each received tile and the tracks given up, like volsfu_get_room: {"totals": {…}, "tiles":
 * [{"participant", "publication", "tile", "quality", …}], "gave_up": [{"publication", "tile", "quality"}]}. quality is -1 except with
 * VOLSFU_DESCRIPTIONS. */
VOLSFU_API int32_t volsfu_get_statistics(volsfu_session session, char *buffer, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
