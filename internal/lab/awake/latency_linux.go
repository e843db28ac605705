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
)

// errNoDriver says that nothing chooses how processors rest.
var errNoDriver = errors.New("no driver for idle processors")

// Demand has the kernel keep its idle processors awake until release is called, and does nothing else: the error says why it cannot. Several may demand it at the same time.
func Demand() (release func(), err error) {
	file, err := demandLatency(latencyFile, driverFile)
	if err != nil {
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// demandLatency has processors wake up at once until what it returns is closed.
func demandLatency(latency, driver string) (*os.File, error) {
	name, err := os.ReadFile(driver)
	if err != nil {
		return nil, err
	}
	if n := strings.TrimSpace(string(name)); n == "" || n == "none" {
		return nil, fmt.Errorf("%w: %s is %q", errNoDriver, driver, n)
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
