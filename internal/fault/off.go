//go:build !faulty

package fault

// Injected reports whether this build can have faults.
const Injected = false

// Start starts the fault of a process whose server starts.
func Start() {}

// LosesFrame reports whether a frame is not to be forwarded.
func LosesFrame(int64) bool { return false }

// Delays reports whether media packets are to be delayed.
func Delays() bool { return false }

// Later calls a function after the delay.
func Later(func()) {}

// KeepsQuality reports whether slots are to keep their first quality.
func KeepsQuality() bool { return false }
