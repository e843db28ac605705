// RGB images, coded as baseline JPEG with chroma halved in both directions, by libjpeg.
#ifndef VOLSFU_JPEG_IMAGE_H_
#define VOLSFU_JPEG_IMAGE_H_

#include <stddef.h>
#include <stdint.h>

enum { VOLSFU_IMAGE_OK = 0, VOLSFU_IMAGE_NO_MEMORY = 1, VOLSFU_IMAGE_MALFORMED = 2 };

// The result for an image: its status, and after encoding its size in bytes.
typedef struct {
  size_t size;
  int status;
} volsfu_image;

// Encodes into out, which has room for the largest possible image. Without tables the image is in the abbreviated format.
volsfu_image volsfu_image_encode(const uint8_t *rgb, int width, int height, int quality, int tables, uint8_t *out, size_t room);

// Decodes an image that spans all of the data and has exactly that width and height. Tables that the image does not
// contain are those of the quality; with quality 0 the image must contain its quantisation tables.
volsfu_image volsfu_image_decode(const uint8_t *data, size_t size, int quality, uint8_t *rgb, int width, int height);

#endif
