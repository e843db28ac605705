// The bit streams of bits.h with access to the following bits, so that several values can be read at once.
#ifndef VOLSFU_DRACO_BIT_WINDOW_H_
#define VOLSFU_DRACO_BIT_WINDOW_H_

#include <cstdint>
#include <cstring>

#include "bits.h"
#include "draco/compression/bit_coders/rans_bit_decoder.h"
#include "draco/core/decoder_buffer.h"

namespace volsfu {

// Words of 32 bits as in the stream, zeros beyond its end.
class DirectWords {
 public:
  bool Start(draco::DecoderBuffer *in) { return TakeWords(in, &next_, &end_); }

  uint32_t Next() {
    uint32_t word = 0;
    if (__builtin_expect(next_ != end_, 1)) {
      std::memcpy(&word, next_, sizeof(word));
      next_ += sizeof(word);
    } else {
      beyond_ += 32;
    }
    return word;
  }

  // The number of bits read beyond the end so far.
  int64_t Beyond() const { return beyond_; }

 private:
  const char *next_ = nullptr;
  const char *end_ = nullptr;
  int64_t beyond_ = 0;
};

// The same, entropy-coded with one probability. Draco's decoder does not check the end, and reads nothing beyond it.
class EntropyWords {
 public:
  bool Start(draco::DecoderBuffer *in) { return decoder_.StartDecoding(in); }
  uint32_t Next() {
    uint32_t word = 0;
    decoder_.DecodeLeastSignificantBits32(32, &word);
    return word;
  }
  int64_t Beyond() const { return 0; }

 private:
  draco::RAnsBitDecoder decoder_;
};

// Reads words as BitReader does, with access to the next 32 bits.
template <class WordsT>
class BitWindow {
 public:
  bool Start(draco::DecoderBuffer *in) { return words_.Start(in); }

  // The next bits from the top, of which 32 are valid.
  uint64_t Peek() {
    if (valid_ < 32) {
      window_ |= static_cast<uint64_t>(words_.Next()) << (32 - valid_);
      valid_ += 32;
    }
    return window_;
  }

  // Skips 0 to 32 of the inspected bits.
  void Skip(int bits) {
    window_ <<= bits;
    valid_ -= bits;
  }

  // Returns the next 0 to 32 bits.
  uint32_t Get(int bits) {
    const uint32_t value = static_cast<uint32_t>(static_cast<uint64_t>(Peek() >> 32) >> (32 - bits));
    Skip(bits);
    return value;
  }

  // Reports whether more bits were read than exist.
  bool Exhausted() const { return words_.Beyond() > valid_; }

 private:
  WordsT words_;
  uint64_t window_ = 0;  // the next valid_ bits, from the top
  int valid_ = 0;
};

}  // namespace volsfu

#endif
