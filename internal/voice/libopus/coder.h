// libopus as this package calls it. Its functions are linked if VOLSFU_OPUS_LINKED is defined, else they are loaded at run time.
#ifndef VOLSFU_LIBOPUS_CODER_H_
#define VOLSFU_LIBOPUS_CODER_H_

#include <stdint.h>

// Encoders and decoders of libopus.
typedef struct OpusEncoder OpusEncoder;
typedef struct OpusDecoder OpusDecoder;

// Finds the library, in the folder of this program or of the shared library that contains this code, and then by the rules of the system.
// Returns 0 if there is none. The functions below must not be called before.
int volsfu_opus_load(void);

// Returns an encoder of one channel with the least delay of the codec and a bit rate, NULL without memory.
OpusEncoder *volsfu_opus_encoder(int rate, int bits_per_second);
int volsfu_opus_encode(OpusEncoder *e, const float *samples, int count, unsigned char *packet, int capacity);
int volsfu_opus_lookahead(OpusEncoder *e);
void volsfu_opus_encoder_destroy(OpusEncoder *e);

// Returns a decoder to one channel, NULL without memory.
OpusDecoder *volsfu_opus_decoder(int rate);
int volsfu_opus_decode(OpusDecoder *d, const unsigned char *packet, int length, float *samples, int capacity, int lost);
void volsfu_opus_decoder_destroy(OpusDecoder *d);

#endif
