// The content of a Draco frame: quantised positions and colours as one kd-tree of six dimensions (three without
// colours), or as a sequence in the order of the points. Go writes and reads the data around it.
#ifndef VOLSFU_DRACO_INSIDE_H_
#define VOLSFU_DRACO_INSIDE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The grid of positions: min + i * range / (2^bits - 1) on each axis.
typedef struct {
  float min[3];
  float max[3];  // positions are clamped to min..max before encoding
  float range;
  int bits;  // 1 to 30
} volsfu_grid;

enum { VOLSFU_OK = 0, VOLSFU_NO_MEMORY = 1, VOLSFU_MALFORMED = 2 };

// An encoder reuses its working memory for the next cloud. It must be used by one thread at a time.
typedef struct volsfu_encoder volsfu_encoder;

// Returns NULL if there is no memory.
volsfu_encoder *volsfu_encoder_new(void);
void volsfu_encoder_free(volsfu_encoder *encoder);

// The output belongs to the encoder and is valid until its next use.
typedef struct {
  const uint8_t *data;
  size_t size;
  int status;
} volsfu_encoded;

// Encodes points as a tree, at one of Draco's compression levels, 0 to 6. Positions and colours have three values per
// point; colours may be NULL. If order is not NULL, order[i] is set to the index of the point that is decoded as the
// i-th.
volsfu_encoded volsfu_encode(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points, volsfu_grid grid,
                             int level, uint32_t *order);

// Encodes points in their order, with Draco's effort for symbols at a level of 0 to 10.
volsfu_encoded volsfu_encode_sequence(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points,
                                      volsfu_grid grid, int level);

typedef struct {
  size_t consumed;  // the number of bytes read
  int status;
} volsfu_decoded;

// Decodes exactly the given number of points into positions and colours, which have room for them; colours are white if
// the tree has none. Of the grid, only min, range and bits are used.
volsfu_decoded volsfu_decode(const uint8_t *data, size_t size, int level, volsfu_grid grid, uint32_t points, int colored, float *positions,
                             uint8_t *colors);

// Decodes points that were encoded in their order.
volsfu_decoded volsfu_decode_sequence(const uint8_t *data, size_t size, volsfu_grid grid, uint32_t points, int colored, float *positions,
                                      uint8_t *colors);

// Encode or decode as above repeatedly, and return the mean processor time of this thread in nanoseconds; -1 after a
// failure.
int64_t volsfu_time_encode(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points, volsfu_grid grid,
                           int level, int sequential, int rounds);
int64_t volsfu_time_decode(const uint8_t *data, size_t size, int level, volsfu_grid grid, uint32_t points, int colored, int sequential,
                           float *positions, uint8_t *colors, int rounds);

#ifdef __cplusplus
}
#endif

#endif
