/*
 * volsfu.h: take part in volumetric video conferences from C, and from whatever can call C.
 *
 * A session is one participant's presence in a room. It publishes objects, each cut into tiles at several qualities, and receives those of the
 * others, frame by frame. The library knows frames as bytes: encoding, decoding and showing them is the program's.
 *
 * Rules that hold everywhere
 *
 * - Every function may be called from any thread at any time, also several at once on one session. Functions that wait for the server or for
 *   something to arrive say so; all others return at once.
 * - Functions return VOLSFU_OK (0), in volsfu_wanted 1, or a negative status. volsfu_status_text says in words what a status means, and
 *   volsfu_last_message what exactly was wrong with this thread's last call that failed. What a function is to fill in is left alone when it fails,
 *   unless it says otherwise.
 * - Structs that begin with size are made ready by VOLSFU_INIT: zero, which is a sensible default everywhere, and their size. The size tells a
 *   library from a header that does not belong to it (VOLSFU_E_SIZE).
 * - Handles are numbers that are never used twice, so one that is closed or released is recognised (VOLSFU_E_HANDLE). 0 is never one.
 * - Texts are UTF-8 and end with a zero byte. What is passed in is copied, and may be freed when the function has returned.
 * - What the library hands out is the library's, and stays as it is until the program releases it, also after the session is closed. Whatever
 *   waits is bounded; the oldest is dropped then, and counted (volsfu_get_totals).
 * - Times are microseconds of UTC since 1970, rates are bits per second, lengths are metres. Coordinates are right-handed: x right, y up, z
 *   towards the viewer. Orientations are unit quaternions x, y, z, w; four zeros count as 0, 0, 0, 1.
 * - What cannot be detected is a pointer that is not NULL and does not point to what the header says.
 * - The library stays loaded until the process ends, and does not survive fork() without exec().
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

/* The version of this header. It changes when a program has to be compiled anew; volsfu_api_version tells the library's. */
#define VOLSFU_API_VERSION 1

/* Makes a struct that begins with size ready for use. It takes the struct itself, not a pointer to it. */
#define VOLSFU_INIT(object) ((void)(memset(&(object), 0, sizeof(object)), (object).size = (uint32_t)sizeof(object)))

/* What functions return. */
enum {
  VOLSFU_OK = 0,

  /* The call is wrong. */
  VOLSFU_E_NULL = -1,          /* a pointer is NULL that must not be */
  VOLSFU_E_SIZE = -2,          /* a struct was not made ready by VOLSFU_INIT, or its header is of another version than the library */
  VOLSFU_E_HANDLE = -3,        /* no such session, publisher, frame or event, or it is closed or released already */
  VOLSFU_E_ARGUMENT = -4,      /* a value that must not be, such as a tile below 0 or a text that is too long */
  VOLSFU_E_TOO_LARGE = -5,     /* a frame of more bytes than can be sent */
  VOLSFU_E_ORDER = -6,         /* the frame's number is not above the last one of its tile and quality */
  VOLSFU_E_HELD = -7,          /* the struct still holds a frame or an event that was not released */
  VOLSFU_E_TOO_MUCH_HELD = -8, /* the program holds as much as may wait: it must release something first */
  VOLSFU_E_BUFFER = -9,        /* the buffer is too small for the text */
  VOLSFU_E_NOT_PUBLISHED = -10, /* the publication has no such tile or quality */

  /* The call is right, but it cannot be done, or not now. */
  VOLSFU_E_TIMEOUT = -20,       /* nothing came within the time, or the server did not answer in time */
  VOLSFU_E_CLOSED = -21,        /* the session was closed meanwhile */
  VOLSFU_E_LOST = -22,          /* the session has ended, and could not be resumed: connect anew */
  VOLSFU_E_NOT_CONNECTED = -23, /* media does not flow yet, or not just now; the frame was not sent */
  VOLSFU_E_INTERRUPTED = -24,   /* the connection broke before the answer; the server may have done what was asked */
  VOLSFU_E_UNREACHABLE = -25,   /* there is no server at this address */
  VOLSFU_E_MEMORY = -30,        /* out of memory */
  VOLSFU_E_INTERNAL = -31,      /* a defect of this library; volsfu_last_message helps to find it */

  /* The server refuses. docs/signalling.md explains the codes that these stand for. */
  VOLSFU_REFUSED = -100, /* with a code that this library does not know; volsfu_last_message names it */
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
  VOLSFU_REFUSED_KICKED = -123, /* an operator removed the participant, who is not to come back by itself */
  VOLSFU_REFUSED_CLOSED = -124, /* an operator closed the room */
  VOLSFU_REFUSED_REVOKED = -125 /* an operator revoked the token */
};

/* Says in English what a status means. The text is constant; numbers that are no status have one, too. */
VOLSFU_API const char *volsfu_status_text(int32_t status);

/* Says what was wrong with this thread's last call that failed, with the names it was about; empty if none has. It is valid until the thread's next
 * call that fails. */
VOLSFU_API const char *volsfu_last_message(void);

/* The library's VOLSFU_API_VERSION. */
VOLSFU_API uint32_t volsfu_api_version(void);

/* ---- sessions ---- */

typedef uint64_t volsfu_session;

/* Flags of a configuration. */
enum {
  VOLSFU_RECEIVE = 1, /* receive what others publish */
  VOLSFU_TCP = 2      /* send and receive media over TCP, for networks that let no UDP out */
};

/* Where to go, as whom, and what for. */
typedef struct {
  uint32_t size;
  uint32_t flags;         /* VOLSFU_RECEIVE | VOLSFU_TCP */
  const char *url;        /* the server's address, as ws://host:port or wss://host:port */
  const char *room;       /* NULL where the token names it */
  const char *identity;   /* this participant's name in the room; NULL where the token names it */
  const char *token;      /* the access token; NULL for servers that need none */
  int64_t max_bitrate;    /* what is to be received at most; 0: no limit */
  int64_t start_bitrate;  /* what the downlink is believed to carry until the server has measured it; 0: the server's own start rate */
  int64_t max_uplink;     /* what is sent at most; 0: 1 Gbit/s */
  int64_t min_uplink;     /* what the uplink is known to carry: no less is sent for want of bandwidth; 0: 500 kbit/s */
  uint32_t deadline_ms;   /* how long after its first packet a frame is repaired; 0: 150, or 250 where the round trip exceeds 50 ms */
  uint32_t frame_bytes;   /* the largest frame to be received; 0: 16 MiB */
  uint32_t queue_frames;  /* how many frames wait for volsfu_next_frame at most, and how many the program holds; 0: 256 */
  uint32_t request_ms;    /* how long the server may take to answer; 0: 10,000 */
  uint64_t queue_bytes;   /* how many bytes of frames wait at most, and how many the program holds, but at least one frame each; 0: 64 MiB */
} volsfu_config;

/* Enters a room. It waits until the server has taken the participant in. Media flows from the event VOLSFU_EVENT_CONNECTED on. */
VOLSFU_API int32_t volsfu_connect(const volsfu_config *config, volsfu_session *session);

/* Leaves the room, and ends the session's publishers. It waits for the server for 2 seconds at most. Other threads that wait for something of this
 * session get VOLSFU_E_CLOSED. Frames and events that the program holds stay valid. A session that has ended by itself has to be closed, too. */
VOLSFU_API int32_t volsfu_close(volsfu_session session);

/* Bounds what this participant is sent: at most so much, and what its link is known to carry, below which the server's estimate does not fall. 0 is
 * no limit. It waits for the server. */
VOLSFU_API int32_t volsfu_set_limits(volsfu_session session, int64_t max_bitrate, int64_t min_bitrate);

/* Turns a time of this host into the server's clock, in which frames are stamped. local_us 0 is now. */
VOLSFU_API int32_t volsfu_server_time(volsfu_session session, int64_t local_us, int64_t *server_us);

/* Writes who is in the room and what they publish as JSON: {"room", "identity", "participants": [{"identity", "publications": […]}]}, with
 * publications as in docs/signalling.md. length becomes that of the text without its zero byte, also with VOLSFU_E_BUFFER, when nothing is
 * written: a call with NULL and 0 asks for it. length may be NULL. */
VOLSFU_API int32_t volsfu_get_room(volsfu_session session, char *buffer, size_t capacity, size_t *length);

/* ---- publishing ---- */

typedef uint64_t volsfu_publisher;

/* How many qualities of one tile a receiver is sent. */
enum {
  VOLSFU_ALTERNATIVES = 0, /* one at most */
  VOLSFU_DESCRIPTIONS = 1  /* any of them: they complement each other */
};

/* Flags of a publication. */
enum {
  VOLSFU_VR2GATHER = 1 /* VR2Gather's clients receive it, too: the library puts VR2Gather's header, with codec and capture time, before each frame.
                          They read the codecs "cwi0" and "cwi1", and alternatives only */
};

typedef struct {
  float min[3];
  float max[3];
} volsfu_box;

/* One part of an object. */
typedef struct {
  const char *label; /* what it is called, or NULL */
  volsfu_box box;    /* where it is, in the object's own coordinates */
} volsfu_tile;

/* One quality, the same for all tiles. */
typedef struct {
  const char *name; /* what it is called, or NULL */
  int64_t bitrate;  /* the nominal rate of one tile at this quality; 0 where unknown */
} volsfu_quality;

/* An object that is published. */
typedef struct {
  uint32_t size;
  uint32_t flags;                  /* VOLSFU_VR2GATHER */
  uint32_t mode;                   /* VOLSFU_ALTERNATIVES or VOLSFU_DESCRIPTIONS */
  const char *name;                /* unique among this participant's */
  const char *format;              /* parameters of the codec for receivers to read, such as "codec=drco", or NULL */
  double frame_rate;               /* the nominal number of frames per second; 0 where unknown */
  const volsfu_tile *tiles;
  const volsfu_quality *qualities; /* ascending */
  uint32_t tile_count;             /* 1 to 256 */
  uint32_t quality_count;          /* 1 to 64 */
} volsfu_publication;

/* Publishes an object. It waits for the server. */
VOLSFU_API int32_t volsfu_publish(volsfu_session session, const volsfu_publication *publication, volsfu_publisher *publisher);

/* Ends a publication. The publisher's handle is closed in any case. It waits for the server. */
VOLSFU_API int32_t volsfu_unpublish(volsfu_publisher publisher);

/* One encoded tile at one quality. */
typedef struct {
  uint32_t size;
  uint32_t number;    /* counts what was captured: the same for all tiles and qualities of one instant, and one more for the next */
  char codec[4];      /* what data is encoded with, such as "drco" */
  int64_t capture_us; /* when it was captured, by this host's clock, the same for all frames of one number: the first one counts. 0: when that was written */
  const void *data;   /* may be NULL where length is 0 */
  size_t length;      /* 0 for a tile without points, which is written as well */
} volsfu_outgoing_frame;

/* Sends one frame, spread over part of the frame interval, which it does not wait for. Data is copied. A frame that nobody takes, or that the uplink
 * does not carry, is counted and not sent. VOLSFU_E_NOT_CONNECTED says that there is no connection yet, or not just now: drop the frame, and go
 * on. Tiles may be written by several threads, frames of one tile at one quality in the order of their numbers; numbers may wrap around. */
VOLSFU_API int32_t volsfu_write_frame(volsfu_publisher publisher, int32_t tile, int32_t quality, const volsfu_outgoing_frame *frame);

/* Tells whether a tile is to be encoded at a quality: 1 if somebody takes it and the uplink carries it, else 0. It is to be asked for each frame. */
VOLSFU_API int32_t volsfu_wanted(volsfu_publisher publisher, int32_t tile, int32_t quality);

/* Where an object stands in the room: a point of its boxes is scaled, turned and moved, in this order. */
typedef struct {
  uint32_t size;
  uint32_t box_count; /* the number of the publication's tiles, or 0, which leaves the last boxes */
  double position[3];
  double orientation[4];
  double scale;    /* 0 counts as 1 */
  double priority; /* what the object is worth beside others of the same size in sight, 0.01 to 100; 0 counts as 1 */
  const volsfu_box *boxes;
} volsfu_pose;

/* Tells the others where the object stands. The newest pose is sent at most 60 times per second. */
VOLSFU_API int32_t volsfu_set_pose(volsfu_publisher publisher, const volsfu_pose *pose);

/* ---- receiving ---- */

/* Timeouts are milliseconds: 0 does not wait, VOLSFU_FOREVER waits until something comes or the session ends. */
#define VOLSFU_FOREVER (-1)

/* One complete frame of a tile, as it was published. Nothing of it may be written to but through volsfu_release_frame. */
typedef struct {
  uint32_t size;
  char codec[4];           /* what data is encoded with; zeros where the publisher does not say */
  uint64_t handle;         /* 0 while the struct holds no frame */
  const char *participant; /* who publishes it */
  const char *publication;
  int32_t tile;
  int32_t quality;
  int64_t number;      /* counts what was captured; it does not wrap around */
  int64_t capture_us;  /* by the server's clock; 0 where the publisher does not say */
  int64_t first_us;    /* when the first packet came, by the server's clock */
  int64_t complete_us; /* when the last packet came that was needed */
  const uint8_t *data;
  size_t length; /* 0 for a tile without points */
} volsfu_frame;

/* Waits for the next complete frame. It is the library's until volsfu_release_frame. VOLSFU_E_TIMEOUT says that none came, VOLSFU_E_HELD that the
 * struct holds one already, VOLSFU_E_TOO_MUCH_HELD that the program holds as much as may wait. Frames that are left when the session ends come
 * before the status that says why it has ended. */
VOLSFU_API int32_t volsfu_next_frame(volsfu_session session, int32_t timeout_ms, volsfu_frame *frame);

/* Gives a frame back, and makes its struct ready for the next. */
VOLSFU_API int32_t volsfu_release_frame(volsfu_frame *frame);

/* Qualities of a choice beside 0 to 63. */
enum {
  VOLSFU_OFF = -1,  /* nothing */
  VOLSFU_AUTO = -2, /* what the server finds best, by viewpoint and bandwidth */
  VOLSFU_SET = -3   /* those of which the bit is set in qualities, for VOLSFU_DESCRIPTIONS */
};

/* The tile of a choice that is about all of them. */
#define VOLSFU_ALL_TILES (-1)

/* What a receiver wants of a publication. */
typedef struct {
  const char *participant;
  const char *publication;
  int32_t tile;       /* or VOLSFU_ALL_TILES */
  int32_t quality;    /* 0 to 63, VOLSFU_OFF, VOLSFU_AUTO or VOLSFU_SET */
  uint64_t qualities; /* bit 0 is quality 0; read with VOLSFU_SET only */
} volsfu_choice;

/* Says what this participant wants to be sent, without which everything is VOLSFU_AUTO. The server takes all choices or none; later ones replace earlier
 * ones for the same tiles. They may come before the publication does. It waits for the server. The event VOLSFU_EVENT_SENDING says when it happens. */
VOLSFU_API int32_t volsfu_set_quality(volsfu_session session, const volsfu_choice *choices, size_t count);

/* Where the program looks from and what it sees, in the room's coordinates. */
typedef struct {
  uint32_t size;
  int64_t at_us; /* when the eye was there, by this host's clock; 0: now */
  double position[3];
  double orientation[4]; /* 0, 0, 0, 1 looks along -z with +y up */
  double fov;            /* the vertical angle of what is seen, in radians; 0: 60 degrees */
  double aspect;         /* width over height of what is seen; 0: 1 */
} volsfu_viewpoint;

/* Tells the server where the program looks from, so that what it sees is sent best. It may be called for every frame that is drawn: the newest
 * viewpoint is sent at most 60 times per second. */
VOLSFU_API int32_t volsfu_set_viewpoint(volsfu_session session, const volsfu_viewpoint *viewpoint);

/* ---- events ---- */

/* The kinds of event, with what is filled in. docs/client.md explains them. */
enum {
  VOLSFU_EVENT_CONNECTED = 1,          /* media flows */
  VOLSFU_EVENT_INTERRUPTED = 2,        /* the connection broke, and is being resumed. text: why */
  VOLSFU_EVENT_RESUMED = 3,            /* the session goes on; volsfu_get_room says what others did meanwhile */
  VOLSFU_EVENT_CLOSING = 4,            /* the server will end the session. text: why; delay_us: when */
  VOLSFU_EVENT_PARTICIPANT_JOINED = 5, /* participant; json: with publications */
  VOLSFU_EVENT_PARTICIPANT_LEFT = 6,   /* participant; text: why */
  VOLSFU_EVENT_PUBLISHED = 7,          /* participant, publication; json: the publication */
  VOLSFU_EVENT_UNPUBLISHED = 8,        /* participant, publication */
  VOLSFU_EVENT_SENDING = 9,            /* a tile is sent at another quality now. participant, publication, tile, quality; text: the reason, "choice",
                                          "auto", "budget" or "unseen"; delay_us: since the server read the request, 0 without one. With
                                          VOLSFU_DESCRIPTIONS description names which one is on or off */
  VOLSFU_EVENT_WANTED = 10,            /* other tracks than before are wanted. publication; json: {"tiles": [[qualities]…], "parity"} */
  VOLSFU_EVENT_UPLINK = 11,            /* other tracks than before are not sent for want of bandwidth. estimate; json: {"gave_up": […]} */
  VOLSFU_EVENT_POSE = 12,              /* somebody's object stands elsewhere. participant, publication, position, orientation, scale, priority;
                                          json: {"boxes": […]} where they have changed */
  VOLSFU_EVENT_BANDWIDTH = 13          /* what the server thinks of this participant's link. estimate, allocated, wanted */
};

/* Something that happened. What a kind does not fill in is empty, 0, or -1 for tile, quality and description. Texts are never NULL. */
typedef struct {
  uint32_t size;
  uint32_t kind;
  uint64_t handle; /* 0 while the struct holds no event */
  const char *participant;
  const char *publication;
  const char *text;
  const char *json;
  int32_t tile;
  int32_t quality;
  int32_t description;
  int64_t delay_us;
  int64_t estimate;  /* what the link carries, or the uplink */
  int64_t allocated; /* the rate of what the server has decided to send */
  int64_t wanted;    /* the rate of what it would send if the link carried anything */
  double position[3];
  double orientation[4];
  double scale;
  double priority;
} volsfu_event;

/* Waits for the next event, like volsfu_next_frame. Up to 1,024 events wait, and as many may be held. A program that does not care need not call it. */
VOLSFU_API int32_t volsfu_next_event(volsfu_session session, int32_t timeout_ms, volsfu_event *event);

/* Gives an event back, and makes its struct ready for the next. */
VOLSFU_API int32_t volsfu_release_event(volsfu_event *event);

/* ---- statistics ---- */

/* Counts since the session began, of frames of one tile at one quality each. */
typedef struct {
  uint32_t size;

  /* Received. frames_complete is frames_queued + frames_taken + frames_dropped. */
  uint64_t frames_complete;
  uint64_t frames_queued;      /* wait for volsfu_next_frame now */
  uint64_t frames_taken;       /* handed out by volsfu_next_frame */
  uint64_t frames_held;        /* of these, not released yet */
  uint64_t frames_dropped;     /* the oldest that waited, as too much did */
  uint64_t frames_undecodable; /* came in part, and were not complete by the deadline */
  uint64_t frames_missing;     /* did not come at all */
  uint64_t frames_dropped_by_server;
  uint64_t packets;
  uint64_t packets_lost;      /* did not come when they were due */
  uint64_t packets_recovered; /* of these, came later */
  uint64_t bytes;             /* of the packets' payloads */
  uint64_t packets_ignored;   /* of sound and other codecs, which this library does not hand out */

  /* Published. */
  uint64_t frames_written;  /* given to volsfu_write_frame, which returned VOLSFU_OK */
  uint64_t frames_paused;   /* of these, not sent since nobody took them */
  uint64_t frames_given_up; /* of these, not sent since the uplink does not carry them */
  uint64_t frames_left_out; /* of these, not sent since they waited too long for the uplink */
  int64_t uplink_estimate;  /* what the uplink carries; 0 as long as the server has not reported */
  int64_t round_trip_us;
  double uplink_loss; /* the share of packets that were lost over the last seconds */

  uint64_t events_dropped; /* the oldest that waited, as too many did */
} volsfu_totals;

/* Fills in the counts of a session. */
VOLSFU_API int32_t volsfu_get_totals(volsfu_session session, volsfu_totals *totals);

/* Writes the same as JSON, with the counts of each received tile and what the uplink gave up, like volsfu_get_room: {"totals": {…}, "tiles":
 * [{"participant", "publication", "tile", "quality", …}], "gave_up": [{"publication", "tile", "quality"}]}. quality is -1 but with
 * VOLSFU_DESCRIPTIONS. */
VOLSFU_API int32_t volsfu_get_statistics(volsfu_session session, char *buffer, size_t capacity, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
