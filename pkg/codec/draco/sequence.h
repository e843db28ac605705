// Points in their order, as in Draco's sequential encoder: every attribute as differences from the previous point,
// wrapped around the attribute's range, and entropy-coded by Draco.
#ifndef VOLSFU_DRACO_SEQUENCE_H_
#define VOLSFU_DRACO_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "draco/compression/config/compression_shared.h"
#include "draco/compression/entropy/rans_symbol_encoder.h"
#include "draco/compression/entropy/symbol_encoding.h"
#include "draco/core/bit_utils.h"
#include "draco/core/encoder_buffer.h"
#include "draco/core/options.h"
#include "points.h"

namespace volsfu {

// The maximum bits of symbols that Draco codes with a single table; longer ones are coded by their length and their
// bits.
constexpr int kTableBits = 18;

// The range for wrapping differences.
struct Wrap {
  int32_t min, max;

  int32_t Clamped(int32_t value) const { return std::clamp(value, min, max); }

  // Returns the difference of a value from its prediction, shifted by the size of the range if that makes it smaller.
  int32_t Difference(int32_t value, int32_t prediction) const {
    const int32_t size = max - min + 1, most = size / 2 - (size % 2 == 0 ? 1 : 0);
    const int32_t difference = value - Clamped(prediction);
    if (difference < -(size / 2)) return difference + size;
    return difference > most ? difference - size : difference;
  }
};

class SequenceEncoder {
 public:
  // Colours may be null.
  void Encode(const float *positions, const uint8_t *colors, uint32_t count, const volsfu_grid &grid, int level, draco::EncoderBuffer *out) {
    const size_t size = 3 * size_t{count};
    values_.resize(size);
    const double scale = Scale(grid);
    for (size_t i = 0; i < size; ++i) values_[i] = static_cast<int32_t>(Step(positions[i], grid, static_cast<int>(i % 3), scale));
    EncodeAttribute(level, out);
    if (colors == nullptr) return;
    std::copy(colors, colors + size, values_.begin());
    EncodeAttribute(level, out);
  }

 private:
  // Writes the values, of three components, and overwrites them.
  void EncodeAttribute(int level, draco::EncoderBuffer *out) {
    out->Encode(static_cast<int8_t>(draco::PREDICTION_DIFFERENCE));
    out->Encode(static_cast<int8_t>(draco::PREDICTION_TRANSFORM_WRAP));
    out->Encode(uint8_t{1});  // Symbols are entropy-coded.
    const auto [min, max] = std::minmax_element(values_.begin(), values_.end());
    const Wrap wrap = {*min, *max};
    symbols_.resize(values_.size());
    uint32_t all = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      symbols_[i] = draco::ConvertSignedIntToSymbol(wrap.Difference(values_[i], i < 3 ? 0 : values_[i - 3]));
      all |= symbols_[i];
    }
    if (BitLength(all) > kTableBits) {
      EncodeTagged(out);
    } else {
      draco::Options options;
      draco::SetSymbolEncodingCompressionLevel(&options, level);
      draco::EncodeSymbols(symbols_.data(), static_cast<int>(symbols_.size()), 3, &options, out);
    }
    out->Encode(wrap.min);
    out->Encode(wrap.max);
  }

  // Writes the same output as Draco's EncodeSymbols for long symbols. Draco first counts each of up to 2^30 values in a
  // table of that size.
  void EncodeTagged(draco::EncoderBuffer *out) {
    const size_t points = symbols_.size() / 3;
    lengths_.resize(points);
    uint64_t frequencies[kLengths] = {};
    for (size_t i = 0; i < points; ++i) {
      lengths_[i] = static_cast<uint8_t>(std::max(1, BitLength(symbols_[3 * i] | symbols_[3 * i + 1] | symbols_[3 * i + 2])));
      ++frequencies[lengths_[i]];
    }
    out->Encode(static_cast<uint8_t>(draco::SYMBOL_CODING_TAGGED));
    draco::RAnsSymbolEncoder<5> tags;
    tags.Create(frequencies, kLengths, out);
    tags.StartEncoding(out);
    for (size_t i = points; i-- > 0;) tags.EncodeSymbol(lengths_[i]);
    tags.EndEncoding(out);
    bytes_.clear();
    uint64_t pending = 0;
    int pending_bits = 0;
    for (size_t i = 0; i < symbols_.size(); ++i) {
      pending |= static_cast<uint64_t>(symbols_[i]) << pending_bits;
      for (pending_bits += lengths_[i / 3]; pending_bits >= 8; pending_bits -= 8, pending >>= 8) bytes_.push_back(static_cast<uint8_t>(pending));
    }
    if (pending_bits > 0) bytes_.push_back(static_cast<uint8_t>(pending));
    out->Encode(bytes_.data(), bytes_.size());
  }

  // Lengths are 1 to 31; Draco's table has room for 32 of them.
  static constexpr int kLengths = 32;

  std::vector<int32_t> values_;
  std::vector<uint32_t> symbols_;
  std::vector<uint8_t> lengths_, bytes_;
};

}  // namespace volsfu

#endif
