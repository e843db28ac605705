//go:build !unix

package service

// lock has no effect: networks do not run on this system.
func lock(string) (unlock func(), err error) { return func() {}, nil }
