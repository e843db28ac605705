// The images of this codec: RGB, coded as baseline JPEG with chroma halved in both directions and without tables, by
// libjpeg.
#ifndef VOLSFU_DRACOJPEG_IMAGE_H_
#define VOLSFU_DRACOJPEG_IMAGE_H_

#include <stddef.h>
#include <stdint.h>

enum { VOLSFU_IMAGE_OK = 0, VOLSFU_IMAGE_NO_MEMORY = 1, VOLSFU_IMAGE_MALFORMED = 2 };

// The result for an image: its status, and after encoding its size in bytes.
typedef struct {
  size_t size;
  int status;
} volsfu_image;

// Encodes into out, which has room for the largest possible image.
volsfu_image volsfu_image_encode(const uint8_t *rgb, int width, int height, int quality, uint8_t *out, size_t room);

// Decodes an image that spans all of the data and has exactly that width and height.
volsfu_image volsfu_image_decode(const uint8_t *data, size_t size, int quality, uint8_t *rgb, int width, int height);

#endif
