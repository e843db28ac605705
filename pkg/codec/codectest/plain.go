//go:build !race && !asan && !msan

package codectest

// instrumentedSlowness and instrumentedMemory are the factors by which instrumented code may use
// more time and memory.
const (
	instrumentedSlowness = 1
	instrumentedMemory   = 1
)
