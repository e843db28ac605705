//go:build race

package payload

// raceDetector reports that sync.Pool drops objects on purpose, so that allocations cannot be
// counted.
const raceDetector = true
