//go:build cgo

#if !defined(VOLSFU_OPUS_LINKED) && !defined(_WIN32)
#define _GNU_SOURCE  // dladdr
#endif
#include "coder.h"

#include <stddef.h>

#ifdef VOLSFU_OPUS_LINKED
#include <opus/opus.h>
#else
// The constants of opus_defines.h, which are part of the binary interface.
typedef int32_t opus_int32;
enum {
  OPUS_OK = 0,
  OPUS_APPLICATION_RESTRICTED_LOWDELAY = 2051,
  OPUS_SIGNAL_VOICE = 3001,
  OPUS_SET_BITRATE_REQUEST = 4002,
  OPUS_SET_SIGNAL_REQUEST = 4024,
  OPUS_GET_LOOKAHEAD_REQUEST = 4027
};
#endif

// The functions of the library.
static struct {
  OpusEncoder *(*encoder_create)(opus_int32 rate, int channels, int application, int *status);
  int (*encoder_ctl)(OpusEncoder *e, int request, ...);
  opus_int32 (*encode_float)(OpusEncoder *e, const float *samples, int count, unsigned char *packet, opus_int32 capacity);
  void (*encoder_destroy)(OpusEncoder *e);
  OpusDecoder *(*decoder_create)(opus_int32 rate, int channels, int *status);
  int (*decode_float)(OpusDecoder *d, const unsigned char *packet, opus_int32 length, float *samples, int capacity, int lost);
  void (*decoder_destroy)(OpusDecoder *d);
} opus;

#ifdef VOLSFU_OPUS_LINKED

int volsfu_opus_load(void) {
  opus.encoder_create = opus_encoder_create;
  opus.encoder_ctl = opus_encoder_ctl;
  opus.encode_float = opus_encode_float;
  opus.encoder_destroy = opus_encoder_destroy;
  opus.decoder_create = opus_decoder_create;
  opus.decode_float = opus_decode_float;
  opus.decoder_destroy = opus_decoder_destroy;
  return 1;
}

#else

#include <stdio.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>

typedef HMODULE library;
static const char *const names[] = {"opus.dll", "libopus-0.dll", NULL};
static const char separator = '\\';

static library load(const char *path) { return LoadLibraryA(path); }
static void *find(library l, const char *name) { return (void *)GetProcAddress(l, name); }

// Stores the path of this code. Returns 0 without one.
static int own_path(char *path, size_t capacity) {
  HMODULE own;
  const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExA(flags, (LPCSTR)&own_path, &own)) return 0;
  const DWORD length = GetModuleFileNameA(own, path, (DWORD)capacity);
  return length > 0 && length < capacity;
}
#else
#include <dlfcn.h>

typedef void *library;
#ifdef __APPLE__
static const char *const names[] = {"libopus.0.dylib", "libopus.dylib", "/opt/homebrew/lib/libopus.0.dylib", NULL};
#else
static const char *const names[] = {"libopus.so.0", "libopus.so", NULL};
#endif
static const char separator = '/';

static library load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static void *find(library l, const char *name) { return dlsym(l, name); }

// Stores the path of this code. Returns 0 without one.
static int own_path(char *path, size_t capacity) {
  Dl_info own;
  if (!dladdr((void *)&own_path, &own) || own.dli_fname == NULL || strlen(own.dli_fname) >= capacity) return 0;
  strcpy(path, own.dli_fname);
  return 1;
}
#endif

// Loads the library. Returns NULL if there is none.
static library load_any(void) {
  char path[4096];
  if (own_path(path, sizeof path)) {
    char *behind = strrchr(path, separator);
    for (int i = 0; behind != NULL && names[i] != NULL; i++) {
      const size_t room = sizeof path - (size_t)(behind + 1 - path);
      if (strchr(names[i], '/') != NULL || strlen(names[i]) >= room) continue;
      strcpy(behind + 1, names[i]);
      library l = load(path);
      if (l != NULL) return l;
    }
  }
  for (int i = 0; names[i] != NULL; i++) {
    library l = load(names[i]);
    if (l != NULL) return l;
  }
  return NULL;
}

int volsfu_opus_load(void) {
  const struct {
    const char *name;
    void *function;
  } functions[] = {
      {"opus_encoder_create", &opus.encoder_create}, {"opus_encoder_ctl", &opus.encoder_ctl},
      {"opus_encode_float", &opus.encode_float},     {"opus_encoder_destroy", &opus.encoder_destroy},
      {"opus_decoder_create", &opus.decoder_create}, {"opus_decode_float", &opus.decode_float},
      {"opus_decoder_destroy", &opus.decoder_destroy},
  };
  library l = load_any();
  if (l == NULL) return 0;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    void *address = find(l, functions[i].name);
    if (address == NULL) return 0;
    memcpy(functions[i].function, &address, sizeof address);
  }
  return 1;
}

#endif

OpusEncoder *volsfu_opus_encoder(int rate, int bits_per_second) {
  int status = 0;
  OpusEncoder *e = opus.encoder_create(rate, 1, OPUS_APPLICATION_RESTRICTED_LOWDELAY, &status);
  if (!e || status != OPUS_OK) return NULL;
  opus.encoder_ctl(e, OPUS_SET_BITRATE_REQUEST, (opus_int32)bits_per_second);
  opus.encoder_ctl(e, OPUS_SET_SIGNAL_REQUEST, (opus_int32)OPUS_SIGNAL_VOICE);
  return e;
}

int volsfu_opus_encode(OpusEncoder *e, const float *samples, int count, unsigned char *packet, int capacity) {
  return (int)opus.encode_float(e, samples, count, packet, capacity);
}

int volsfu_opus_lookahead(OpusEncoder *e) {
  opus_int32 samples = 0;
  opus.encoder_ctl(e, OPUS_GET_LOOKAHEAD_REQUEST, &samples);
  return (int)samples;
}

void volsfu_opus_encoder_destroy(OpusEncoder *e) { opus.encoder_destroy(e); }

OpusDecoder *volsfu_opus_decoder(int rate) {
  int status = 0;
  return opus.decoder_create(rate, 1, &status);
}

int volsfu_opus_decode(OpusDecoder *d, const unsigned char *packet, int length, float *samples, int capacity, int lost) {
  return opus.decode_float(d, packet, length, samples, capacity, lost);
}

void volsfu_opus_decoder_destroy(OpusDecoder *d) { opus.decoder_destroy(d); }
