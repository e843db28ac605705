//go:build !cgo

package draco

// Available tells whether this program was built with Draco.
func Available() bool { return false }
