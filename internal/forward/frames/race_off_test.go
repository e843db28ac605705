//go:build !race

package frames

// raceDetector is set if sync.Pool drops objects on purpose, so that allocations cannot be counted.
const raceDetector = false
