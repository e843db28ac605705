//go:build !linux

package awake

// start does nothing: both ways are Linux's.
func start() (stop func()) { return func() {} }
