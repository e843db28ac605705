package lab

import (
	"errors"
	"testing"
)

func TestMachineTime(t *testing.T) {
	got, err := parseMachineTime([]byte("cpu  101 9 20 500 40 3 6 10 50 0\ncpu0 …\n"))
	if want := (MachineTime{Busy: 140, Stolen: 10, All: 689}); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v: nice, idle and iowait count as idle, guest time as user time", got, err, want)
	}
	for _, broken := range []string{"", "cpu 1 2 3", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8"} {
		if _, err := parseMachineTime([]byte(broken)); !errors.Is(err, ErrProc) {
			t.Errorf("%q: got %v, want ErrProc", broken, err)
		}
	}
	if got := (MachineTime{Busy: 150, All: 700}).BusySince(MachineTime{Busy: 140, All: 680}); got != 0.5 {
		t.Errorf("busy for %g of the time, want half", got)
	}
	if got := (MachineTime{Stolen: 15, All: 700}).StolenSince(MachineTime{Stolen: 10, All: 680}); got != 0.25 {
		t.Errorf("%g of the time was stolen, want a quarter", got)
	}
	if got := (MachineTime{}).BusySince(MachineTime{}); got != 0 {
		t.Errorf("busy for %g of an interval of no time, want 0", got)
	}
}
