// Package visual measures how much pictures differ from those that they stand for: PSNR and SSIM of their luma by its
// own arithmetic, VMAF by an ffmpeg or a vmaf program that has libvmaf, and what a sequence of such scores comes to
// over several runs, as tables 1 and 2 of paper 000 have it.
//
// Planes, scores and sequences are plain data. A Y4M belongs to the goroutine that writes it.
package visual
