//go:build !linux

package doctor

// kept returns nothing: other systems do not report whether a program keeps the clock.
func kept() []Finding { return nil }
