//go:build !linux

package duplication

// measurements is empty: volnet needs Linux.
var measurements [len(titles)][]measurement
