//go:build cgo && !portable

#include "image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

// libjpeg reports errors with a function that does not return. Its objects are created for every image: an image may
// contain tables, which the objects would keep.
typedef struct {
  struct jpeg_error_mgr base;
  jmp_buf out;
} errors;

static void fail(j_common_ptr info) { longjmp(((errors *)info->err)->out, 1); }

// A warning reports inconsistent data; values above 0 are for tracing.
static void warn(j_common_ptr info, int level) {
  if (level < 0) fail(info);
}

static struct jpeg_error_mgr *catch_errors(errors *e) {
  struct jpeg_error_mgr *base = jpeg_std_error(&e->base);
  base->error_exit = fail;
  base->emit_message = warn;
  return base;
}

static int status_of(const errors *e) { return e->base.msg_code == JERR_OUT_OF_MEMORY ? VOLSFU_IMAGE_NO_MEMORY : VOLSFU_IMAGE_MALFORMED; }

static void begin_output(j_compress_ptr info) { (void)info; }
static boolean output_full(j_compress_ptr info) {
  fail((j_common_ptr)info);
  return FALSE;
}

volsfu_image volsfu_image_encode(const uint8_t *rgb, int width, int height, int quality, int tables, uint8_t *out, size_t room) {
  volsfu_image image = {0, VOLSFU_IMAGE_OK};
  errors e;
  struct jpeg_compress_struct info;
  struct jpeg_destination_mgr to = {out, room, begin_output, output_full, begin_output};
  memset(&info, 0, sizeof info);
  info.err = catch_errors(&e);
  if (setjmp(e.out)) {
    image.status = status_of(&e);
    jpeg_destroy_compress(&info);
    return image;
  }
  jpeg_create_compress(&info);
  info.dest = &to;
  info.image_width = width;
  info.image_height = height;
  info.input_components = 3;
  info.in_color_space = JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  info.write_JFIF_header = FALSE;
  jpeg_suppress_tables(&info, !tables);
  jpeg_start_compress(&info, tables ? TRUE : FALSE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = (JSAMPROW)(rgb + (size_t)info.next_scanline * 3 * width);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  image.size = room - to.free_in_buffer;
  jpeg_destroy_compress(&info);
  return image;
}

static void begin_input(j_decompress_ptr info) { (void)info; }
static boolean input_ends(j_decompress_ptr info) {
  fail((j_common_ptr)info);
  return FALSE;
}
static void skip_input(j_decompress_ptr info, long bytes) {
  if (bytes <= 0) return;
  if ((size_t)bytes > info->src->bytes_in_buffer) fail((j_common_ptr)info);
  info->src->next_input_byte += bytes;
  info->src->bytes_in_buffer -= bytes;
}

// Sets the quantisation tables of an encoder at the quality.
static void set_tables(j_decompress_ptr info, int quality) {
  struct jpeg_compress_struct model;
  memset(&model, 0, sizeof model);
  model.err = info->err;
  jpeg_create_compress(&model);
  jpeg_set_quality(&model, quality, TRUE);
  for (int table = 0; table < 2; ++table) {
    info->quant_tbl_ptrs[table] = jpeg_alloc_quant_table((j_common_ptr)info);
    memcpy(info->quant_tbl_ptrs[table]->quantval, model.quant_tbl_ptrs[table]->quantval, sizeof model.quant_tbl_ptrs[table]->quantval);
  }
  jpeg_destroy_compress(&model);
}

// Reports whether an image is of the single kind that encoders produce, which bounds memory and time: other kinds may
// need all of their coefficients at once.
static int is_expected(const struct jpeg_decompress_struct *info, int width, int height) {
  if (info->image_width != (JDIMENSION)width || info->image_height != (JDIMENSION)height) return 0;
  if (info->num_components != 3 || info->comps_in_scan != 3 || info->progressive_mode || info->arith_code) return 0;
  if (info->jpeg_color_space != JCS_YCbCr || info->data_precision != 8) return 0;
  for (int c = 0; c < 3; ++c) {
    const int factor = c == 0 ? 2 : 1;
    if (info->comp_info[c].h_samp_factor != factor || info->comp_info[c].v_samp_factor != factor) return 0;
  }
  return 1;
}

volsfu_image volsfu_image_decode(const uint8_t *data, size_t size, int quality, uint8_t *rgb, int width, int height) {
  volsfu_image image = {0, VOLSFU_IMAGE_OK};
  errors e;
  struct jpeg_decompress_struct info;
  struct jpeg_source_mgr from = {data, size, begin_input, input_ends, skip_input, jpeg_resync_to_restart, begin_input};
  memset(&info, 0, sizeof info);
  info.err = catch_errors(&e);
  if (setjmp(e.out)) {
    image.status = status_of(&e);
    jpeg_destroy_decompress(&info);
    return image;
  }
  jpeg_create_decompress(&info);
  info.src = &from;
  if (quality > 0) set_tables(&info, quality);
  jpeg_read_header(&info, TRUE);
  if (!is_expected(&info, width, height)) fail((j_common_ptr)&info);
  info.out_color_space = JCS_RGB;
  // Smoothing between squares would mix points that are not adjacent.
  info.do_fancy_upsampling = FALSE;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = rgb + (size_t)info.output_scanline * 3 * width;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  if (from.bytes_in_buffer != 0) image.status = VOLSFU_IMAGE_MALFORMED;
  jpeg_destroy_decompress(&info);
  return image;
}
