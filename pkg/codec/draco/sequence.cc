//go:build cgo && !portable

#include "sequence.h"

#include <cstring>
#include <vector>

#include "draco/compression/entropy/symbol_decoding.h"
#include "draco/core/decoder_buffer.h"
#include "draco/core/varint_decoding.h"
#include "inside.h"

namespace volsfu {
namespace {

// Reads an attribute of three components with values from 0 to largest.
bool DecodeAttribute(uint32_t points, uint32_t largest, draco::DecoderBuffer *in, std::vector<uint32_t> *values) {
  int8_t prediction = 0, transform = 0;
  uint8_t coded = 0;
  if (!in->Decode(&prediction) || prediction != draco::PREDICTION_DIFFERENCE) return false;
  if (!in->Decode(&transform) || transform != draco::PREDICTION_TRANSFORM_WRAP) return false;
  if (!in->Decode(&coded) || coded != 1) return false;
  const uint32_t size = 3 * points;
  if (!draco::DecodeSymbols(size, 3, in, values->data())) return false;
  Wrap wrap = {};
  if (!in->Decode(&wrap.min) || !in->Decode(&wrap.max)) return false;
  if (wrap.min < 0 || wrap.max < wrap.min || static_cast<uint32_t>(wrap.max) > largest) return false;
  const int64_t range = int64_t{wrap.max} - wrap.min + 1;
  for (uint32_t i = 0; i < size; ++i) {
    const uint32_t symbol = (*values)[i];
    const int64_t difference = symbol & 1 ? -int64_t{symbol >> 1} - 1 : int64_t{symbol >> 1};
    int64_t value = wrap.Clamped(i < 3 ? 0 : static_cast<int32_t>((*values)[i - 3])) + difference;
    if (value > wrap.max) {
      value -= range;
    } else if (value < wrap.min) {
      value += range;
    }
    if (value < wrap.min || value > wrap.max) return false;
    (*values)[i] = static_cast<uint32_t>(value);
  }
  return true;
}

bool DecodeSequence(const volsfu_grid &grid, uint32_t points, int colored, float *positions, uint8_t *colors, draco::DecoderBuffer *in) {
  std::vector<uint32_t> values(3 * size_t{points});
  const uint32_t largest = (1u << grid.bits) - 1;
  if (!DecodeAttribute(points, largest, in, &values)) return false;
  const float step = grid.range / static_cast<float>(largest);
  for (size_t i = 0; i < values.size(); ++i) positions[i] = static_cast<float>(static_cast<int32_t>(values[i])) * step + grid.min[i % 3];
  if (!colored) return true;
  if (!DecodeAttribute(points, 255, in, &values)) return false;
  for (size_t i = 0; i < values.size(); ++i) colors[i] = static_cast<uint8_t>(values[i]);
  return true;
}

}  // namespace
}  // namespace volsfu

extern "C" volsfu_decoded volsfu_decode_sequence(const uint8_t *data, size_t size, volsfu_grid grid, uint32_t points, int colored,
                                                 float *positions, uint8_t *colors) {
  try {
    draco::DecoderBuffer in;
    in.Init(reinterpret_cast<const char *>(data), size, DRACO_BITSTREAM_VERSION(2, 3));
    if (!colored) std::memset(colors, volsfu::kWhite, 3 * size_t{points});
    const bool decoded = volsfu::DecodeSequence(grid, points, colored, positions, colors, &in);
    return {size - static_cast<size_t>(in.remaining_size()), decoded ? VOLSFU_OK : VOLSFU_MALFORMED};
  } catch (...) {
    // Only allocations throw here.
    return {0, VOLSFU_NO_MEMORY};
  }
}
