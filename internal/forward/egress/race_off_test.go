//go:build !race

package egress

// raceDetector tells that sync.Pool drops objects on purpose, so that allocations cannot be counted.
const raceDetector = false
