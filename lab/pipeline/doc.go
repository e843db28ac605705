// Package pipeline measures the claims about the path from a depth camera to coded tiles and back: the time of coding
// beside Draco itself, the time to make clouds of depth images, the savings of colours as JPEG, the merging of
// descriptions, the reading of cameras of RealSense's library, and constant memory. Measurements with Draco run the
// programs volpeer and vollab, or tests of the source tree. If something is missing for a part, its line says so. A
// check measures on the goroutine that calls Run.
package pipeline
