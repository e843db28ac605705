//go:build cgo && !portable

// Draco's DecodeSymbols, which its decoders of meshes and this package's decoder of sequences call, with a prior check
// of its table. Draco rejects tables of more than 64 symbols for each remaining byte, at 12 bytes each: a megabyte
// could request 0.8 GB. The linker redirects all calls to this function (--wrap in codec.go).

#include <cstdint>

#include "draco/compression/config/compression_shared.h"
#include "draco/core/decoder_buffer.h"
#include "draco/core/varint_decoding.h"
#include "sequence.h"

extern "C" bool __real__ZN5draco13DecodeSymbolsEjiPNS_13DecoderBufferEPj(uint32_t values, int components, draco::DecoderBuffer *in, uint32_t *out);

// Reports whether the following table of symbols is within the maximum of encoders: 262,144 symbols, which need 3 MB.
static bool TableIsBounded(const draco::DecoderBuffer &in) {
  draco::DecoderBuffer ahead = in;
  uint8_t method = 0, bits = 0;
  uint32_t symbols = 0;
  if (!ahead.Decode(&method)) return false;
  if (method == draco::SYMBOL_CODING_RAW && !ahead.Decode(&bits)) return false;
  if (!draco::DecodeVarint(&symbols, &ahead)) return false;
  // Lengths of 0 to 32.
  return symbols <= (method == draco::SYMBOL_CODING_RAW ? 1u << volsfu::kTableBits : 33);
}

extern "C" bool __wrap__ZN5draco13DecodeSymbolsEjiPNS_13DecoderBufferEPj(uint32_t values, int components, draco::DecoderBuffer *in, uint32_t *out) {
  // Without values there is no table.
  if (values != 0 && !TableIsBounded(*in)) return false;
  return __real__ZN5draco13DecodeSymbolsEjiPNS_13DecoderBufferEPj(values, components, in, out);
}
