//go:build !cgo

package dracojpeg

// Available reports whether this program was built with the codec.
func Available() bool { return false }
