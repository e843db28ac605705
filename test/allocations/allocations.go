// Package allocations counts the allocations of functions in tests.
package allocations

import "testing"

// PerCall returns the number of allocations per call of a function: the minimum of three averages over the given number
// of calls. The allocations of other goroutines count, too, and the runtime makes some eight for each thread that it
// starts on a busy machine.
func PerCall(calls int, f func()) float64 {
	least := testing.AllocsPerRun(calls, f)
	for range 2 {
		least = min(least, testing.AllocsPerRun(calls, f))
	}
	return least
}
