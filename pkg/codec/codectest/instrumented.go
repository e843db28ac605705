//go:build race || asan || msan

package codectest

// instrumentedSlowness and instrumentedMemory are how much more time and memory instrumented code may take: the race
// detector makes Go up to ten times as slow, and keeps up to four bytes beside each.
const (
	instrumentedSlowness = 10
	instrumentedMemory   = 5
)
