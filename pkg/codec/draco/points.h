// Points for the encoder: quantised coordinates, with colours if there are any, as three or six integers.
#ifndef VOLSFU_DRACO_POINTS_H_
#define VOLSFU_DRACO_POINTS_H_

#include <cstdint>
#include <vector>

#include "inside.h"

namespace volsfu {

// The dimensions of the tree: x, y, z, and red, green, blue if there are colours.
constexpr int kPlain = 3;
constexpr int kColored = 6;

// The value of missing colours: codec.White.
constexpr int kWhite = 255;

// At level 6, nodes with fewer points cut the least often cut axis, which need not be written.
constexpr uint32_t kSelectFrom = 64;

// A point in one or two vector registers. 16 bits per lane are enough for up to 16 bits per coordinate. The point's
// index in the cloud follows the dimensions, and moves with it.
template <class T>
struct Lanes;
template <>
struct Lanes<uint16_t> {
  typedef uint16_t Point __attribute__((vector_size(16)));
  static void SetIndex(Point *point, uint32_t index) {
    (*point)[6] = static_cast<uint16_t>(index);
    (*point)[7] = static_cast<uint16_t>(index >> 16);
  }
  static uint32_t Index(const Point &point) { return point[6] | static_cast<uint32_t>(point[7]) << 16; }
};
template <>
struct Lanes<uint32_t> {
  typedef uint32_t Point __attribute__((vector_size(32)));
  static void SetIndex(Point *point, uint32_t index) { (*point)[7] = index; }
  static uint32_t Index(const Point &point) { return point[7]; }
};

// Returns the number of bits of the largest value.
inline int BitLength(uint32_t all_values) { return all_values == 0 ? 0 : 32 - __builtin_clz(all_values); }

// Returns the grid step of a coordinate; scale is steps per metre.
inline uint32_t Step(float value, const volsfu_grid &grid, int axis, double scale) {
  // A coordinate that is not a number is mapped to the lower corner.
  const float above = value > grid.min[axis] ? value : grid.min[axis];
  const float inside = above < grid.max[axis] ? above : grid.max[axis];
  return static_cast<uint32_t>((static_cast<double>(inside) - static_cast<double>(grid.min[axis])) * scale + 0.5);
}

// Returns the steps per metre.
inline double Scale(const volsfu_grid &grid) { return static_cast<double>((1u << grid.bits) - 1) / static_cast<double>(grid.range); }

// Quantises the points and returns the number of bits of their largest value.
template <class T, int kDimensions>
int Quantize(const float *positions, const uint8_t *colors, uint32_t count, const volsfu_grid &grid,
             std::vector<typename Lanes<T>::Point> *points) {
  points->resize(count);
  const double scale = Scale(grid);
  uint32_t all = 0;
  for (uint32_t i = 0; i < count; ++i) {
    typename Lanes<T>::Point point = {};
    for (int axis = 0; axis < 3; ++axis) {
      const uint32_t steps = Step(positions[3 * i + axis], grid, axis, scale);
      all |= steps;
      point[axis] = static_cast<T>(steps);
      if (kDimensions == kColored) {
        const uint32_t color = colors[3 * i + axis];
        all |= color;
        point[3 + axis] = static_cast<T>(color);
      }
    }
    Lanes<T>::SetIndex(&point, i);
    (*points)[i] = point;
  }
  return BitLength(all);
}

}  // namespace volsfu

#endif
