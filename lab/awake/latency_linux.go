package awake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
)

const (
	// latencyFile takes the largest time to wake a processor, in microseconds, while it is open
	// (Documentation/power/pm_qos_interface.rst).
	latencyFile = "/dev/cpu_dma_latency"
	// driverFile names the driver that puts idle processors to sleep; without a driver, latencyFile has no effect.
	driverFile = "/sys/devices/system/cpu/cpuidle/current_driver"
	// stateFile names the state of an idle processor that must wake up immediately. On x86, it polls. On other machines
	// it waits for an interrupt, and a virtual machine's processor is given to another machine meanwhile.
	stateFile = "/sys/devices/system/cpu/cpu0/cpuidle/state0/name"
	polling   = "POLL"
)

// errNoDriver says that no driver keeps idle processors awake.
var errNoDriver = errors.New("no driver that keeps idle processors awake")

// Demand makes the kernel keep its idle processors awake until release is called, without the second choice. The error
// gives the reason of a failure. Several callers may demand it at the same time.
func Demand() (release func(), err error) {
	file, err := demandLatency(latencyFile, driverFile, stateFile)
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// demandLatency makes processors wake up immediately until the returned file is closed.
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
