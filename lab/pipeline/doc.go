// Package pipeline measures the claims about the path from a depth camera to coded tiles and back: the coding time
// compared with Draco itself, the time to make clouds of depth images, the savings of colours as JPEG, the merging of
// descriptions, cameras of RealSense's library, and constant memory. Measurements with Draco run the programs volpeer
// and vollab, or tests of the source tree. If a part lacks a requirement, the part's line has the reason. A check
// measures on the goroutine that calls Run.
package pipeline
