// Decodes frames from the standard input: for each, four characters of its codec, its length in four bytes, little-endian, and its data. It prints
// a line for each frame: status, number of points, and the FNV-1a sum of the positions.
#include <stdio.h>
#include <stdlib.h>

#include "volsfu.h"

static uint32_t sum_of(const float *positions, size_t count) {
  const unsigned char *bytes = (const unsigned char *)positions;
  uint32_t sum = 0x811c9dc5;
  for (size_t i = 0; i < count * 3 * sizeof(float); i++) sum = (sum ^ bytes[i]) * 0x01000193;
  return sum;
}

int main(void) {
  volsfu_decoder decoder = 0;
  if (volsfu_open_decoder(&decoder) != VOLSFU_OK) return 1;
  float *positions = NULL;
  uint8_t *colors = NULL;
  size_t capacity = 0;
  for (;;) {
    volsfu_points points;
    VOLSFU_INIT(points);
    unsigned char head[8];
    size_t got = fread(head, 1, sizeof head, stdin);
    if (got == 0) break;
    if (got != sizeof head) return 2;
    memcpy(points.codec, head, 4);
    points.length = head[4] | (size_t)head[5] << 8 | (size_t)head[6] << 16 | (size_t)head[7] << 24;
    unsigned char *data = malloc(points.length + 1);
    if (fread(data, 1, points.length, stdin) != points.length) return 3;
    points.data = data;
    points.positions = positions;
    points.colors = colors;
    points.capacity = capacity;
    int32_t status = volsfu_decode_points(decoder, &points);
    if (status == VOLSFU_E_BUFFER) {
      capacity = points.count;
      points.positions = positions = realloc(positions, capacity * 3 * sizeof(float));
      points.colors = colors = realloc(colors, capacity * 3);
      points.capacity = capacity;
      status = volsfu_decode_points(decoder, &points);
    }
    printf("%d %zu %u\n", (int)status, points.count, (unsigned)sum_of(positions, points.count));
    free(data);
  }
  free(positions);
  free(colors);
  if (volsfu_close_decoder(decoder) != VOLSFU_OK) return 4;
  return volsfu_close_decoder(decoder) == VOLSFU_E_HANDLE ? 0 : 5;
}
