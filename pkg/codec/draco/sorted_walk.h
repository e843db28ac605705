// The traversal of Draco's levels 0 to 5, which cut the axes in turn. This is the order of a Morton curve in the
// dimensions of the tree: points sorted along it once are in the order of the whole tree, and a search replaces the
// division at every node. Draco's encoder divides at every one of up to 66 levels instead, which needs three times as
// long.
#ifndef VOLSFU_DRACO_SORTED_WALK_H_
#define VOLSFU_DRACO_SORTED_WALK_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "bits.h"
#include "points.h"

namespace volsfu {

// A byte's bits, kDimensions apart.
template <int kDimensions>
const std::array<uint64_t, 256> &SpreadTable() {
  static const std::array<uint64_t, 256> table = [] {
    std::array<uint64_t, 256> spread{};
    for (int value = 0; value < 256; ++value) {
      for (int bit = 0; bit < 8; ++bit) spread[value] |= static_cast<uint64_t>(value >> bit & 1) << (bit * kDimensions);
    }
    return spread;
  }();
  return table;
}

template <class T, class NumbersT, int kDimensions>
class SortedWalk {
 public:
  typedef typename Lanes<T>::Point Point;

  // Encodes the points; if order is not null, it receives the indices of the points in decoding order.
  void Encode(const std::vector<Point> &points, int bit_length, uint32_t *order, draco::EncoderBuffer *out) {
    points_ = points.data();
    order_ = order;
    bit_length_ = bit_length;
    Sort(static_cast<uint32_t>(points.size()));
    numbers_.Start();
    rest_.Start();
    axes_.Start();
    halves_.Start();
    Walk(static_cast<uint32_t>(points.size()));
    numbers_.Finish(out);
    rest_.Finish(out);
    axes_.Finish(out);
    halves_.Finish(out);
  }

 private:
  // The bits of the curve for sorting: the first eight of each coordinate with colours, the first 16 without, 48 in
  // both cases. Few points have more common bits; those are divided individually.
  static constexpr int kSortedBits = 48 / kDimensions;
  static constexpr int kSortedDepth = kSortedBits * kDimensions;

  // Returns the axis that is cut at a depth: Draco starts with the axis after the first.
  static constexpr int AxisAt(int depth) { return (depth + 1) % kDimensions; }

  // A point's position on the curve, from bit kSortedDepth-1 down, and its index.
  struct Entry {
    uint64_t place;
    uint32_t index;
  };

  // Points first..last-1 have the same bits above the depth.
  struct Node {
    uint32_t first, last;
    int depth;
  };

  void Sort(uint32_t count) {
    const std::array<uint64_t, 256> &spread = SpreadTable<kDimensions>();
    constexpr int kDigits = kSortedDepth / 8;
    std::array<std::array<uint32_t, 256>, kDigits> begin{};
    entries_.resize(count);
    sorted_.resize(count);
    const int down = std::max(bit_length_ - kSortedBits, 0), up = std::max(kSortedBits - bit_length_, 0);
    for (uint32_t i = 0; i < count; ++i) {
      uint64_t place = 0;
      for (int turn = 0; turn < kDimensions; ++turn) {
        const uint32_t top = static_cast<uint32_t>(points_[i][AxisAt(turn)]) >> down << up;
        for (int bits = 0; bits < kSortedBits; bits += 8) place |= spread[top >> bits & 255] << (bits * kDimensions + kDimensions - 1 - turn);
      }
      entries_[i] = {place, i};
      for (int digit = 0; digit < kDigits; ++digit) ++begin[digit][place >> (8 * digit) & 255];
    }
    for (int digit = 0; digit < kDigits; ++digit) {
      uint32_t sum = 0;
      bool same = false;
      for (uint32_t &slot : begin[digit]) {
        same = same || slot == count;
        sum += std::exchange(slot, sum);
      }
      if (same) continue;
      for (const Entry &entry : entries_) sorted_[begin[digit][entry.place >> (8 * digit) & 255]++] = entry;
      entries_.swap(sorted_);
    }
  }

  void Walk(uint32_t count) {
    const int bottom = bit_length_ * kDimensions;
    // One of two halves waits: at most one node per depth, and one more.
    std::array<Node, 32 * kDimensions + 2> waiting;
    int top = 0;
    waiting[top++] = {0, count, 0};
    while (top > 0) {
      Node node = waiting[--top];
      const uint32_t size = node.last - node.first;
      if (size <= 2) {
        Emit(node);
        if (node.depth < bottom) EncodeRest(node);
        continue;
      }
      const int number_bits = 31 - __builtin_clz(size);
      SkipShared(&node, std::min(bottom, kSortedDepth), number_bits);
      uint32_t split = node.first;
      for (; node.depth < bottom; ++node.depth) {
        split = node.depth < kSortedDepth ? Search(node) : Partition(node);
        if (split != node.first && split != node.last) break;
        halves_.Put(1, split == node.first);
        numbers_.Put(number_bits, size / 2);
      }
      if (node.depth == bottom) {
        Emit(node);
        continue;
      }
      const uint32_t low = split - node.first, high = node.last - split;
      if (low != high) halves_.Put(1, low < high);
      numbers_.Put(number_bits, size / 2 - std::min(low, high));
      waiting[top++] = {node.first, split, node.depth + 1};
      waiting[top++] = {split, node.last, node.depth + 1};
    }
  }

  // Writes the levels with all of the node's points on one side, and moves the node below them. The points are sorted:
  // the common bits of the first and the last one are common to all.
  void SkipShared(Node *node, int limit, int number_bits) {
    if (node->depth >= limit) return;
    const uint64_t place = entries_[node->first].place;
    const uint64_t differing = place ^ entries_[node->last - 1].place;
    const int shared = differing == 0 ? limit : std::min(limit, kSortedDepth - 64 + __builtin_clzll(differing));
    const int levels = shared - node->depth;
    for (int left = levels; left > 0;) {
      const int step = std::min(left, 32);
      left -= step;
      halves_.Put(step, static_cast<uint32_t>(place >> (kSortedDepth - shared + left) & ((uint64_t{1} << step) - 1)));
    }
    numbers_.Repeat(levels, number_bits, (node->last - node->first) / 2);
    node->depth = shared;
  }

  // Finds the first point above the cut, without branches that depend on the points.
  uint32_t Search(const Node &node) const {
    const uint64_t bit = uint64_t{1} << (kSortedDepth - 1 - node.depth);
    uint32_t split = node.first;
    if (node.last - node.first <= 8) {
      for (uint32_t i = node.first; i < node.last; ++i) split += (entries_[i].place & bit) == 0;
      return split;
    }
    for (uint32_t left = node.last - node.first; left > 0;) {
      const uint32_t half = (left + 1) / 2;
      split += entries_[split + half - 1].place & bit ? 0 : half;
      left -= half;
    }
    return split;
  }

  uint32_t Partition(const Node &node) {
    const int axis = AxisAt(node.depth), shift = bit_length_ - 1 - node.depth / kDimensions;
    const auto split = std::partition(entries_.begin() + node.first, entries_.begin() + node.last,
                                      [&](const Entry &entry) { return (points_[entry.index][axis] >> shift & 1) == 0; });
    return static_cast<uint32_t>(split - entries_.begin());
  }

  // Records that the node's points are decoded next.
  void Emit(const Node &node) {
    if (order_ == nullptr) return;
    for (uint32_t i = node.first; i < node.last; ++i) *order_++ = entries_[i].index;
  }

  // Writes the remaining bits of one or two points: every axis from the next one to be cut, those cut in this turn with
  // one bit less.
  void EncodeRest(const Node &node) {
    const int turn = node.depth % kDimensions, bits = bit_length_ - node.depth / kDimensions;
    const int total = bits * kDimensions - turn;
    for (uint32_t i = node.first; i < node.last; ++i) {
      const Point &point = points_[entries_[i].index];
      uint32_t gathered = 0;
      for (int k = 0; k < kDimensions; ++k) {
        const int axis_bits = bits - (turn + k >= kDimensions);
        const uint32_t value = point[AxisAt(turn + k)] & ((1u << axis_bits) - 1);
        if (total <= 32) {
          gathered = gathered << axis_bits | value;
        } else {
          rest_.Put(axis_bits, value);
        }
      }
      if (total <= 32) rest_.Put(total, gathered);
    }
  }

  const Point *points_ = nullptr;
  uint32_t *order_ = nullptr;
  int bit_length_ = 0;
  std::vector<Entry> entries_, sorted_;
  NumbersT numbers_;
  BitWriter rest_, axes_, halves_;
};

}  // namespace volsfu

#endif
