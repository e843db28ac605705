//go:build !unix

package carriage

// ProcessCPU is not implemented on this system and returns zero.
func ProcessCPU() CPU { return CPU{} }
