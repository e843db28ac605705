//go:build !race

package frames

// raceDetector tells that sync.Pool drops objects on purpose, so that allocations cannot be counted.
const raceDetector = false
