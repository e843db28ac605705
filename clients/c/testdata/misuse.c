// All mistakes of programs that the library can detect, with the expected status.
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "volsfu.h"

static atomic_int failures;

static void expect(int line, const char *call, int32_t got, int32_t want) {
  if (got == want) return;
  atomic_fetch_add(&failures, 1);
  printf("line %d: %s: %d (%s: %s), expected %d (%s)\n", line, call, got, volsfu_status_text(got), volsfu_last_message(), want, volsfu_status_text(want));
}

#define EXPECT(want, call) expect(__LINE__, #call, (call), (want))
#define CHECK(condition) expect(__LINE__, #condition, (condition) ? VOLSFU_OK : VOLSFU_E_INTERNAL, VOLSFU_OK)

static const char *url;
static const volsfu_tile tile = {"tile", {{0, 0, 0}, {1, 1, 1}}};
static const volsfu_quality quality = {"quality", 0};

static volsfu_config config_of(const char *identity) {
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = url;
  config.room = "misuse";
  config.identity = identity;
  config.flags = VOLSFU_RECEIVE;
  return config;
}

static volsfu_publication publication_of(const char *name) {
  volsfu_publication publication;
  VOLSFU_INIT(publication);
  publication.name = name;
  publication.tiles = &tile;
  publication.tile_count = 1;
  publication.qualities = &quality;
  publication.quality_count = 1;
  return publication;
}

static void connecting(void) {
  volsfu_session session = 77;
  volsfu_config config = config_of("mallory");
  EXPECT(VOLSFU_E_NULL, volsfu_connect(NULL, &session));
  EXPECT(VOLSFU_E_NULL, volsfu_connect(&config, NULL));
  CHECK(strstr(volsfu_last_message(), "session") != NULL);
  config.size = 0;
  EXPECT(VOLSFU_E_SIZE, volsfu_connect(&config, &session));
  config.size = sizeof config + 8;
  EXPECT(VOLSFU_E_SIZE, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.url = NULL;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config.url = "http://example.org";
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config.url = "ws://127.0.0.1:1";
  EXPECT(VOLSFU_E_UNREACHABLE, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.flags = 1u << 30;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.interfaces = "none0";
  EXPECT(VOLSFU_E_INTERFACE, volsfu_connect(&config, &session));
  CHECK(strstr(volsfu_last_message(), "none0") != NULL);
  config.interfaces = "eth0,eth1,eth2";
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config.interfaces = "eth0,eth1";
  config.flags = VOLSFU_TCP;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.redundancy = VOLSFU_REDUNDANCY_ALL;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config.redundancy = VOLSFU_REDUNDANCY_ALL + 1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.queue_bytes = UINT64_MAX;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.ca_file = "/nonexistent";
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  CHECK(strstr(volsfu_last_message(), "/nonexistent") != NULL);
  config = config_of("mallory");
  config.max_bitrate = -1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.start_bitrate = -1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  config = config_of("mallory");
  config.passphrase = "correct horse";
  EXPECT(VOLSFU_OK, volsfu_connect(&config, &session));
  EXPECT(VOLSFU_OK, volsfu_set_key(session, UINT16_MAX, "bob", "sixteen bytes...", 16));
  EXPECT(VOLSFU_E_KEY, volsfu_set_key(session, 1, NULL, "fifteen bytes..", 15));
  EXPECT(VOLSFU_E_KEY, volsfu_use_epoch(session, 1));
  EXPECT(VOLSFU_E_NULL, volsfu_set_key(session, 1, NULL, NULL, 16));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_key(session, UINT16_MAX + 1, NULL, "sixteen bytes...", 16));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_key(session, 1, NULL, "sixteen bytes...", SIZE_MAX));
  EXPECT(VOLSFU_OK, volsfu_forget_epoch(session, 77));
  EXPECT(VOLSFU_OK, volsfu_close(session));
  session = 77;
  char *endless = malloc(5000);
  memset(endless, 'x', 5000);  // without an end
  config = config_of(endless);
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
  free(endless);
  config = config_of("a\nb");
  EXPECT(VOLSFU_REFUSED_INVALID, volsfu_connect(&config, &session));
  CHECK(session == 77);
}

static void handles(volsfu_session session, volsfu_publisher publisher) {
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  volsfu_event event;
  VOLSFU_INIT(event);
  volsfu_totals totals;
  VOLSFU_INIT(totals);
  volsfu_viewpoint viewpoint;
  VOLSFU_INIT(viewpoint);
  volsfu_pose pose;
  VOLSFU_INIT(pose);
  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  volsfu_publication publication = publication_of("handles");
  volsfu_publisher published = 0;
  int64_t us = 0;
  volsfu_sound sound;
  VOLSFU_INIT(sound);
  volsfu_listener listener = 0;
  float samples[2];
  volsfu_outgoing_message said;
  VOLSFU_INIT(said);
  volsfu_message message;
  VOLSFU_INIT(message);
  size_t length = 0;
  // Zero, a number never issued, a handle of another kind, and all ones.
  const uint64_t wrong[] = {0, session + 1000000, publisher, UINT64_MAX};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    EXPECT(VOLSFU_E_HANDLE, volsfu_close(wrong[i]));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_limits(wrong[i], 0, 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_server_time(wrong[i], 0, &us));
    EXPECT(VOLSFU_E_HANDLE, volsfu_get_room(wrong[i], NULL, 0, &length));
    EXPECT(VOLSFU_E_HANDLE, volsfu_publish(wrong[i], &publication, &published));
    EXPECT(VOLSFU_E_HANDLE, volsfu_next_frame(wrong[i], 0, &frame));
    EXPECT(VOLSFU_E_HANDLE, volsfu_next_event(wrong[i], 0, &event));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_quality(wrong[i], NULL, 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_viewpoint(wrong[i], &viewpoint));
    EXPECT(VOLSFU_E_HANDLE, volsfu_get_totals(wrong[i], &totals));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_key(wrong[i], 0, NULL, "sixteen bytes...", 16));
    EXPECT(VOLSFU_E_HANDLE, volsfu_use_epoch(wrong[i], 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_forget_epoch(wrong[i], 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_get_statistics(wrong[i], NULL, 0, &length));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_attributes(wrong[i], NULL, "{}"));
    EXPECT(VOLSFU_E_HANDLE, volsfu_publish_sound(wrong[i], &sound, &published));
    EXPECT(VOLSFU_E_HANDLE, volsfu_listen(wrong[i], "a", "b", &listener));
    EXPECT(VOLSFU_E_HANDLE, volsfu_send_message(wrong[i], &said));
    EXPECT(VOLSFU_E_HANDLE, volsfu_next_message(wrong[i], 0, &message));
    EXPECT(VOLSFU_E_HANDLE, volsfu_read_sound(wrong[i], samples, 2, &length));
    EXPECT(VOLSFU_E_HANDLE, volsfu_end_listening(wrong[i]));
    message.handle = wrong[i];
    EXPECT(VOLSFU_E_HANDLE, volsfu_release_message(&message));
    message.handle = 0;
    const volsfu_publisher other = wrong[i] == publisher ? session : wrong[i];
    EXPECT(VOLSFU_E_HANDLE, volsfu_unpublish(other));
    EXPECT(VOLSFU_E_HANDLE, volsfu_write_frame(other, 0, 0, &outgoing));
    EXPECT(VOLSFU_E_HANDLE, volsfu_write_sound(other, samples, 2, 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_wanted(other, 0, 0));
    EXPECT(VOLSFU_E_HANDLE, volsfu_set_pose(other, &pose));
    frame.handle = wrong[i];
    EXPECT(VOLSFU_E_HANDLE, volsfu_release_frame(&frame));
    frame.handle = 0;
    event.handle = wrong[i];
    EXPECT(VOLSFU_E_HANDLE, volsfu_release_event(&event));
    event.handle = 0;
  }
}

static void pointers(volsfu_session session, volsfu_publisher publisher) {
  volsfu_publication publication = publication_of("pointers");
  volsfu_publisher published = 0;
  EXPECT(VOLSFU_E_NULL, volsfu_publish(session, NULL, &published));
  EXPECT(VOLSFU_E_NULL, volsfu_publish(session, &publication, NULL));
  publication.tiles = NULL;
  EXPECT(VOLSFU_E_NULL, volsfu_publish(session, &publication, &published));
  EXPECT(VOLSFU_E_NULL, volsfu_write_frame(publisher, 0, 0, NULL));
  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  outgoing.length = 1;
  EXPECT(VOLSFU_E_NULL, volsfu_write_frame(publisher, 0, 0, &outgoing));
  EXPECT(VOLSFU_E_NULL, volsfu_set_pose(publisher, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_next_frame(session, 0, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_release_frame(NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_next_event(session, 0, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_release_event(NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_set_quality(session, NULL, 1));
  EXPECT(VOLSFU_E_NULL, volsfu_set_viewpoint(session, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_server_time(session, 0, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_get_totals(session, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_get_room(session, NULL, 10, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_set_attributes(session, NULL, NULL));
  volsfu_outgoing_message message;
  VOLSFU_INIT(message);
  EXPECT(VOLSFU_E_NULL, volsfu_send_message(session, NULL));
  message.length = 1;
  EXPECT(VOLSFU_E_NULL, volsfu_send_message(session, &message));
  message.length = 0;
  message.to_count = 1;
  EXPECT(VOLSFU_E_NULL, volsfu_send_message(session, &message));
  const char *const none = NULL;
  message.to = &none;
  EXPECT(VOLSFU_E_NULL, volsfu_send_message(session, &message));
  EXPECT(VOLSFU_E_NULL, volsfu_next_message(session, 0, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_release_message(NULL));
  volsfu_sound sound;
  VOLSFU_INIT(sound);
  EXPECT(VOLSFU_E_NULL, volsfu_publish_sound(session, NULL, &published));
  EXPECT(VOLSFU_E_NULL, volsfu_publish_sound(session, &sound, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_listen(session, "ada", "voice", NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_write_sound(publisher, NULL, 1, 0));
}

static void sizes(volsfu_session session, volsfu_publisher publisher) {
  volsfu_frame frame = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_next_frame(session, 0, &frame));
  EXPECT(VOLSFU_E_SIZE, volsfu_release_frame(&frame));
  volsfu_event event = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_next_event(session, 0, &event));
  EXPECT(VOLSFU_E_SIZE, volsfu_release_event(&event));
  volsfu_totals totals = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_get_totals(session, &totals));
  volsfu_viewpoint viewpoint = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_set_viewpoint(session, &viewpoint));
  volsfu_pose pose = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_set_pose(publisher, &pose));
  volsfu_outgoing_frame outgoing = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_write_frame(publisher, 0, 0, &outgoing));
  volsfu_outgoing_message said = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_send_message(session, &said));
  volsfu_message message = {0};
  EXPECT(VOLSFU_E_SIZE, volsfu_next_message(session, 0, &message));
  EXPECT(VOLSFU_E_SIZE, volsfu_release_message(&message));
  volsfu_sound sound = {0};
  volsfu_publisher voice = 0;
  EXPECT(VOLSFU_E_SIZE, volsfu_publish_sound(session, &sound, &voice));
  volsfu_publication publication = {0};
  volsfu_publisher published = 0;
  EXPECT(VOLSFU_E_SIZE, volsfu_publish(session, &publication, &published));
  VOLSFU_INIT(outgoing);
  outgoing.data = &outgoing;
  outgoing.length = SIZE_MAX;
  EXPECT(VOLSFU_E_TOO_LARGE, volsfu_write_frame(publisher, 0, 0, &outgoing));
  // A text that does not fit is not written at all.
  char small[2] = {'a', 'b'};
  size_t length = 0;
  EXPECT(VOLSFU_E_BUFFER, volsfu_get_room(session, small, sizeof small, &length));
  CHECK(length > sizeof small && small[0] == 'a' && small[1] == 'b');
  char *room = malloc(length + 1);
  EXPECT(VOLSFU_E_BUFFER, volsfu_get_room(session, room, length, NULL));
  EXPECT(VOLSFU_OK, volsfu_get_room(session, room, length + 1, NULL));
  CHECK(strlen(room) == length);
  free(room);
}

static void values(volsfu_session session, volsfu_publisher publisher) {
  volsfu_publisher published = 0;
  volsfu_publication publication = publication_of("");
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("values");
  publication.flags = 6;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("values");
  publication.flags = VOLSFU_VR2GATHER;
  publication.mode = VOLSFU_DESCRIPTIONS;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("values");
  publication.mode = 2;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("values");
  publication.tile_count = 0;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication.tile_count = UINT32_MAX;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("values");
  const volsfu_tile endless = {NULL, {{NAN, 0, 0}, {1, 1, 1}}};
  publication.tiles = &endless;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish(session, &publication, &published));
  publication = publication_of("object");
  EXPECT(VOLSFU_REFUSED_EXISTS, volsfu_publish(session, &publication, &published));
  CHECK(published == 0);

  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  EXPECT(VOLSFU_E_NOT_PUBLISHED, volsfu_write_frame(publisher, 1, 0, &outgoing));
  EXPECT(VOLSFU_E_NOT_PUBLISHED, volsfu_write_frame(publisher, 0, -1, &outgoing));
  EXPECT(VOLSFU_E_NOT_PUBLISHED, volsfu_wanted(publisher, INT32_MIN, INT32_MAX));
  outgoing.capture_us = INT64_MAX;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_write_frame(publisher, 0, 0, &outgoing));

  volsfu_viewpoint viewpoint;
  VOLSFU_INIT(viewpoint);
  EXPECT(VOLSFU_OK, volsfu_set_viewpoint(session, &viewpoint));
  viewpoint.position[1] = NAN;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_viewpoint(session, &viewpoint));
  volsfu_pose pose;
  VOLSFU_INIT(pose);
  pose.box_count = 2;
  const volsfu_box boxes[2] = {{{0, 0, 0}, {1, 1, 1}}, {{0, 0, 0}, {1, 1, 1}}};
  pose.boxes = boxes;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_pose(publisher, &pose));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_limits(session, 1, 2));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_key(session, 0, NULL, "sixteen bytes...", 16));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_use_epoch(session, 0));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_forget_epoch(session, 0));

  volsfu_choice choice = {"nobody", "nothing", VOLSFU_ALL_TILES, VOLSFU_AUTO, 0};
  EXPECT(VOLSFU_OK, volsfu_set_quality(session, &choice, 1));
  choice.quality = -4;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_quality(session, &choice, 1));
  choice.quality = 64;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_quality(session, &choice, 1));
  choice.quality = 0;
  choice.tile = -2;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_quality(session, &choice, 1));
  choice.participant = NULL;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_quality(session, &choice, 1));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_quality(session, &choice, SIZE_MAX));

  volsfu_outgoing_message message;
  VOLSFU_INIT(message);
  message.flags = 4;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_send_message(session, &message));
  message.flags = 0;
  message.data = "\xff";
  message.length = 1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_send_message(session, &message));
  message.flags = VOLSFU_BINARY;
  message.to_count = 65;
  message.to = (const char *const *)&message;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_send_message(session, &message));
  message.to_count = 0;
  static char large[16385];
  message.data = large;
  message.length = sizeof large;
  EXPECT(VOLSFU_E_TOO_LARGE, volsfu_send_message(session, &message));
  volsfu_sound sound;
  VOLSFU_INIT(sound);
  sound.name = "voice";
  sound.bitrate = 1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_publish_sound(session, &sound, &published));
  static float samples[48001];
  EXPECT(VOLSFU_E_KIND, volsfu_write_sound(publisher, samples, 48000, 0));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_write_sound(publisher, samples, 48001, 0));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_write_sound(publisher, samples, 1, -1));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_set_attributes(session, NULL, "[]"));
  volsfu_listener listener = 0;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_listen(session, NULL, "voice", &listener));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_listen(session, "ada", "", &listener));

  volsfu_frame frame;
  VOLSFU_INIT(frame);
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_next_frame(session, -2, &frame));
  EXPECT(VOLSFU_E_TIMEOUT, volsfu_next_frame(session, 0, &frame));
  EXPECT(VOLSFU_E_TIMEOUT, volsfu_next_frame(session, 10, &frame));
}

// await_connection writes until there is a connection: the first frame is then sent.
static void await_connection(volsfu_publisher publisher) {
  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  outgoing.number = UINT32_MAX;
  const struct timespec pause = {0, 10000000};
  int32_t status;
  while ((status = volsfu_write_frame(publisher, 0, 0, &outgoing)) == VOLSFU_E_NOT_CONNECTED) nanosleep(&pause, NULL);
  EXPECT(VOLSFU_OK, status);
}

static void order(volsfu_publisher publisher) {
  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  outgoing.number = UINT32_MAX;
  EXPECT(VOLSFU_E_ORDER, volsfu_write_frame(publisher, 0, 0, &outgoing));
  outgoing.number = 1;  // numbers wrap around
  EXPECT(VOLSFU_OK, volsfu_write_frame(publisher, 0, 0, &outgoing));
  EXPECT(VOLSFU_E_ORDER, volsfu_write_frame(publisher, 0, 0, &outgoing));
  outgoing.number = 0;
  EXPECT(VOLSFU_E_ORDER, volsfu_write_frame(publisher, 0, 0, &outgoing));
}

// holding receives events of a second participant, and holds and releases them wrongly.
static void holding(volsfu_session session) {
  volsfu_session second = 0;
  volsfu_config config = config_of("second");
  EXPECT(VOLSFU_OK, volsfu_connect(&config, &second));
  EXPECT(VOLSFU_REFUSED_IDENTITY_TAKEN, volsfu_connect(&config, &second));
  volsfu_event event, copy;
  VOLSFU_INIT(event);
  EXPECT(VOLSFU_OK, volsfu_next_event(second, 20000, &event));
  EXPECT(VOLSFU_E_HELD, volsfu_next_event(second, 0, &event));
  copy = event;
  EXPECT(VOLSFU_OK, volsfu_close(second));
  CHECK(event.participant != NULL && event.text != NULL && event.json != NULL);
  CHECK(strlen(event.participant) < 100);  // held data outlives the session
  EXPECT(VOLSFU_OK, volsfu_release_event(&event));
  CHECK(event.handle == 0 && event.participant == NULL);
  EXPECT(VOLSFU_E_HANDLE, volsfu_release_event(&event));
  EXPECT(VOLSFU_E_HANDLE, volsfu_release_event(&copy));
  EXPECT(VOLSFU_E_HANDLE, volsfu_next_event(second, 0, &event));
  EXPECT(VOLSFU_E_HANDLE, volsfu_close(second));
  (void)session;
}

static void *wait_for_ever(void *session) {
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  int32_t status = volsfu_next_frame(*(volsfu_session *)session, VOLSFU_FOREVER, &frame);
  // The session was closed during the wait, or before it.
  CHECK(status == VOLSFU_E_CLOSED || status == VOLSFU_E_HANDLE);
  CHECK(volsfu_last_message()[0] != '\0');
  return NULL;
}

static void *do_anything(void *given) {
  const volsfu_session session = ((uint64_t *)given)[0];
  const volsfu_publisher publisher = ((uint64_t *)given)[1];
  volsfu_outgoing_frame outgoing;
  VOLSFU_INIT(outgoing);
  volsfu_event event;
  VOLSFU_INIT(event);
  volsfu_totals totals;
  VOLSFU_INIT(totals);
  volsfu_viewpoint viewpoint;
  VOLSFU_INIT(viewpoint);
  for (uint32_t i = 2;; i++) {
    outgoing.number = i;
    (void)volsfu_write_frame(publisher, 0, 0, &outgoing);
    (void)volsfu_set_viewpoint(session, &viewpoint);
    if (volsfu_next_event(session, 0, &event) == VOLSFU_OK) EXPECT(VOLSFU_OK, volsfu_release_event(&event));
    (void)volsfu_get_statistics(session, NULL, 0, NULL);
    int32_t status = volsfu_get_totals(session, &totals);
    if (status == VOLSFU_E_HANDLE) return NULL;
    CHECK(status == VOLSFU_OK);
  }
}

// crowd uses a session from many threads, and closes it meanwhile.
static void crowd(volsfu_session session, volsfu_publisher publisher) {
  enum { WAITING = 4, BUSY = 4 };
  pthread_t threads[WAITING + BUSY];
  uint64_t given[2] = {session, publisher};
  for (int i = 0; i < WAITING; i++) pthread_create(&threads[i], NULL, wait_for_ever, given);
  for (int i = WAITING; i < WAITING + BUSY; i++) pthread_create(&threads[i], NULL, do_anything, given);
  const struct timespec while_busy = {0, 200000000};
  nanosleep(&while_busy, NULL);
  EXPECT(VOLSFU_OK, volsfu_close(session));
  for (int i = 0; i < WAITING + BUSY; i++) pthread_join(threads[i], NULL);
}

// long_messages causes errors with texts that do not fit: the stored part ends with a complete character.
static void long_messages(void) {
  char address[3001];
  for (size_t shift = 0; shift < 3; shift++) {
    memset(address, 'x', shift);
    size_t end = shift;
    for (; end + 3 < sizeof address; end += 3) memcpy(address + end, "\xe2\x82\xac", 3);
    address[end] = '\0';
    volsfu_config config = config_of("mallory");
    config.url = address;
    volsfu_session session = 0;
    EXPECT(VOLSFU_E_ARGUMENT, volsfu_connect(&config, &session));
    const char *message = volsfu_last_message();
    const size_t length = strlen(message);
    CHECK(length > 1000 && length < 1024 && memcmp(message + length - 3, "\xe2\x82\xac", 3) == 0);
  }
}

static void texts(void) {
  const char *none = volsfu_status_text(INT32_MIN);
  for (int32_t status = VOLSFU_E_KIND; status <= VOLSFU_OK; status++) CHECK(volsfu_status_text(status) != none);
  for (int32_t status = VOLSFU_E_INTERFACE; status <= VOLSFU_E_TIMEOUT; status++) CHECK(volsfu_status_text(status) != none);
  for (int32_t status = VOLSFU_REFUSED_REVOKED; status <= VOLSFU_REFUSED; status++) CHECK(volsfu_status_text(status) != none);
  CHECK(volsfu_status_text(VOLSFU_E_BACKLOG) != none);
  CHECK(volsfu_status_text(VOLSFU_E_MEMORY) != none && volsfu_status_text(VOLSFU_E_INTERNAL) != none);
  CHECK(strcmp(volsfu_status_text(1), volsfu_status_text(VOLSFU_OK)) == 0);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  url = argv[1];
  CHECK(volsfu_api_version() == VOLSFU_API_VERSION);
  CHECK(volsfu_last_message()[0] == '\0');
  texts();
  connecting();
  long_messages();
  volsfu_config config = config_of("mallory");
  volsfu_session session = 0;
  volsfu_publisher publisher = 0;
  volsfu_publication publication = publication_of("object");
  EXPECT(VOLSFU_OK, volsfu_connect(&config, &session));
  EXPECT(VOLSFU_OK, volsfu_publish(session, &publication, &publisher));
  handles(session, publisher);
  pointers(session, publisher);
  sizes(session, publisher);
  values(session, publisher);
  await_connection(publisher);
  order(publisher);
  holding(session);
  crowd(session, publisher);
  EXPECT(VOLSFU_E_HANDLE, volsfu_wanted(publisher, 0, 0));
  EXPECT(VOLSFU_E_HANDLE, volsfu_unpublish(publisher));
  if (atomic_load(&failures) != 0) return 1;
  printf("all noticed\n");
  return 0;
}
