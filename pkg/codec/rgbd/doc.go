// Package rgbd implements the codec "rgbd" (FourCC "rgbd"): the raster of a depth camera as the camera saw it, without
// the points that follow from it. A frame is a rectangle of one camera's image with a mask, depths, colours, and all
// that a receiver needs to compute the points. Every frame decodes by itself, without cgo too.
//
// docs/codec.md specifies the format for other implementations. In short: the mask of the pixels with a depth is coded
// in blocks of 8×8 pixels, depths as residuals of the median predictor, both by an adaptive binary range coder in
// integer arithmetic, and colours as a JPEG image of the rectangle.
//
// Encoders encode images and no clouds: they implement codec.RasterEncoder, and decoders codec.RasterDecoder. Both keep
// their memory; each is used by one goroutine at a time.
package rgbd
