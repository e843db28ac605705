package lab

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrProc is returned if the system has no /proc of Linux, or a malformed one.
var ErrProc = errors.New("this system has no /proc as Linux has")

// MachineTime is the time of all cores since the start, in the system's ticks. Stolen is the part that a hypervisor
// gave to other machines, and counts as busy.
type MachineTime struct{ Busy, Stolen, All float64 }

// ReadMachineTime reads /proc/stat.
func ReadMachineTime() (MachineTime, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return MachineTime{}, fmt.Errorf("load of the machine: %w: %w", ErrProc, err)
	}
	return parseMachineTime(data)
}

// BusySince returns the share of all cores' time that was in use since before, 0 to 1.
func (t MachineTime) BusySince(before MachineTime) float64 {
	return t.share(before, t.Busy-before.Busy)
}

// StolenSince returns the share of all cores' time that a hypervisor gave to other machines since before, 0 to 1.
func (t MachineTime) StolenSince(before MachineTime) float64 {
	return t.share(before, t.Stolen-before.Stolen)
}

func (t MachineTime) share(before MachineTime, ticks float64) float64 {
	if t.All <= before.All {
		return 0
	}
	return ticks / (t.All - before.All)
}

// Columns of the first line of /proc/stat: those that count as idle, and the stolen time. Programs with a niceness
// above 0 count as idle: other programs have priority over them, and the loops of package awake do no work. Guest time
// is part of user time and would count twice.
const (
	columnNice  = 1
	columnIdle  = 3
	columnWait  = 4
	columnSteal = 7
	columns     = 8 // user, nice, system, idle, iowait, irq, softirq, steal
)

// parseMachineTime reads the first line of /proc/stat (proc(5)).
func parseMachineTime(data []byte) (MachineTime, error) {
	line, _, _ := bytes.Cut(data, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 1+columns || fields[0] != "cpu" {
		return MachineTime{}, fmt.Errorf("%w: /proc/stat begins with %q", ErrProc, line)
	}
	var t MachineTime
	for column, field := range fields[1 : 1+columns] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return MachineTime{}, fmt.Errorf("%w: /proc/stat: %w", ErrProc, err)
		}
		t.All += ticks
		if column != columnNice && column != columnIdle && column != columnWait {
			t.Busy += ticks
		}
		if column == columnSteal {
			t.Stolen = ticks
		}
	}
	return t, nil
}

// The fields of /proc/PID/stat after the command, which ends with the last parenthesis (proc(5)): time in user mode and
// in the kernel, in ticks of 10 ms.
const (
	fieldUser   = 11
	fieldSystem = 12
	tick        = 10 * time.Millisecond
)

// ProcessTime returns the processor time of a process; 0 if the system does not report it.
func ProcessTime(pid int) time.Duration {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= fieldSystem {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[fieldUser]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[fieldSystem]), 10, 64)
	return time.Duration(user+system) * tick
}
