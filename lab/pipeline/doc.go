// Package pipeline measures what is claimed of the way from a depth camera to coded tiles and back: what coding takes beside Draco itself, how fast clouds are made of
// depth images, what colours as JPEG save, that descriptions add up, that cameras of RealSense's library are read as it reads them, and that memory stays flat. What
// needs Draco runs the program volpeer, or tests of the source tree, since vollab is built without cgo; where something is missing for a part, its line says so. A check
// measures on the goroutine that calls Run.
package pipeline
