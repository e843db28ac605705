//go:build cgo

#include "coder.h"

OpusEncoder *volsfu_opus_encoder(int rate, int bits_per_second) {
  int status = 0;
  OpusEncoder *e = opus_encoder_create(rate, 1, OPUS_APPLICATION_RESTRICTED_LOWDELAY, &status);
  if (!e || status != OPUS_OK) return 0;
  opus_encoder_ctl(e, OPUS_SET_BITRATE(bits_per_second));
  opus_encoder_ctl(e, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
  return e;
}

int volsfu_opus_lookahead(OpusEncoder *e) {
  opus_int32 samples = 0;
  opus_encoder_ctl(e, OPUS_GET_LOOKAHEAD(&samples));
  return samples;
}
