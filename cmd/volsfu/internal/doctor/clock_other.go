//go:build !linux

package doctor

// kept returns nothing: only Linux tells whether a program keeps the clock.
func kept() []Finding { return nil }
