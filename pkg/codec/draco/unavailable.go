//go:build !cgo

package draco

// Available reports whether this program was built with Draco.
func Available() bool { return false }
