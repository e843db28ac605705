// Frames with bytes derived from their names, so that receivers know the expected bytes.
#ifndef FRAMES_H_
#define FRAMES_H_

#include <stddef.h>
#include <stdint.h>

// Returns the size of a frame: every tenth of the second tile is empty.
static size_t frame_size(uint32_t number, uint32_t tile, uint32_t quality) {
  if (tile == 1 && number % 10 == 9) return 0;
  return 2500 * (quality + 1) + (number * 7919 + tile * 104729) % 2000;
}

// Fills a frame's bytes (xorshift).
static void frame_fill(uint8_t *data, size_t size, uint32_t number, uint32_t tile, uint32_t quality) {
  uint32_t state = (number * 2654435761u ^ tile * 40503u ^ quality * 97u) | 1;
  for (size_t i = 0; i < size; i++) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    data[i] = (uint8_t)state;
  }
}

// FNV-1a over 64 bits.
static uint64_t hash_of(const uint8_t *data, size_t size) {
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 1099511628211u;
  return hash;
}

#endif
