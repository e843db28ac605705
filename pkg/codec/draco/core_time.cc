//go:build cgo && !portable

#include <time.h>

#include <cstdlib>

#include "inside.h"

namespace {

// Returns this thread's processor time.
int64_t Now() {
  struct timespec now;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) != 0) std::abort();
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

}  // namespace

extern "C" int64_t volsfu_time_encode(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points,
                                      volsfu_grid grid, int level, int sequential, int rounds) {
  const int64_t begin = Now();
  for (int i = 0; i < rounds; ++i) {
    const volsfu_encoded out = sequential ? volsfu_encode_sequence(encoder, positions, colors, points, grid, level)
                                          : volsfu_encode(encoder, positions, colors, points, grid, level, nullptr);
    if (out.status != VOLSFU_OK) return -1;
  }
  return (Now() - begin) / rounds;
}

extern "C" int64_t volsfu_time_decode(const uint8_t *data, size_t size, int level, volsfu_grid grid, uint32_t points, int colored,
                                      int sequential, float *positions, uint8_t *colors, int rounds) {
  const int64_t begin = Now();
  for (int i = 0; i < rounds; ++i) {
    const volsfu_decoded out = sequential ? volsfu_decode_sequence(data, size, grid, points, colored, positions, colors)
                                          : volsfu_decode(data, size, level, grid, points, colored, positions, colors);
    if (out.status != VOLSFU_OK) return -1;
  }
  return (Now() - begin) / rounds;
}
