//go:build !race && !asan && !msan

package codectest

// instrumentedSlowness and instrumentedMemory are how much more time and memory instrumented code may take.
const (
	instrumentedSlowness = 1
	instrumentedMemory   = 1
)
