//go:build race

package udp

// raceDetector: with the race detector sync.Pool drops objects on purpose, so allocations cannot be counted.
const raceDetector = true
