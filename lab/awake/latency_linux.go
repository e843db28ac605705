package awake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// latencyFile takes how long waking a processor may last, in microseconds, for as long as it is open (Documentation/power/pm_qos_interface.rst).
	latencyFile = "/dev/cpu_dma_latency"
	// driverFile names the driver that puts idle processors to sleep; without one nobody heeds the other file.
	driverFile = "/sys/devices/system/cpu/cpuidle/current_driver"
	// stateFile names what a processor does that has to wake up at once: it polls, on x86. Elsewhere it waits for an interrupt, for which a virtual machine's is given to somebody else.
	stateFile = "/sys/devices/system/cpu/cpu0/cpuidle/state0/name"
	polling   = "POLL"
)

// errNoDriver says that nothing chooses how processors rest, or has no way to rest awake.
var errNoDriver = errors.New("no driver that keeps idle processors awake")

// Demand has the kernel keep its idle processors awake until release is called, and does nothing else: the error says why it cannot. Several may demand it at the same time.
func Demand() (release func(), err error) {
	file, err := demandLatency(latencyFile, driverFile, stateFile)
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// demandLatency has processors wake up at once until what it returns is closed.
func demandLatency(latency, driver, state string) (*os.File, error) {
	name, err := os.ReadFile(driver)
	if err != nil {
		return nil, err
	}
	if n := strings.TrimSpace(string(name)); n == "" || n == "none" {
		return nil, fmt.Errorf("%w: %s is %q", errNoDriver, driver, n)
	}
	resting, err := os.ReadFile(state)
	if err != nil {
		return nil, err
	}
	if n := strings.TrimSpace(string(resting)); n != polling {
		return nil, fmt.Errorf("%w: %s is %q, expected %s", errNoDriver, state, n, polling)
	}
	file, err := os.OpenFile(latency, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	if err := binary.Write(file, binary.NativeEndian, int32(0)); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
