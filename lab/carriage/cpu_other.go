//go:build !unix

package carriage

// ProcessCPU is not known on this system.
func ProcessCPU() CPU { return CPU{} }
