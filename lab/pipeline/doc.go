// Package pipeline measures what is claimed of the way from a depth camera to coded tiles and back: what coding takes beside Draco itself, how fast clouds are made of
// depth images, what colours as JPEG save, that descriptions add up, that cameras of RealSense's library are read as it reads them, and that memory stays flat. What
// needs Draco runs volpeer and vollab as programs, or tests of the source tree; if something is missing for a part, its line says so. A check
// measures on the goroutine that calls Run.
package pipeline
