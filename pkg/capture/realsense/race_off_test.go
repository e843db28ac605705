//go:build !race

package realsense

// raceDetector is true if sync.Pool drops objects on purpose, so that allocations cannot be
// counted.
const raceDetector = false
