//go:build race || asan || msan

package codectest

// instrumentedSlowness and instrumentedMemory are the factors by which instrumented code may use
// more time and memory. The race detector makes Go up to ten times slower and keeps up to four
// bytes for each byte.
const (
	instrumentedSlowness = 10
	instrumentedMemory   = 5
)
