// Package race reports whether the race detector is on. Two kinds of tests skip themselves under the race detector, and
// `make test` runs them again without it. The sync.Pool drops objects on purpose, so a test that counts allocations
// cannot run with the detector. A long test of one goroutine gains nothing from the detector.
package race
