//go:build race

package egress

// raceDetector is set if sync.Pool drops objects on purpose, so that allocations cannot be counted.
const raceDetector = true
