//go:build !linux

package udp

// systemVariants are further ways of this system: none.
func systemVariants() []variant { return nil }
