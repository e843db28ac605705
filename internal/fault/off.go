//go:build !faulty

package fault

// Injected reports whether this build can have faults.
const Injected = false

// Start begins the fault of a process whose server starts.
func Start() {}

// LosesFrame reports whether a frame is not to be forwarded.
func LosesFrame(int64) bool { return false }

// Delays reports whether media packets are to be forwarded later than they come.
func Delays() bool { return false }

// Later calls a function after the delay.
func Later(func()) {}

// KeepsQuality reports whether slots are to keep the first quality that they carry.
func KeepsQuality() bool { return false }
