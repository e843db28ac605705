// A participant controlled by a test: it publishes body, reports every received frame and event, and executes commands from standard input. There
// is one thread each for writing, frames, events and commands. The arguments are URL, room and identity, and possibly a token and two interfaces.
// PEER_PASSPHRASE in the environment encrypts from end to end.
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "frames.h"
#include "volsfu.h"

enum { TILES = 2, QUALITIES = 3, LARGEST = 64 << 10 };

static volsfu_session session;
static volsfu_publisher body;
static atomic_bool over;

static void fail(const char *what, int32_t status) {
  printf("failed %s: %s: %s\n", what, volsfu_status_text(status), volsfu_last_message());
  fflush(stdout);
  _Exit(1);
}

// ended returns whether a status is that after the command quit.
static bool ended(int32_t status) { return atomic_load(&over) && (status == VOLSFU_E_CLOSED || status == VOLSFU_E_HANDLE); }

// write_instant writes the wanted frames of one instant, and returns whether any was sent.
static bool write_instant(uint32_t number, uint8_t *data) {
  bool sent = false;
  for (uint32_t tile = 0; tile < TILES; tile++) {
    for (uint32_t quality = 0; quality < QUALITIES; quality++) {
      int32_t wanted = volsfu_wanted(body, (int32_t)tile, (int32_t)quality);
      if (ended(wanted)) return false;
      if (wanted < 0) fail("wanted", wanted);
      if (wanted == 0) continue;
      volsfu_outgoing_frame frame;
      VOLSFU_INIT(frame);
      frame.number = number;
      memcpy(frame.codec, "test", 4);
      frame.data = data;
      frame.length = frame_size(number, tile, quality);
      frame_fill(data, frame.length, number, tile, quality);
      int32_t status = volsfu_write_frame(body, (int32_t)tile, (int32_t)quality, &frame);
      if (ended(status)) return false;
      if (status != VOLSFU_OK && status != VOLSFU_E_NOT_CONNECTED) fail("write", status);
      sent = sent || status == VOLSFU_OK;
    }
  }
  return sent;
}

static void *write_frames(void *unused) {
  (void)unused;
  uint8_t *data = malloc(LARGEST);
  if (data == NULL) fail("malloc", VOLSFU_E_MEMORY);
  const struct timespec interval = {0, 33333333};
  for (uint32_t number = 0; !atomic_load(&over);) {
    if (write_instant(number, data)) number++;
    nanosleep(&interval, NULL);
  }
  free(data);
  return NULL;
}

static void *receive_frames(void *unused) {
  (void)unused;
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  for (;;) {
    int32_t status = volsfu_next_frame(session, 1000, &frame);
    if (ended(status)) return NULL;
    if (status == VOLSFU_E_TIMEOUT) continue;
    if (status != VOLSFU_OK) fail("next frame", status);
    printf("frame %s %s %d %d %" PRId64 " %zu %016" PRIx64 " %.4s\n", frame.participant, frame.publication, frame.tile, frame.quality, frame.number,
           frame.length, hash_of(frame.data, frame.length), frame.codec);
    if ((status = volsfu_release_frame(&frame)) != VOLSFU_OK) fail("release frame", status);
  }
}

static void *listen_for_events(void *unused) {
  (void)unused;
  volsfu_event event;
  VOLSFU_INIT(event);
  for (;;) {
    int32_t status = volsfu_next_event(session, VOLSFU_FOREVER, &event);
    if (ended(status)) return NULL;
    if (status != VOLSFU_OK) fail("next event", status);
    printf("event %u [%s] [%s] %d %d [%s] %.2f %s\n", event.kind, event.participant, event.publication, event.tile, event.quality, event.text,
           event.position[0], event.json);
    if ((status = volsfu_release_event(&event)) != VOLSFU_OK) fail("release event", status);
  }
}

static void tell_text(const char *what, int32_t (*get)(volsfu_session, char *, size_t, size_t *)) {
  size_t length = 0;
  int32_t status = get(session, NULL, 0, &length);
  if (status != VOLSFU_E_BUFFER) fail(what, status);
  size_t capacity = length + 4096;  // it may have grown meanwhile
  char *text = malloc(capacity);
  if (text == NULL) fail("malloc", VOLSFU_E_MEMORY);
  if ((status = get(session, text, capacity, &length)) != VOLSFU_OK) fail(what, status);
  if (strlen(text) != length) fail("length of the text", VOLSFU_E_INTERNAL);
  printf("%s %s\n", what, text);
  free(text);
}

// execute executes one line: quality PARTICIPANT PUBLICATION TILE QUALITY, look X, stand X, limits MOST LEAST, statistics, room, or key
// EPOCH SECRET, use EPOCH, forget EPOCH for encryption.
static void execute(const char *line) {
  char participant[64], publication[64];
  volsfu_choice choice = {participant, publication, 0, 0, 0};
  double x = 0;
  int64_t most = 0, least = 0;
  char secret[128];
  uint32_t epoch = 0;
  if (sscanf(line, "quality %63s %63s %d %d", participant, publication, &choice.tile, &choice.quality) == 4) {
    printf("status %d\n", volsfu_set_quality(session, &choice, 1));
  } else if (sscanf(line, "look %lf", &x) == 1) {
    volsfu_viewpoint viewpoint;
    VOLSFU_INIT(viewpoint);
    viewpoint.position[0] = x;
    printf("status %d\n", volsfu_set_viewpoint(session, &viewpoint));
  } else if (sscanf(line, "stand %lf", &x) == 1) {
    volsfu_box boxes[TILES] = {{{0, 0, 0}, {1, 1, 1}}, {{0, 1, 0}, {1, 2, 1}}};
    volsfu_pose pose;
    VOLSFU_INIT(pose);
    pose.position[0] = x;
    pose.boxes = boxes;
    pose.box_count = TILES;
    printf("status %d\n", volsfu_set_pose(body, &pose));
  } else if (sscanf(line, "limits %" SCNd64 " %" SCNd64, &most, &least) == 2) {
    printf("status %d\n", volsfu_set_limits(session, most, least));
  } else if (sscanf(line, "key %" SCNu32 " %127s", &epoch, secret) == 2) {
    printf("status %d\n", volsfu_set_key(session, epoch, NULL, secret, strlen(secret)));
  } else if (sscanf(line, "use %" SCNu32, &epoch) == 1) {
    printf("status %d\n", volsfu_use_epoch(session, epoch));
  } else if (sscanf(line, "forget %" SCNu32, &epoch) == 1) {
    printf("status %d\n", volsfu_forget_epoch(session, epoch));
  } else if (strcmp(line, "statistics\n") == 0) {
    tell_text("statistics", volsfu_get_statistics);
  } else if (strcmp(line, "room\n") == 0) {
    tell_text("room", volsfu_get_room);
  } else {
    fail(line, VOLSFU_E_ARGUMENT);
  }
}

static void publish(void) {
  const volsfu_tile tiles[TILES] = {{"lower", {{0, 0, 0}, {1, 1, 1}}}, {"upper", {{0, 1, 0}, {1, 2, 1}}}};
  const volsfu_quality qualities[QUALITIES] = {{"low", 2000000}, {"mid", 4000000}, {"high", 6000000}};
  volsfu_publication publication;
  VOLSFU_INIT(publication);
  publication.name = "body";
  publication.format = "codec=test";
  publication.frame_rate = 30;
  publication.tiles = tiles;
  publication.tile_count = TILES;
  publication.qualities = qualities;
  publication.quality_count = QUALITIES;
  int32_t status = volsfu_publish(session, &publication, &body);
  if (status != VOLSFU_OK) fail("publish", status);
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 6) return 2;
  setvbuf(stdout, NULL, _IOLBF, 1 << 16);
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.room = argv[2];
  config.identity = argv[3];
  config.flags = VOLSFU_RECEIVE;
  if (argc == 6) {
    config.token = argv[4];
    config.interfaces = argv[5];
    config.redundancy = VOLSFU_REDUNDANCY_ALL;
  }
  config.passphrase = getenv("PEER_PASSPHRASE");
  config.min_uplink = 1000000000;  // the link is this host: high load must not be mistaken for a narrow link
  int32_t status = volsfu_connect(&config, &session);
  if (status != VOLSFU_OK) fail("connect", status);
  publish();
  void *(*duties[])(void *) = {write_frames, receive_frames, listen_for_events};
  enum { DUTIES = sizeof duties / sizeof duties[0] };
  pthread_t threads[DUTIES];
  for (int i = 0; i < DUTIES; i++) pthread_create(&threads[i], NULL, duties[i], NULL);
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL) execute(line);
  atomic_store(&over, true);
  if ((status = volsfu_close(session)) != VOLSFU_OK) fail("close", status);
  for (int i = 0; i < DUTIES; i++) pthread_join(threads[i], NULL);
  printf("closed\n");
  return 0;
}
