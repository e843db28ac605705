// Encodes and decodes with every codec of the library, and makes the mistakes that encoding and decoding detect. It prints a line for each codec.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "volsfu.h"

#define POINTS 5000

static int failures;

static void expect(int line, const char *call, int32_t got, int32_t want) {
  if (got == want) return;
  failures++;
  printf("line %d: %s: %d (%s), expected %d\n", line, call, got, volsfu_last_message(), want);
}

#define EXPECT(want, call) expect(__LINE__, #call, (call), (want))
#define CHECK(condition) expect(__LINE__, #condition, (condition) ? VOLSFU_OK : VOLSFU_E_INTERNAL, VOLSFU_OK)

static float positions[3 * POINTS], decoded[3 * POINTS];
static uint8_t colors[3 * POINTS], decoded_colors[4 * POINTS];
static uint8_t buffer[64 * POINTS];

static volsfu_points cloud(void) {
  volsfu_points points;
  VOLSFU_INIT(points);
  points.positions = positions;
  points.colors = colors;
  points.count = POINTS;
  return points;
}

static volsfu_points room(void) {
  volsfu_points points;
  VOLSFU_INIT(points);
  points.color_bytes = 4;
  points.positions = decoded;
  points.colors = decoded_colors;
  points.capacity = POINTS;
  return points;
}

static volsfu_encoding encoding_of(const char *codec) {
  volsfu_encoding encoding;
  VOLSFU_INIT(encoding);
  memcpy(encoding.codec, codec, 4);
  for (int axis = 0; axis < 3; axis++) encoding.box.max[axis] = 1;
  return encoding;
}

// close_to_all counts the decoded points that have a point of the cloud nearby. Codecs may change the order.
static int close_to_all(size_t count) {
  int found = 0;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < POINTS; j++) {
      const float *a = decoded + 3 * i, *b = positions + 3 * j;
      if (fabsf(a[0] - b[0]) < 0.001f && fabsf(a[1] - b[1]) < 0.001f && fabsf(a[2] - b[2]) < 0.001f) {
        found++;
        break;
      }
    }
  }
  return found;
}

static void round_trip(const char *codec) {
  volsfu_encoding encoding = encoding_of(codec);
  volsfu_points from = cloud(), to = room();
  size_t length = 0;
  EXPECT(VOLSFU_E_BUFFER, volsfu_encode(&encoding, &from, NULL, 0, &length));
  CHECK(length > 0);
  const size_t needed = length;
  EXPECT(VOLSFU_OK, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  CHECK(length == needed);
  to.capacity = 1;
  EXPECT(VOLSFU_E_BUFFER, volsfu_decode(codec, buffer, length, &to));
  CHECK(to.count == POINTS);
  to.capacity = POINTS;
  EXPECT(VOLSFU_OK, volsfu_decode(codec, buffer, length, &to));
  CHECK(to.count == POINTS);
  for (size_t i = 0; i < to.count; i++) CHECK(decoded_colors[4 * i + 3] == 255);
  printf("%.4s: %zu bytes, %d points in place\n", codec, length, close_to_all(to.count));
  EXPECT(VOLSFU_E_MALFORMED, volsfu_decode(codec, buffer, length / 2, &to));
  from.count = 0;
  EXPECT(VOLSFU_OK, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  CHECK(length == 0);
  EXPECT(VOLSFU_OK, volsfu_decode(codec, NULL, 0, &to));
  CHECK(to.count == 0);
  from = cloud();
  from.colors = NULL;
  to = room();
  to.colors = NULL;
  EXPECT(VOLSFU_OK, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  EXPECT(VOLSFU_OK, volsfu_decode(codec, buffer, length, &to));
  CHECK(to.count == POINTS);
}

static void mistakes(void) {
  volsfu_encoding encoding = encoding_of("zstd");
  volsfu_points from = cloud(), to = room();
  size_t length = 7;
  EXPECT(VOLSFU_E_NULL, volsfu_encode(NULL, &from, buffer, sizeof buffer, &length));
  EXPECT(VOLSFU_E_NULL, volsfu_encode(&encoding, NULL, buffer, sizeof buffer, &length));
  EXPECT(VOLSFU_E_NULL, volsfu_encode(&encoding, &from, NULL, sizeof buffer, &length));
  EXPECT(VOLSFU_E_NULL, volsfu_encode(&encoding, &from, buffer, sizeof buffer, NULL));
  EXPECT(VOLSFU_E_NULL, volsfu_decode(NULL, buffer, 1, &to));
  EXPECT(VOLSFU_E_NULL, volsfu_decode("zstd", NULL, 1, &to));
  EXPECT(VOLSFU_E_NULL, volsfu_decode("zstd", buffer, 1, NULL));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_decode("zstd", buffer, (size_t)1 << 40, &to));
  EXPECT(VOLSFU_E_CODEC, volsfu_decode("none", buffer, 1, &to));
  encoding.position_bits = 31;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  encoding = encoding_of("zstd");
  encoding.box.max[1] = -1;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  encoding = encoding_of("zstd");
  encoding.size = 0;
  EXPECT(VOLSFU_E_SIZE, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  encoding = encoding_of("zstd");
  from.color_bytes = 5;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  from = cloud();
  from.count = (size_t)1 << 60;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  from = cloud();
  from.positions = NULL;
  EXPECT(VOLSFU_E_NULL, volsfu_encode(&encoding, &from, buffer, sizeof buffer, &length));
  CHECK(length == 7);
}

int main(void) {
  srand(1);
  for (size_t i = 0; i < 3 * POINTS; i++) {
    positions[i] = (float)rand() / (float)RAND_MAX;
    colors[i] = (uint8_t)rand();
  }
  char codecs[4096];
  EXPECT(VOLSFU_OK, volsfu_get_codecs(codecs, sizeof codecs, NULL));
  for (const char *at = codecs; (at = strstr(at, "\"fourcc\":\"")) != NULL; at++) {
    char codec[4];
    memcpy(codec, at + strlen("\"fourcc\":\""), 4);
    if (strncmp(at + strlen("\"fourcc\":\"xxxx\","), "\"encodes\":true", strlen("\"encodes\":true")) == 0) round_trip(codec);
  }
  mistakes();
  return failures != 0;
}
