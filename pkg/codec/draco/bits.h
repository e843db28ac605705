// Bit streams like Draco's DirectBitEncoder and DirectBitDecoder: little-endian words of 32 bits, filled from the top,
// preceded by their size in bytes. These classes do the same inline and reuse their memory; entropy coding is Draco's
// own.
#ifndef VOLSFU_DRACO_BITS_H_
#define VOLSFU_DRACO_BITS_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "draco/compression/bit_coders/folded_integer_bit_decoder.h"
#include "draco/compression/bit_coders/folded_integer_bit_encoder.h"
#include "draco/compression/bit_coders/rans_bit_decoder.h"
#include "draco/compression/bit_coders/rans_bit_encoder.h"
#include "draco/core/decoder_buffer.h"
#include "draco/core/encoder_buffer.h"

namespace volsfu {

class BitWriter {
 public:
  void Start() {
    words_.clear();
    pending_ = 0;
    pending_bits_ = 0;
  }

  // Appends the value's low bits, 0 to 32 of them; its other bits must be zero.
  void Put(int bits, uint32_t value) {
    pending_ = pending_ << bits | value;
    pending_bits_ += bits;
    if (pending_bits_ >= 32) {
      pending_bits_ -= 32;
      words_.push_back(static_cast<uint32_t>(pending_ >> pending_bits_));
    }
  }

  void Finish(draco::EncoderBuffer *out) {
    // Draco writes a last word even if it is empty.
    words_.push_back(pending_bits_ > 0 ? static_cast<uint32_t>(pending_ << (32 - pending_bits_)) : 0);
    const uint32_t size = static_cast<uint32_t>(words_.size() * sizeof(uint32_t));
    out->Encode(size);
    out->Encode(words_.data(), size);
  }

  void FinishEntropyCoded(draco::RAnsBitEncoder *entropy, draco::EncoderBuffer *out) const {
    entropy->StartEncoding();
    for (const uint32_t word : words_) entropy->EncodeLeastSignificantBits32(32, word);
    if (pending_bits_ > 0) {
      const uint32_t rest = static_cast<uint32_t>(pending_) & ((1u << pending_bits_) - 1);
      entropy->EncodeLeastSignificantBits32(pending_bits_, rest);
    }
    entropy->EndEncoding(out);
  }

 private:
  std::vector<uint32_t> words_;
  uint64_t pending_ = 0;  // the low pending_bits_ bits are not yet written
  int pending_bits_ = 0;
};

// Numbers of points in halves: levels 0 and 1.
class DirectNumbers {
 public:
  void Start() { bits_.Start(); }
  void Put(int bits, uint32_t value) { bits_.Put(bits, value); }
  void Repeat(int times, int bits, uint32_t value) {
    while (times-- > 0) bits_.Put(bits, value);
  }
  void Finish(draco::EncoderBuffer *out) { bits_.Finish(out); }

 protected:
  BitWriter bits_;
};

// The same, with one probability for the entropy coding of all bits: levels 2 and 3.
class EntropyNumbers : public DirectNumbers {
 public:
  void Finish(draco::EncoderBuffer *out) { bits_.FinishEntropyCoded(&entropy_, out); }

 private:
  draco::RAnsBitEncoder entropy_;
};

// The same, with a separate probability for each bit position (Draco's FoldedBit32Encoder): levels 4 to 6.
class FoldedNumbers {
 public:
  void Start() {
    for (BitWriter &place : places_) place.Start();
  }
  void Put(int bits, uint32_t value) {
    for (int i = 0; i < bits; ++i) places_[i].Put(1, value >> (bits - 1 - i) & 1);
  }
  void Repeat(int times, int bits, uint32_t value) {
    for (int i = 0; i < bits; ++i) {
      const uint32_t run = value >> (bits - 1 - i) & 1 ? ~0u : 0;
      for (int left = times; left > 0; left -= 32) places_[i].Put(left < 32 ? left : 32, left < 32 ? run & ((1u << left) - 1) : run);
    }
  }
  void Finish(draco::EncoderBuffer *out) {
    for (const BitWriter &place : places_) place.FinishEntropyCoded(&entropy_, out);
    // FoldedBit32Encoder has one more coder, for single bits, which the tree does not use here.
    entropy_.StartEncoding();
    entropy_.EndEncoding(out);
  }

 private:
  std::array<BitWriter, 32> places_;
  draco::RAnsBitEncoder entropy_;
};

// Takes a stream of words from a buffer: from *next to *end.
inline bool TakeWords(draco::DecoderBuffer *in, const char **next, const char **end) {
  uint32_t size = 0;
  if (!in->Decode(&size) || size == 0 || size % sizeof(uint32_t) != 0 || size > in->remaining_size()) return false;
  *next = in->data_head();
  *end = *next + size;
  in->Advance(size);
  return true;
}

class BitReader {
 public:
  bool Start(draco::DecoderBuffer *in) { return TakeWords(in, &next_, &end_); }

  // Returns the next 0 to 32 bits, zeros beyond the end.
  uint32_t Get(int bits) {
    if (pending_bits_ < bits) {
      uint32_t word = 0;
      if (next_ != end_) {
        std::memcpy(&word, next_, sizeof(word));
        next_ += sizeof(word);
      } else {
        exhausted_ = true;
      }
      pending_ = pending_ << 32 | word;
      pending_bits_ += 32;
    }
    pending_bits_ -= bits;
    return static_cast<uint32_t>(pending_ >> pending_bits_) & static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  }

  bool Exhausted() const { return exhausted_; }

 private:
  const char *next_ = nullptr;
  const char *end_ = nullptr;
  uint64_t pending_ = 0;
  int pending_bits_ = 0;
  bool exhausted_ = false;
};

// Reads the output of EntropyNumbers or FoldedNumbers; Draco's entropy decoders do not check the end.
template <class DecoderT>
class EntropyReader {
 public:
  bool Start(draco::DecoderBuffer *in) { return decoder_.StartDecoding(in); }
  uint32_t Get(int bits) {
    uint32_t value = 0;
    decoder_.DecodeLeastSignificantBits32(bits, &value);
    return value;
  }
  bool Exhausted() const { return false; }

 private:
  DecoderT decoder_;
};

}  // namespace volsfu

#endif
