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

// raster decodes a frame of a depth camera twice, as points and as a raster, which must have the same points. It prints the size of the raster.
static void raster(const char *path) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  const size_t length = fread(buffer, 1, sizeof buffer, file);
  fclose(file);
  volsfu_points to = room();
  EXPECT(VOLSFU_OK, volsfu_decode("rgbd", buffer, length, &to));
  volsfu_raster r;
  VOLSFU_INIT(r);
  EXPECT(VOLSFU_E_BUFFER, volsfu_decode_raster("rgbd", buffer, length, &r));
  CHECK(r.count > 0 && r.count == (size_t)r.width * r.height && r.focal[0] == 0);
  const size_t count = r.count;
  r.depths = malloc(count * sizeof(float));
  r.rays = malloc(2 * count * sizeof(float));
  r.colors = malloc(4 * count);
  r.color_bytes = 4;
  r.capacity = count;
  for (int again = 0; again < 2; again++) EXPECT(VOLSFU_OK, volsfu_decode_raster("rgbd", buffer, length, &r));
  CHECK(r.count == count && r.focal[0] > 0 && r.left + r.width <= r.camera_width && r.top + r.height <= r.camera_height);
  size_t point = 0;
  for (size_t i = 0; i < count; i++) {
    const double d = r.depths[i], ray[3] = {r.rays[2 * i] * d, -r.rays[2 * i + 1] * d, -d};
    if (d == 0) continue;
    CHECK(point < to.count && memcmp(decoded_colors + 4 * point, r.colors + 4 * i, 4) == 0);
    for (int axis = 0; axis < 3; axis++) {
      double at = r.position[axis];
      for (int k = 0; k < 3; k++) at += r.rotation[3 * axis + k] * ray[k];
      CHECK(fabs(at - decoded[3 * point + axis]) < 1e-4);
    }
    point++;
  }
  CHECK(point == to.count);
  printf("raster of %ux%u pixels, %zu points\n", r.width, r.height, point);
  EXPECT(VOLSFU_OK, volsfu_decode_raster("rgbd", NULL, 0, &r));
  CHECK(r.count == 0 && r.width == 0);
  EXPECT(VOLSFU_E_MALFORMED, volsfu_decode_raster("rgbd", buffer, length - 1, &r));
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_decode_raster("zstd", buffer, length, &r));
  EXPECT(VOLSFU_E_CODEC, volsfu_decode_raster("none", buffer, length, &r));
  EXPECT(VOLSFU_E_NULL, volsfu_decode_raster(NULL, buffer, length, &r));
  EXPECT(VOLSFU_E_NULL, volsfu_decode_raster("rgbd", NULL, 1, &r));
  EXPECT(VOLSFU_E_NULL, volsfu_decode_raster("rgbd", buffer, length, NULL));
  r.color_bytes = 5;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_decode_raster("rgbd", buffer, length, &r));
  r.color_bytes = 4;
  r.capacity = SIZE_MAX;
  EXPECT(VOLSFU_E_ARGUMENT, volsfu_decode_raster("rgbd", buffer, length, &r));
  r.size = 0;
  EXPECT(VOLSFU_E_SIZE, volsfu_decode_raster("rgbd", buffer, length, &r));
  free(r.depths);
  free(r.rays);
  free(r.colors);
}

int main(int argc, char **argv) {
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
  if (argc > 1) raster(argv[1]);
  return failures != 0;
}
