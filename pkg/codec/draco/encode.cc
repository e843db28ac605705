//go:build cgo

#include <memory>
#include <new>

#include "selective_walk.h"
#include "sorted_walk.h"
#include "tree.h"

namespace volsfu {
namespace {

// Everything that coordinates of one width need, at any level; what is not used has no memory.
template <class T>
struct TreeEncoder {
  void Encode(const float *positions, const uint8_t *colors, uint32_t count, const volsfu_grid &grid, int level,
              draco::EncoderBuffer *out) {
    const int bit_length = Quantize<T>(positions, colors, count, grid, &points);
    out->Encode(static_cast<uint32_t>(bit_length));
    out->Encode(count);
    if (level >= 6) {
      selective.Encode(&points, bit_length, out);
    } else if (level >= 4) {
      folded.Encode(points, bit_length, out);
    } else if (level >= 2) {
      entropy.Encode(points, bit_length, out);
    } else {
      direct.Encode(points, bit_length, out);
    }
  }

  std::vector<typename Lanes<T>::Point> points;
  SortedWalk<T, DirectNumbers> direct;
  SortedWalk<T, EntropyNumbers> entropy;
  SortedWalk<T, FoldedNumbers> folded;
  SelectiveWalk<T> selective;
};

}  // namespace
}  // namespace volsfu

struct volsfu_encoder {
  volsfu::TreeEncoder<uint16_t> narrow;
  volsfu::TreeEncoder<uint32_t> wide;
  draco::EncoderBuffer buffer;
};

extern "C" volsfu_encoder *volsfu_encoder_new(void) { return new (std::nothrow) volsfu_encoder; }

extern "C" void volsfu_encoder_free(volsfu_encoder *encoder) { delete encoder; }

extern "C" volsfu_encoded volsfu_encode(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points,
                                        volsfu_grid grid, int level) {
  try {
    encoder->buffer.Clear();
    if (grid.bits <= 16) {
      encoder->narrow.Encode(positions, colors, points, grid, level, &encoder->buffer);
    } else {
      encoder->wide.Encode(positions, colors, points, grid, level, &encoder->buffer);
    }
  } catch (...) {
    // Nothing here throws but allocation.
    return {nullptr, 0, VOLSFU_NO_MEMORY};
  }
  return {reinterpret_cast<const uint8_t *>(encoder->buffer.data()), encoder->buffer.size(), VOLSFU_OK};
}
