// Publishes a sphere ten times per second with the C library until the end of its input: publish URL ROOM POINTS [PASSPHRASE]
#define _DEFAULT_SOURCE
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volsfu.h"

// ended waits for a tenth of a second and returns whether the input has ended.
static int ended(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  char byte;
  return poll(&input, 1, 100) > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, volsfu_last_message());
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const size_t count = (size_t)atol(argv[3]), capacity = 64 * count + 4096;
  float *positions = malloc(count * 3 * sizeof(float));
  uint8_t *colors = malloc(count * 3);
  void *data = malloc(capacity);
  if (positions == NULL || colors == NULL || data == NULL) return 3;
  volsfu_config config;
  VOLSFU_INIT(config);
  config.url = argv[1];
  config.room = argv[2];
  config.identity = "publisher";
  config.passphrase = argc > 4 ? argv[4] : NULL;
  volsfu_session session = 0;
  if (volsfu_connect(&config, &session) != VOLSFU_OK) return failed("connect");
  const volsfu_tile tile = {"body", {{-1, -1, -1}, {1, 1, 1}}};
  const volsfu_quality quality = {"only", 0};
  volsfu_publication publication;
  VOLSFU_INIT(publication);
  publication.name = "body";
  publication.frame_rate = 10;
  publication.tiles = &tile;
  publication.qualities = &quality;
  publication.tile_count = publication.quality_count = 1;
  volsfu_publisher body = 0;
  if (volsfu_publish(session, &publication, &body) != VOLSFU_OK) return failed("publish");
  volsfu_encoding encoding;
  VOLSFU_INIT(encoding);
  memcpy(encoding.codec, "zstd", 4);
  encoding.box = tile.box;
  volsfu_points points;
  VOLSFU_INIT(points);
  points.positions = positions;
  points.colors = colors;
  points.count = points.capacity = count;
  for (uint32_t number = 0; !ended(); number++) {
    if (volsfu_wanted(body, 0, 0) != 1) continue;
    for (size_t i = 0; i < count; i++) {
      const double height = 2.0 * (double)i / (double)count - 1, around = sqrt(1 - height * height);
      const double angle = 2.4 * (double)i + 0.1 * number;
      positions[3 * i] = (float)(around * cos(angle));
      positions[3 * i + 1] = (float)height;
      positions[3 * i + 2] = (float)(around * sin(angle));
      colors[3 * i] = (uint8_t)i;
      colors[3 * i + 1] = (uint8_t)(i >> 8);
      colors[3 * i + 2] = (uint8_t)number;
    }
    volsfu_outgoing_frame frame;
    VOLSFU_INIT(frame);
    frame.number = number;
    memcpy(frame.codec, "zstd", 4);
    frame.data = data;
    if (volsfu_encode(&encoding, &points, data, capacity, &frame.length) != VOLSFU_OK) return failed("encode");
    const int32_t status = volsfu_write_frame(body, 0, 0, &frame);
    if (status != VOLSFU_OK && status != VOLSFU_E_NOT_CONNECTED) return failed("write");
  }
  volsfu_close(session);
  free(positions);
  free(colors);
  free(data);
  return 0;
}
