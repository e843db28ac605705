// What cgo cannot call of libopus, whose settings are functions of any number of arguments.
#ifndef VOLSFU_LIBOPUS_CODER_H_
#define VOLSFU_LIBOPUS_CODER_H_

#include <stdint.h>

#include <opus/opus.h>

// An encoder of sound of one channel at that rate with as little delay as the codec has, and so many bit/s; NULL where there is no memory.
OpusEncoder *volsfu_opus_encoder(int rate, int bits_per_second);
int volsfu_opus_lookahead(OpusEncoder *e);

#endif
