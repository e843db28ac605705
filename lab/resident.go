package lab

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ResidentBytes returns the resident memory of a process, of Go and of other code.
func ResidentBytes(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return parseResident(status)
}

// parseResident reads the line "VmRSS:   1234 kB" of /proc/PID/status.
func parseResident(status []byte) (float64, error) {
	_, after, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) != 2 || string(fields[1]) != "kB" {
		return 0, fmt.Errorf("no resident memory in %.60q", status)
	}
	kilobytes, err := strconv.ParseFloat(string(fields[0]), 64)
	return 1024 * kilobytes, err
}
