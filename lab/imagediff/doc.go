// Package imagediff draws captured frames and received frames from the same view, and measures the difference of the
// pictures.
//
// Received frames are not stored. The log of frames has the captured frame and the number of points of each encoded
// frame, from which the frame is encoded again. The hash of the result proves that it equals the received frame.
// Alternatively, frames are prepared in a file, and a list has the shown frames.
//
// All types are owned by one goroutine.
package imagediff
