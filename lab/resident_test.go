package lab

import (
	"os"
	"testing"
)

// TestResident reads the resident memory in texts of the kernel, and that of this process.
func TestResident(t *testing.T) {
	status := []byte("Name:\tvolpeer\nVmHWM:\t   20 kB\nVmRSS:\t   1234 kB\nRssAnon:\t 1 kB\n")
	if got, err := parseResident(status); err != nil || got != 1234*1024 {
		t.Errorf("got %g, %v", got, err)
	}
	for _, text := range []string{"", "Name:\tvolpeer\n", "\nVmRSS:\t12\n", "\nVmRSS:\tmuch kB\n"} {
		if got, err := parseResident([]byte(text)); err == nil {
			t.Errorf("%q: got %g", text, got)
		}
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return
	}
	if got, err := ResidentBytes(os.Getpid()); err != nil || got < 1<<20 {
		t.Errorf("this process holds %g bytes: %v", got, err)
	}
}
