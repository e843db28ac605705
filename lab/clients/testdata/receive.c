// Receives with the C library, decodes into its own memory, and prints one JSON object: receive URL ROOM SECONDS [PASSPHRASE]
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "volsfu.h"

static double now(void) {
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.room = argv[2];
  config.identity = "c";
  config.flags = VOLSFU_RECEIVE;
  config.passphrase = argc > 4 ? argv[4] : NULL;
  volsfu_session session = 0;
  if (volsfu_connect(&config, &session) != VOLSFU_OK) {
    fprintf(stderr, "%s\n", volsfu_last_message());
    return 3;
  }
  size_t capacity = 0;
  float *positions = NULL;
  uint8_t *colors = NULL;
  unsigned long decoded = 0, failed = 0;
  const double end = now() + atof(argv[3]);
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  while (now() < end) {
    int32_t status = volsfu_next_frame(session, 100, &frame);
    if (status == VOLSFU_E_TIMEOUT) continue;
    if (status != VOLSFU_OK) {
      fprintf(stderr, "%s\n", volsfu_last_message());
      return 4;
    }
    volsfu_points points;
    VOLSFU_INIT(points);
    for (;;) {
      points.positions = positions;
      points.colors = colors;
      points.capacity = capacity;
      status = volsfu_decode(frame.codec, frame.data, frame.length, &points);
      if (status != VOLSFU_E_BUFFER) break;
      capacity = points.count;
      positions = realloc(positions, capacity * 3 * sizeof(float));
      colors = realloc(colors, capacity * 3);
      if (positions == NULL || colors == NULL) return 5;
    }
    if (status == VOLSFU_OK && points.count > 0) {
      decoded++;
    } else {
      failed++;
      fprintf(stderr, "%s\n", volsfu_last_message());
    }
    volsfu_release_frame(&frame);
  }
  volsfu_close(session);
  free(positions);
  free(colors);
  printf("{\"frames_decoded\": %lu, \"frames_undecodable\": %lu}\n", decoded, failed);
  return 0;
}
