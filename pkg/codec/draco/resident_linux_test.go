//go:build cgo && !portable

package draco

import (
	"bytes"
	"os"
	"strconv"
	"testing"
)

// residentKilobytes returns the resident memory of the process, of Go and C++.
func residentKilobytes(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := bytes.Cut(status, []byte("VmRSS:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		t.Fatal("no VmRSS in /proc/self/status")
	}
	kilobytes, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes
}
