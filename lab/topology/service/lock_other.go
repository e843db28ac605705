//go:build !unix

package service

// lock has no effect: there is no network here that could be served.
func lock(string) (unlock func(), err error) { return func() {}, nil }
