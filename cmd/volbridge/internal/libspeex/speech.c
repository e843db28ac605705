//go:build cgo

#include "speech.h"

#include <stdlib.h>
#include <string.h>

// Speex counts samples as 16-bit numbers do. VR2Gather's encoder multiplies by 32767 and its decoder divides by 32768.
static const float encoder_scale = 32767.0f, decoder_scale = 1.0f / 32768.0f;

// A frame begins with a bit that says which half of the spectrum it is of, 0 for the lower one, and four that name its mode; what is shorter is padding. Modes above
// the last one are requests, which nobody makes here, the end, and such as there are not, of which the library would complain on the standard error.
enum { least_bits = 5, last_mode = 8, end_mode = 15 };

static volsfu_speech *open_with(void *state) {
  volsfu_speech *s = state ? calloc(1, sizeof *s) : NULL;
  if (!s) return NULL;
  s->state = state;
  speex_bits_init(&s->bits);
  return s;
}

volsfu_speech *volsfu_speech_encoder(int quality) {
  const SpeexMode *mode = speex_lib_get_mode(SPEEX_MODEID_WB);
  volsfu_speech *s = open_with(speex_encoder_init(mode));
  spx_int32_t samples = 0;
  if (!s) return NULL;
  speex_encoder_ctl(s->state, SPEEX_SET_QUALITY, &quality);
  speex_encoder_ctl(s->state, SPEEX_GET_FRAME_SIZE, &samples);
  if (samples != VOLSFU_SPEECH_SAMPLES) {
    volsfu_speech_free_encoder(s);
    return NULL;
  }
  return s;
}

volsfu_speech *volsfu_speech_decoder(void) {
  volsfu_speech *s = open_with(speex_decoder_init(speex_lib_get_mode(SPEEX_MODEID_WB)));
  spx_int32_t samples = 0, enhanced = 1;
  if (!s) return NULL;
  speex_decoder_ctl(s->state, SPEEX_SET_ENH, &enhanced);
  speex_decoder_ctl(s->state, SPEEX_GET_FRAME_SIZE, &samples);
  if (samples != VOLSFU_SPEECH_SAMPLES) {
    volsfu_speech_free_decoder(s);
    return NULL;
  }
  return s;
}

void volsfu_speech_free_encoder(volsfu_speech *s) {
  speex_bits_destroy(&s->bits);
  speex_encoder_destroy(s->state);
  free(s);
}

void volsfu_speech_free_decoder(volsfu_speech *s) {
  speex_bits_destroy(&s->bits);
  speex_decoder_destroy(s->state);
  free(s);
}

int volsfu_speech_encoder_lookahead(volsfu_speech *s) {
  spx_int32_t samples = 0;
  speex_encoder_ctl(s->state, SPEEX_GET_LOOKAHEAD, &samples);
  return samples;
}

int volsfu_speech_decoder_lookahead(volsfu_speech *s) {
  spx_int32_t samples = 0;
  speex_decoder_ctl(s->state, SPEEX_GET_LOOKAHEAD, &samples);
  return samples;
}

int volsfu_speech_encode(volsfu_speech *s, const float *samples, int frames, uint8_t *out, int room) {
  speex_bits_reset(&s->bits);
  for (int f = 0; f < frames; f++) {
    // The encoder overwrites what it is given.
    for (int i = 0; i < VOLSFU_SPEECH_SAMPLES; i++) s->frame[i] = encoder_scale * samples[i];
    speex_encode(s->state, s->frame, &s->bits);
    samples += VOLSFU_SPEECH_SAMPLES;
  }
  return speex_bits_write(&s->bits, (char *)out, room);
}

// Moves the frame that was decoded last to where it belongs.
static void give(const volsfu_speech *s, float *samples) {
  for (int i = 0; i < VOLSFU_SPEECH_SAMPLES; i++) samples[i] = decoder_scale * s->frame[i];
}

int volsfu_speech_decode(volsfu_speech *s, const uint8_t *packet, int size, float *samples, int frames) {
  int decoded = 0;
  speex_bits_read_from(&s->bits, (const char *)packet, size);
  while (speex_bits_remaining(&s->bits) >= least_bits) {
    const unsigned begin = speex_bits_peek_unsigned(&s->bits, least_bits);
    if (begin == end_mode) break;
    if (begin > last_mode || decoded == frames) return -1;
    if (speex_decode(s->state, &s->bits, s->frame) != 0 || speex_bits_remaining(&s->bits) < 0) return -1;
    give(s, samples + (size_t)decoded * VOLSFU_SPEECH_SAMPLES);
    decoded++;
  }
  return decoded;
}

void volsfu_speech_conceal(volsfu_speech *s, float *samples, int frames) {
  for (int f = 0; f < frames; f++) {
    speex_decode(s->state, NULL, s->frame);
    give(s, samples + (size_t)f * VOLSFU_SPEECH_SAMPLES);
  }
}
