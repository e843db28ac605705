// Package visual measures the difference between pictures and their references: PSNR and SSIM of the luma by its own
// arithmetic, and VMAF by an ffmpeg or vmaf program with libvmaf. Package visual also computes the statistics of a
// sequence of scores, as in tables 1 and 2 of paper 000.
//
// Planes, scores and sequences are plain data. A Y4M is owned by the goroutine that writes it.
package visual
