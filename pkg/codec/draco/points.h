// Points as the encoder walks over them: quantised coordinates and colours as six integers.
#ifndef VOLSFU_DRACO_POINTS_H_
#define VOLSFU_DRACO_POINTS_H_

#include <cstdint>
#include <vector>

#include "tree.h"

namespace volsfu {

// The dimensions of the tree: x, y, z, red, green, blue.
constexpr int kDimensions = 6;

// At level 6, nodes of fewer points cut the axis cut least so far, which needs not be written.
constexpr uint32_t kSelectFrom = 64;

// A point in one or two vector registers; the last two lanes are zero. 16 bits per lane serve up to 16 bits per coordinate.
template <class T>
struct Lanes;
template <>
struct Lanes<uint16_t> {
  typedef uint16_t Point __attribute__((vector_size(16)));
};
template <>
struct Lanes<uint32_t> {
  typedef uint32_t Point __attribute__((vector_size(32)));
};

// The number of bits of the largest of all values.
inline int BitLength(uint32_t all_values) { return all_values == 0 ? 0 : 32 - __builtin_clz(all_values); }

// Quantises the points and returns the number of bits that their largest value has.
template <class T>
int Quantize(const float *positions, const uint8_t *colors, uint32_t count, const volsfu_grid &grid,
             std::vector<typename Lanes<T>::Point> *points) {
  points->resize(count);
  const double scale = static_cast<double>((1u << grid.bits) - 1) / static_cast<double>(grid.range);
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; ++i) {
    typename Lanes<T>::Point point = {};
    for (int axis = 0; axis < 3; ++axis) {
      const float value = positions[3 * i + axis];
      // What is not a number goes to the lower corner.
      const float above = value > grid.min[axis] ? value : grid.min[axis];
      const float inside = above < grid.max[axis] ? above : grid.max[axis];
      const uint32_t steps = static_cast<uint32_t>((static_cast<double>(inside) - static_cast<double>(grid.min[axis])) * scale + 0.5);
      const uint32_t color = colors[3 * i + axis];
      all |= steps | color;
      point[axis] = static_cast<T>(steps);
      point[3 + axis] = static_cast<T>(color);
    }
    (*points)[i] = point;
  }
  return BitLength(all);
}

}  // namespace volsfu

#endif
