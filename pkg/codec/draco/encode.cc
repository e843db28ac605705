//go:build cgo && !portable

#include <memory>
#include <new>

#include "inside.h"
#include "selective_walk.h"
#include "sequence.h"
#include "sorted_walk.h"

namespace volsfu {
namespace {

// The working memory of trees with coordinates of one width, for any level; unused parts have no memory.
template <class T, int kDimensions>
struct TreeEncoder {
  void Encode(const float *positions, const uint8_t *colors, uint32_t count, const volsfu_grid &grid, int level, uint32_t *order,
              draco::EncoderBuffer *out) {
    const int bit_length = Quantize<T, kDimensions>(positions, colors, count, grid, &points);
    out->Encode(static_cast<uint32_t>(bit_length));
    out->Encode(count);
    if (level >= 6) {
      selective.Encode(&points, bit_length, order, out);
    } else if (level >= 4) {
      folded.Encode(points, bit_length, order, out);
    } else if (level >= 2) {
      entropy.Encode(points, bit_length, order, out);
    } else {
      direct.Encode(points, bit_length, order, out);
    }
  }

  std::vector<typename Lanes<T>::Point> points;
  SortedWalk<T, DirectNumbers, kDimensions> direct;
  SortedWalk<T, EntropyNumbers, kDimensions> entropy;
  SortedWalk<T, FoldedNumbers, kDimensions> folded;
  SelectiveWalk<T, kDimensions> selective;
};

}  // namespace
}  // namespace volsfu

struct volsfu_encoder {
  volsfu::TreeEncoder<uint16_t, volsfu::kColored> narrow;
  volsfu::TreeEncoder<uint32_t, volsfu::kColored> wide;
  volsfu::TreeEncoder<uint16_t, volsfu::kPlain> narrow_plain;
  volsfu::TreeEncoder<uint32_t, volsfu::kPlain> wide_plain;
  volsfu::SequenceEncoder sequence;
  draco::EncoderBuffer buffer;

  volsfu_encoded Encoded() const { return {reinterpret_cast<const uint8_t *>(buffer.data()), buffer.size(), VOLSFU_OK}; }
};

extern "C" volsfu_encoder *volsfu_encoder_new(void) { return new (std::nothrow) volsfu_encoder; }

extern "C" void volsfu_encoder_free(volsfu_encoder *encoder) { delete encoder; }

extern "C" volsfu_encoded volsfu_encode(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points,
                                        volsfu_grid grid, int level, uint32_t *order) {
  try {
    encoder->buffer.Clear();
    if (colors != nullptr && grid.bits <= 16) {
      encoder->narrow.Encode(positions, colors, points, grid, level, order, &encoder->buffer);
    } else if (colors != nullptr) {
      encoder->wide.Encode(positions, colors, points, grid, level, order, &encoder->buffer);
    } else if (grid.bits <= 16) {
      encoder->narrow_plain.Encode(positions, colors, points, grid, level, order, &encoder->buffer);
    } else {
      encoder->wide_plain.Encode(positions, colors, points, grid, level, order, &encoder->buffer);
    }
  } catch (...) {
    // Only allocations throw here.
    return {nullptr, 0, VOLSFU_NO_MEMORY};
  }
  return encoder->Encoded();
}

extern "C" volsfu_encoded volsfu_encode_sequence(volsfu_encoder *encoder, const float *positions, const uint8_t *colors, uint32_t points,
                                                 volsfu_grid grid, int level) {
  try {
    encoder->buffer.Clear();
    encoder->sequence.Encode(positions, colors, points, grid, level, &encoder->buffer);
  } catch (...) {
    // Only allocations throw here.
    return {nullptr, 0, VOLSFU_NO_MEMORY};
  }
  return encoder->Encoded();
}
