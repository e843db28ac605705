// Google's Draco as it is, through its own encoder and decoder.
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
} reference_frame;

// NULL data where Draco fails. Method 0 is sequential coding, 1 the kd-tree.
reference_frame reference_encode(const float *positions, const uint8_t *colors, uint32_t points, const float *origin, float range,
                                 int bits, int speed, int method);

typedef struct {
  float *positions;  // both freed with free()
  uint8_t *colors;
  uint32_t points;
  int ok;
} reference_cloud;

reference_cloud reference_decode(const uint8_t *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
