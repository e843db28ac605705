//go:build race

package srtp

// raceDetector: with the race detector sync.Pool drops objects on purpose, so allocations cannot be counted.
const raceDetector = true
