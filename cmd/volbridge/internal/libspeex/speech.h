// Speex's wideband mode: an encoder and a decoder each with its bits, and nothing that allocates once they are made.
#ifndef VOLSFU_LIBSPEEX_SPEECH_H_
#define VOLSFU_LIBSPEEX_SPEECH_H_

#include <stddef.h>
#include <stdint.h>

#include <speex/speex.h>

enum { VOLSFU_SPEECH_SAMPLES = 320 };

typedef struct {
  void *state;
  SpeexBits bits;
  float frame[VOLSFU_SPEECH_SAMPLES];
} volsfu_speech;

// Both give NULL where there is no memory, or the library's mode is not what is expected.
volsfu_speech *volsfu_speech_encoder(int quality);
volsfu_speech *volsfu_speech_decoder(void);
void volsfu_speech_free_encoder(volsfu_speech *s);
void volsfu_speech_free_decoder(volsfu_speech *s);

// How many samples the output is behind the input.
int volsfu_speech_encoder_lookahead(volsfu_speech *s);
int volsfu_speech_decoder_lookahead(volsfu_speech *s);

// Encodes so many frames of samples into out, which has room for so many bytes, and returns how many those are.
int volsfu_speech_encode(volsfu_speech *s, const float *samples, int frames, uint8_t *out, int room);

// Decodes a packet into samples, which has room for so many frames, and returns how many there are; -1 where it is no Speex or has more.
int volsfu_speech_decode(volsfu_speech *s, const uint8_t *packet, int size, float *samples, int frames);

// Makes up so many frames that are lost.
void volsfu_speech_conceal(volsfu_speech *s, float *samples, int frames);

#endif
