package race

import "testing"

// SkipSequential skips the test if the race detector is on. It is for tests that step everything in one goroutine and
// take long: the detector finds no race in them and makes them about ten times slower. The code that they step needs
// another test, with the goroutines of the program, that runs under the detector.
func SkipSequential(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("one goroutine steps everything: runs without the race detector")
	}
}
