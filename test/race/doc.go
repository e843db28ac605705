// Package race reports whether the race detector is on. The sync.Pool drops objects on purpose, so a test that counts
// allocations cannot run with it.
package race
