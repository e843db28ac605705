//go:build !linux

package process

// RaisePriority does nothing on this system.
func RaisePriority(int) error { return nil }
