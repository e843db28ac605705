//go:build cgo && !portable

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "bits.h"
#include "inside.h"
#include "points.h"
#include "turning_walk.h"

namespace volsfu {
namespace {

template <class NumbersT, bool kSelect, int kDimensions>
class TreeDecoder {
 public:
  TreeDecoder(const volsfu_grid &grid, uint32_t points, float *positions, uint8_t *colors)
      : grid_(grid),
        step_(grid.range / static_cast<float>((1u << grid.bits) - 1)),
        points_(points),
        positions_(positions),
        colors_(colors) {}

  bool Decode(int bit_length, draco::DecoderBuffer *in) {
    bit_length_ = bit_length;
    if (!numbers_.Start(in) || !rest_.Start(in) || !axes_.Start(in) || !halves_.Start(in)) return false;
    return Walk() && BitLength(all_steps_) <= grid_.bits && BitLength(all_colors_) <= 8 && !numbers_.Exhausted() && !rest_.Exhausted() &&
           !axes_.Exhausted() && !halves_.Exhausted();
  }

 private:
  struct Node {
    std::array<uint32_t, kDimensions> base;  // the common bits of all its points
    std::array<uint8_t, kDimensions> levels;  // the number of those bits, from the top
    uint8_t axis;                              // the last cut axis
    uint32_t size;
  };

  // Descends the tree. The halves never exceed the whole, so that at most points_ are emitted; every node consumes a
  // level, so the loop ends for any data.
  bool Walk() {
    std::array<Node, 32 * kDimensions + 2> waiting;
    int top = 1;
    waiting[0] = {};
    waiting[0].size = points_;
    while (top > 0) {
      Node &node = waiting[top - 1];
      const int axis = NextAxis(node);
      if (axis >= kDimensions) return false;
      const int bits = bit_length_ - node.levels[axis];
      if (bits == 0 || node.size <= 2) {
        for (uint32_t i = 0; i < node.size; ++i) EmitWithRest(node, axis, bits != 0);
        if (rest_.Exhausted()) return false;
        --top;
        continue;
      }
      uint32_t low = node.size / 2;
      const uint32_t less = numbers_.Get(31 - __builtin_clz(node.size));
      if (less > low) return false;
      low -= less;
      uint32_t high = node.size - low;
      if (low != high && halves_.Get(1) == 0) std::swap(low, high);
      ++node.levels[axis];
      node.axis = static_cast<uint8_t>(axis);
      const uint32_t cut = 1u << (bits - 1);
      if (low == 0) {
        node.base[axis] += cut;
        continue;
      }
      node.size = low;
      if (high > 0) {
        Node &upper = waiting[top++];
        upper = node;
        upper.size = high;
        upper.base[axis] += cut;
      }
    }
    return true;
  }

  int NextAxis(const Node &node) {
    if (!kSelect) return node.axis == kDimensions - 1 ? 0 : node.axis + 1;
    if (node.size >= kSelectFrom) return static_cast<int>(axes_.Get(4));
    int axis = 0;
    for (int a = 1; a < kDimensions; ++a) {
      if (node.levels[a] < node.levels[axis]) axis = a;
    }
    return axis;
  }

  // Completes a point of the node with the remaining bits of each axis, starting at the given one, and emits it.
  void EmitWithRest(const Node &node, int axis, bool rest) {
    std::array<uint32_t, kDimensions> point = node.base;
    if (rest) {
      for (int k = 0; k < kDimensions; ++k) {
        point[axis] |= rest_.Get(bit_length_ - node.levels[axis]);
        axis = axis == kDimensions - 1 ? 0 : axis + 1;
      }
    }
    for (int a = 0; a < 3; ++a) *positions_++ = static_cast<float>(static_cast<int32_t>(point[a])) * step_ + grid_.min[a];
    all_steps_ |= point[0] | point[1] | point[2];
    if (kDimensions == kColored) {
      for (int a = 3; a < kDimensions; ++a) {
        *colors_++ = static_cast<uint8_t>(point[a]);
        all_colors_ |= point[a];
      }
    }
  }

  const volsfu_grid grid_;
  const float step_;
  const uint32_t points_;
  float *positions_;
  uint8_t *colors_;
  uint32_t all_steps_ = 0, all_colors_ = 0;
  int bit_length_ = 0;
  NumbersT numbers_;
  BitReader rest_, axes_, halves_;
};

template <int kDimensions>
bool DecodeAt(int level, draco::DecoderBuffer *in, const volsfu_grid &grid, uint32_t points, float *positions, uint8_t *colors) {
  using Entropy = EntropyReader<draco::RAnsBitDecoder>;
  using Folded = EntropyReader<draco::FoldedBit32Decoder<draco::RAnsBitDecoder>>;
  uint32_t bit_length = 0, count = 0;
  if (!in->Decode(&bit_length) || !in->Decode(&count) || count != points) return false;
  const int most = kDimensions == kColored && grid.bits < 8 ? 8 : grid.bits, bits = static_cast<int>(bit_length);
  if (bit_length > static_cast<uint32_t>(most)) return false;
  if (level >= 6) return TreeDecoder<Folded, true, kDimensions>(grid, points, positions, colors).Decode(bits, in);
  if (level >= 4) return TreeDecoder<Folded, false, kDimensions>(grid, points, positions, colors).Decode(bits, in);
  if (bits <= kMostTurningBits) {
    if (level >= 2) return TurningDecoder<EntropyWords, kDimensions>(grid, points, positions, colors).Decode(bits, in);
    return TurningDecoder<DirectWords, kDimensions>(grid, points, positions, colors).Decode(bits, in);
  }
  if (level >= 2) return TreeDecoder<Entropy, false, kDimensions>(grid, points, positions, colors).Decode(bits, in);
  return TreeDecoder<BitReader, false, kDimensions>(grid, points, positions, colors).Decode(bits, in);
}

}  // namespace
}  // namespace volsfu

extern "C" volsfu_decoded volsfu_decode(const uint8_t *data, size_t size, int level, volsfu_grid grid, uint32_t points, int colored,
                                        float *positions, uint8_t *colors) {
  try {
    draco::DecoderBuffer in;
    in.Init(reinterpret_cast<const char *>(data), size, DRACO_BITSTREAM_VERSION(2, 3));
    if (!colored) std::memset(colors, volsfu::kWhite, 3 * size_t{points});
    const bool decoded = colored ? volsfu::DecodeAt<volsfu::kColored>(level, &in, grid, points, positions, colors)
                                 : volsfu::DecodeAt<volsfu::kPlain>(level, &in, grid, points, positions, colors);
    return {size - static_cast<size_t>(in.remaining_size()), decoded ? VOLSFU_OK : VOLSFU_MALFORMED};
  } catch (...) {
    // Only allocations throw here.
    return {0, VOLSFU_NO_MEMORY};
  }
}
