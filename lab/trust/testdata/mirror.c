// A participant that publishes the frames of another one again, encrypted from end to end with the passphrase in VOLPEER_PASSPHRASE. The arguments are
// URL, token, the identity of the other participant, and the time in seconds. It prints the statistics of the session.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volsfu.h"

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, volsfu_last_message());
  return 1;
}

static volsfu_publisher publish(volsfu_session session) {
  const volsfu_tile tile = {NULL, {{-1, 0, -1}, {1, 2, 1}}};
  const volsfu_quality quality = {NULL, 0};
  volsfu_publication publication;
  VOLSFU_INIT(publication);
  publication.name = "mirror";
  publication.frame_rate = 30;
  publication.tiles = &tile;
  publication.tile_count = 1;
  publication.qualities = &quality;
  publication.quality_count = 1;
  volsfu_publisher publisher = 0;
  return volsfu_publish(session, &publication, &publisher) == VOLSFU_OK ? publisher : 0;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.token = argv[2];
  config.passphrase = getenv("VOLPEER_PASSPHRASE");
  config.flags = VOLSFU_RECEIVE;
  volsfu_session session;
  if (volsfu_connect(&config, &session) != VOLSFU_OK) return fail("connect");
  volsfu_publisher mirror = publish(session);
  if (mirror == 0) return fail("publish");
  const time_t end = time(NULL) + atoi(argv[4]);
  uint32_t number = 0;
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  while (time(NULL) < end) {
    int32_t status = volsfu_next_frame(session, 100, &frame);
    if (status == VOLSFU_E_TIMEOUT) continue;
    if (status != VOLSFU_OK) return fail("next frame");
    if (strcmp(frame.participant, argv[3]) == 0) {
      volsfu_outgoing_frame outgoing;
      VOLSFU_INIT(outgoing);
      outgoing.number = number;
      memcpy(outgoing.codec, frame.codec, sizeof outgoing.codec);
      outgoing.data = frame.data;
      outgoing.length = frame.length;
      status = volsfu_write_frame(mirror, 0, 0, &outgoing);
      if (status == VOLSFU_OK) number++;
      else if (status != VOLSFU_E_NOT_CONNECTED) return fail("write frame");
    }
    if (volsfu_release_frame(&frame) != VOLSFU_OK) return fail("release frame");
  }
  size_t length = 0;
  (void)volsfu_get_statistics(session, NULL, 0, &length);
  const size_t capacity = length + 4096;  // it may have grown meanwhile
  char *text = malloc(capacity);
  if (text == NULL || volsfu_get_statistics(session, text, capacity, NULL) != VOLSFU_OK) return fail("statistics");
  printf("%s\n", text);
  free(text);
  return volsfu_close(session) == VOLSFU_OK ? 0 : fail("close");
}
