// The traversal of Draco's level 6, which cuts the axis with the most points on one side: frames are a fifth smaller.
// The choices are those of Draco's encoder. Draco counts the points of every node on every axis; this traversal finds
// all levels without a division at once, from the common bits of the node's points.
#ifndef VOLSFU_DRACO_SELECTIVE_WALK_H_
#define VOLSFU_DRACO_SELECTIVE_WALK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "bits.h"
#include "points.h"

namespace volsfu {

template <class T, int kDimensions>
class SelectiveWalk {
 public:
  typedef typename Lanes<T>::Point Point;

  // Encodes the points and changes their order; if order is not null, it receives the indices of the points in decoding
  // order.
  void Encode(std::vector<Point> *points, int bit_length, uint32_t *order, draco::EncoderBuffer *out) {
    points_ = points->data();
    order_ = order;
    bit_length_ = bit_length;
    numbers_.Start();
    rest_.Start();
    axes_.Start();
    halves_.Start();
    Walk(static_cast<uint32_t>(points->size()));
    numbers_.Finish(out);
    rest_.Finish(out);
    axes_.Finish(out);
    halves_.Finish(out);
  }

 private:
  struct Node {
    uint32_t first, last;
    std::array<uint8_t, kDimensions> levels;  // number of bits of each axis that are common to all points and already written
  };

  void Walk(uint32_t count) {
    // One of two halves waits: at most one node per depth, and one more.
    std::array<Node, 32 * kDimensions + 2> waiting;
    int top = 0;
    waiting[top++] = {0, count, {}};
    while (top > 0) {
      Node node = waiting[--top];
      const uint32_t size = node.last - node.first;
      if (size <= 2) {
        EncodeRest(node);
        continue;
      }
      const int axis = SkipShared(&node);
      if (axis < 0) {
        Emit(node);
        continue;
      }
      const uint32_t split = Partition(node, axis);
      const uint32_t low = split - node.first, high = node.last - split;
      if (low != high) halves_.Put(1, low < high);
      numbers_.Put(31 - __builtin_clz(size), size / 2 - std::min(low, high));
      ++node.levels[axis];
      waiting[top++] = {node.first, split, node.levels};
      waiting[top++] = {split, node.last, node.levels};
    }
  }

  // Returns the position of the next bit to be cut on an axis.
  int Shift(const Node &node, int axis) const { return bit_length_ - 1 - node.levels[axis]; }

  static int LeastCut(const Node &node) {
    int axis = 0;
    for (int a = 1; a < kDimensions; ++a) {
      if (node.levels[a] < node.levels[axis]) axis = a;
    }
    return axis;
  }

  // Writes the levels with all of the node's points on one side, and returns the axis of the first cut that divides
  // them, or -1 if they are all equal.
  int SkipShared(Node *node) {
    Point any = points_[node->first], every = any;
    for (uint32_t i = node->first + 1; i < node->last; ++i) {
      any |= points_[i];
      every &= points_[i];
    }
    const Point differing = any ^ every;
    const uint32_t size = node->last - node->first;
    const int number_bits = 31 - __builtin_clz(size);
    for (;;) {
      const int axis = size < kSelectFrom ? LeastCut(*node) : Select(*node, differing);
      if (size >= kSelectFrom) axes_.Put(4, axis);
      const int shift = Shift(*node, axis);
      if (shift < 0) return -1;
      if (differing[axis] >> shift & 1) return axis;
      halves_.Put(1, every[axis] >> shift & 1);
      numbers_.Put(number_bits, size / 2);
      ++node->levels[axis];
    }
  }

  // Returns the first axis for which the next cut keeps all points on one side, else the one with the most points on
  // one side; 0 if none can be cut.
  int Select(const Node &node, const Point &differing) const {
    Point cuts = {};
    bool open = false;
    for (int axis = 0; axis < kDimensions; ++axis) {
      const int shift = Shift(node, axis);
      if (shift < 0) continue;
      if ((differing[axis] >> shift & 1) == 0) return axis;
      cuts[axis] = static_cast<T>(1u << shift);
      open = true;
    }
    if (!open) return 0;
    std::array<uint32_t, kDimensions> below{};
    for (uint32_t i = node.first; i < node.last;) {
      // Lanes of 16 bits count up to 65,535.
      const uint32_t end = std::min(node.last, i + 0xffff);
      Point counts = {};
      for (; i < end; ++i) counts -= (Point)((points_[i] & cuts) == 0);
      for (int axis = 0; axis < kDimensions; ++axis) below[axis] += counts[axis];
    }
    const uint32_t size = node.last - node.first;
    uint32_t most = 0;
    int best = 0;
    for (int axis = 0; axis < kDimensions; ++axis) {
      const uint32_t side = std::max(below[axis], size - below[axis]);
      if (cuts[axis] != 0 && side > most) {
        most = side;
        best = axis;
      }
    }
    return best;
  }

  // Divides the points by the next bit of the axis with unconditional swaps: half of the branches would be
  // mispredicted.
  uint32_t Partition(const Node &node, int axis) {
    const int shift = Shift(node, axis);
    uint32_t split = node.first;
    for (uint32_t i = node.first; i < node.last; ++i) {
      const uint32_t low = ~(points_[i][axis] >> shift) & 1;
      std::swap(points_[i], points_[split]);
      split += low;
    }
    return split;
  }

  // Records that the node's points are decoded next.
  void Emit(const Node &node) {
    if (order_ == nullptr) return;
    for (uint32_t i = node.first; i < node.last; ++i) *order_++ = Lanes<T>::Index(points_[i]);
  }

  // Writes the remaining bits of one or two points, axis by axis, starting at the one to be cut next.
  void EncodeRest(const Node &node) {
    Emit(node);
    const int begin = LeastCut(node);
    int total = 0;
    for (int axis = 0; axis < kDimensions; ++axis) total += bit_length_ - node.levels[axis];
    for (uint32_t i = node.first; i < node.last; ++i) {
      uint32_t gathered = 0;
      for (int k = 0; k < kDimensions; ++k) {
        const int axis = (begin + k) % kDimensions;
        const int bits = bit_length_ - node.levels[axis];
        const uint32_t value = points_[i][axis] & ((1u << bits) - 1);
        if (total <= 32) {
          gathered = gathered << bits | value;
        } else {
          rest_.Put(bits, value);
        }
      }
      if (total <= 32) rest_.Put(total, gathered);
    }
  }

  Point *points_ = nullptr;
  uint32_t *order_ = nullptr;
  int bit_length_ = 0;
  FoldedNumbers numbers_;
  BitWriter rest_, axes_, halves_;
};

}  // namespace volsfu

#endif
