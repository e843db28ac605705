// Google's unmodified Draco, through its own encoder and decoder.
#ifndef VOLSFU_DRACO_REFERENCE_H_
#define VOLSFU_DRACO_REFERENCE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint8_t *data;  // freed with free()
  size_t size;
} yardstick_frame;

// Settings for encoding a cloud. Method 0 is sequential coding, 1 the kd-tree.
typedef struct {
  float origin[3];
  float range;
  int bits, speed, method;
} yardstick_params;

// data is NULL if Draco fails. Colours may be NULL.
yardstick_frame yardstick_encode(const float *positions, const uint8_t *colors, uint32_t points, yardstick_params params);

// Encodes a triangle mesh; faces have three indices of vertices. The grid is the mesh's own.
yardstick_frame yardstick_encode_mesh(const float *positions, const uint8_t *colors, uint32_t points, const uint32_t *faces, uint32_t face_count,
                                      yardstick_params params);

// Encodes the cloud repeatedly and returns the mean processor time of this thread in nanoseconds, from the arrays of
// points to the frame's bytes; -1 if Draco fails.
int64_t yardstick_time_encode(const float *positions, const uint8_t *colors, uint32_t points, yardstick_params params, int rounds);

// The same for decoding, from the frame's bytes to the arrays of points, which have room for them. Colours may be NULL.
int64_t yardstick_time_decode(const uint8_t *data, size_t size, float *positions, uint8_t *colors, uint32_t points, int rounds);

// Returns this thread's processor time in nanoseconds.
int64_t yardstick_thread_time(void);

typedef struct {
  float *positions;  // both freed with free()
  uint8_t *colors;   // NULL if the frame has none
  uint32_t points;
  int ok;
} yardstick_cloud;

yardstick_cloud yardstick_decode(const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
