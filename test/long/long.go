// Package long marks tests that take long. `make test` skips them, `make test-long` runs them and no others.
package long

import "testing"

// Test skips the test if only short tests are to run. Tests call it first.
func Test(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long test: make test-long runs it")
	}
}
