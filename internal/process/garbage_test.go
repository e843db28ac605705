package process

import (
	"runtime/debug"
	"testing"
)

// TestLimitGarbage checks the limit with and without the environment variable of Go.
func TestLimitGarbage(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	t.Setenv("GOGC", "200")
	LimitGarbage()
	if percent := debug.SetGCPercent(100); percent != 100 {
		t.Errorf("with GOGC set the limit became %d, expected 100 as before", percent)
	}
	t.Setenv("GOGC", "")
	LimitGarbage()
	if percent := debug.SetGCPercent(100); percent != garbagePercent {
		t.Errorf("without GOGC the limit is %d, expected %d", percent, garbagePercent)
	}
}
