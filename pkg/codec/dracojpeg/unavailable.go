//go:build !cgo

package dracojpeg

// Available tells whether this program was built with the codec.
func Available() bool { return false }
