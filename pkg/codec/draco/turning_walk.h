// Decodes trees that cut the axes in turn and have their numbers as bits in one stream: Draco's levels 0 to 3, which
// are speeds 7 to 10. It is an alternative implementation of TreeDecoder's traversal. At most nodes of such a tree, all
// points are on one side, which is coded as half of the node's points: a comparison of the next bits with a pattern
// finds consecutive levels of that kind, which are processed at once. Processors can rarely predict where a tree
// divides, so values that depend on it are computed without branches. This needs two thirds of the time.
#ifndef VOLSFU_DRACO_TURNING_WALK_H_
#define VOLSFU_DRACO_TURNING_WALK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "bit_window.h"
#include "inside.h"
#include "points.h"

namespace volsfu {

// The maximum bits of a coordinate: lanes have 16.
constexpr int kMostTurningBits = 16;

// Returns the axis that is cut at a depth: Draco starts with the axis after the first.
template <int kDimensions>
constexpr int AxisAtDepth(int depth) {
  return (depth + 1) % kDimensions;
}

// Tables of the traversal, the same for all frames.
template <int kDimensions>
struct TurningTables {
  typedef uint16_t Lanes __attribute__((vector_size(16)));

  // Nodes with fewer points may skip several levels at a time. There are almost none with more.
  static constexpr uint32_t kFew = 64;

  // For the present axis of the turn and the next bits, one for each axis: ones in the lanes of the axes with a bit of
  // one.
  std::array<std::array<Lanes, 1 << kDimensions>, kDimensions> sides;
  // One in the lane of the axis that is cut.
  std::array<Lanes, kDimensions> only;
  // Half of a node's points, repeated as often as it fits, and 256 divided by its number of bits.
  std::array<uint64_t, kFew> halves;
  std::array<uint32_t, kFew> levels_per_bit;

  TurningTables() : sides{}, only{}, halves{}, levels_per_bit{} {
    for (int turn = 0; turn < kDimensions; ++turn) {
      only[turn][AxisAtDepth<kDimensions>(turn)] = 0xffff;
      for (uint32_t bits = 0; bits < 1u << kDimensions; ++bits) {
        for (int k = 0; k < kDimensions; ++k) {
          if (bits >> (kDimensions - 1 - k) & 1) sides[turn][bits][AxisAtDepth<kDimensions>(turn + k)] = 0xffff;
        }
      }
    }
    for (uint32_t size = 2; size < kFew; ++size) {
      const int bits = 31 - __builtin_clz(size);
      for (int at = 64 - bits; at >= 0; at -= bits) halves[size] |= static_cast<uint64_t>(size / 2) << at;
      // Rounded up, it is exact for up to 32 bits.
      levels_per_bit[size] = (256 + bits - 1) / bits;
    }
  }
};

template <class NumbersT, int kDimensions>
class TurningDecoder {
 public:
  TurningDecoder(const volsfu_grid &grid, uint32_t points, float *positions, uint8_t *colors)
      : grid_(grid),
        step_(grid.range / static_cast<float>((1u << grid.bits) - 1)),
        points_(points),
        positions_(positions),
        colors_(colors) {}

  // Decodes the data after the number of bits and that of points.
  bool Decode(int bit_length, draco::DecoderBuffer *in) {
    bit_length_ = bit_length;
    BitWindow<DirectWords> axes;
    if (!numbers_.Start(in) || !rest_.Start(in) || !axes.Start(in) || !halves_.Start(in)) return false;
    Weigh();
    return Walk() && BitLength(all_steps_) <= grid_.bits && BitLength(all_colors_) <= 8 && !numbers_.Exhausted() && !rest_.Exhausted() &&
           !halves_.Exhausted();
  }

 private:
  typedef TurningTables<kDimensions> Tables;
  typedef typename Tables::Lanes Lanes;

  static const Tables &SharedTables() {
    static const Tables tables;
    return tables;
  }

  struct Node {
    Lanes base;  // the common bits of all its points
    uint32_t size;
    int32_t depth;  // the number of those bits
  };

  // For each depth, the bit decided by the next cut of each axis.
  void Weigh() {
    for (int depth = 0; depth <= bit_length_ * kDimensions; ++depth) {
      Lanes weights = {};
      for (int k = 0; k < kDimensions; ++k) {
        const int shift = bit_length_ - 1 - (depth + k) / kDimensions;
        if (shift >= 0) weights[AxisAtDepth<kDimensions>(depth + k)] = static_cast<uint16_t>(1u << shift);
      }
      weights_[depth] = weights;
      turn_[depth] = static_cast<uint8_t>(depth % kDimensions);
    }
  }

  // Descends the tree. The halves sum up to the whole, so that points_ are emitted; every node consumes a level, so the
  // loop ends for any data.
  bool Walk() {
    const Tables &tables = SharedTables();
    const int bottom = bit_length_ * kDimensions;
    // One of two halves waits: at most one node per depth.
    std::array<Node, kMostTurningBits * kDimensions + 1> waiting;
    int top = 0;
    Node node = {{}, points_, 0};
    for (;;) {
      if (node.size <= 2 || node.depth == bottom) {
        if (!Emit(node, bottom)) return false;
        if (top == 0) return true;
        node = waiting[--top];
        continue;
      }
      const int bits = 31 - __builtin_clz(node.size);
      const uint32_t half = node.size / 2;
      if (node.size < Tables::kFew) {
        // The bit after the 32 valid ones always differs.
        const int same = __builtin_clzll((numbers_.Peek() ^ tables.halves[node.size]) | uint64_t{1} << 31);
        int levels = std::min(static_cast<int>(static_cast<uint32_t>(same) * tables.levels_per_bit[node.size] >> 8), bottom - node.depth);
        if (levels > 0) {
          numbers_.Skip(levels * bits);
          Descend(tables, &node, levels);
          // The next number belongs to the same node, or the node has no levels left.
          if (levels * bits + bits > 32 || node.depth == bottom) continue;
        }
      }
      const uint32_t less = numbers_.Get(bits);
      if (less >= half) {
        if (less > half) return false;
        Descend(tables, &node, 1);
        continue;
      }
      // A bit selects whether the smaller half is the lower one, unless both have the same size.
      const uint32_t smaller = half - less, larger = node.size - smaller;
      const uint32_t asked = smaller != larger;
      const uint32_t flipped = asked & ~static_cast<uint32_t>(halves_.Peek() >> 63);
      halves_.Skip(static_cast<int>(asked));
      const uint32_t low = smaller + ((larger - smaller) & -flipped);
      Node &lower = waiting[top++];
      lower.base = node.base;
      lower.size = low;
      lower.depth = node.depth + 1;
      node.base |= weights_[node.depth] & tables.only[turn_[node.depth]];
      node.size -= low;
      ++node.depth;
    }
  }

  // Descends the given number of levels, 1 to 32, with all points of the node on the side of the corresponding bit.
  void Descend(const Tables &tables, Node *node, int levels) {
    uint64_t sides = halves_.Peek() >> (64 - levels) << (64 - levels);
    halves_.Skip(levels);
    for (; levels > 0; levels -= kDimensions) {
      node->base |= tables.sides[turn_[node->depth]][sides >> (64 - kDimensions)] & weights_[node->depth];
      sides <<= kDimensions;
      node->depth += std::min(levels, kDimensions);
    }
  }

  // Completes the points of a node with the remaining bits, axis by axis, starting at the one that is cut next, and
  // emits them.
  bool Emit(const Node &node, int bottom) {
    uint16_t base[8];
    std::memcpy(base, &node.base, sizeof(base));
    const int turn = turn_[node.depth], bits = bit_length_ - node.depth / kDimensions;
    for (uint32_t i = 0; i < node.size; ++i) {
      uint32_t rest[kDimensions] = {};
      if (node.depth < bottom) ReadRest(turn, bits, rest);
      for (int a = 0; a < 3; ++a) {
        const uint32_t steps = base[a] | rest[a];
        all_steps_ |= steps;
        positions_[a] = static_cast<float>(static_cast<int32_t>(steps)) * step_ + grid_.min[a];
      }
      positions_ += 3;
      if (kDimensions == kColored) {
        for (int a = 3; a < kDimensions; ++a) {
          const uint32_t color = base[a] | rest[a];
          all_colors_ |= color;
          *colors_++ = static_cast<uint8_t>(color);
        }
      }
    }
    return !rest_.Exhausted();
  }

  // Reads the remaining bits of a point: the given number for each axis that is not yet cut in this turn, and one less
  // for the others. Except in clouds of a few points, three axes at a time fit into 32 bits.
  void ReadRest(int turn, int bits, uint32_t *rest) {
    const int cut = kDimensions - turn;  // the number of axes before those that are cut
    if (3 * bits > 32) {
      for (int k = 0; k < kDimensions; ++k) rest[AxisAtDepth<kDimensions>(turn + k)] = rest_.Get(bits - (k >= cut));
      return;
    }
    for (int k = 0; k < kDimensions; k += 3) {
      const int second = bits - (k + 1 >= cut), third = bits - (k + 2 >= cut);
      const uint32_t all = rest_.Get(bits - (k >= cut) + second + third);
      rest[AxisAtDepth<kDimensions>(turn + k)] = all >> (second + third);
      rest[AxisAtDepth<kDimensions>(turn + k + 1)] = all >> third & ((1u << second) - 1);
      rest[AxisAtDepth<kDimensions>(turn + k + 2)] = all & ((1u << third) - 1);
    }
  }

  const volsfu_grid grid_;
  const float step_;
  const uint32_t points_;
  float *positions_;
  uint8_t *colors_;
  uint32_t all_steps_ = 0, all_colors_ = 0;
  int bit_length_ = 0;
  std::array<Lanes, kMostTurningBits * kDimensions + 1> weights_;
  std::array<uint8_t, kMostTurningBits * kDimensions + 1> turn_;
  BitWindow<NumbersT> numbers_;
  BitWindow<DirectWords> rest_, halves_;
};

}  // namespace volsfu

#endif
