// Package likeness draws what a source captured and what a consumer received of it from the same place, picture by
// picture, and measures how much they differ. Received frames are not kept: the log of frames tells which points of
// which captured frame were encoded, so that every frame is made again, and its hash tells that it is the very frame
// that was received; or frames were prepared in a file, and a list tells which of them were shown.
//
// All of it belongs to one goroutine.
package likeness
