package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrPTP reports that a host's clock does not follow another one by PTP.
var ErrPTP = errors.New("no clock by PTP")

// PTP is the state of ptp4l (linuxptp) on a host.
type PTP struct {
	// Port is the state of the port: SLAVE follows, MASTER leads.
	Port string `json:"port"`
	// Offset is the last offset from the master's clock, Delay the mean delay of the path to the master.
	Offset time.Duration `json:"offset_ns"`
	Delay  time.Duration `json:"delay_ns"`
}

// ParsePTP reads the answers of pmc to GET PORT_DATA_SET and GET CURRENT_DATA_SET. The error wraps ErrPTP if the port
// neither follows nor leads.
func ParsePTP(text string) (*PTP, error) {
	var p PTP
	found := make(map[string]string)
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 {
			found[fields[0]] = fields[1]
		}
	}
	p.Port = found["portState"]
	if p.Port != "SLAVE" && p.Port != "MASTER" {
		return nil, fmt.Errorf("%w: the state of ptp4l's port is %.32q, expected SLAVE or MASTER", ErrPTP, p.Port)
	}
	for name, into := range map[string]*time.Duration{"offsetFromMaster": &p.Offset, "meanPathDelay": &p.Delay} {
		value, err := strconv.ParseFloat(found[name], 64)
		if err != nil || !(value > -1e18 && value < 1e18) {
			return nil, fmt.Errorf("%w: ptp4l reports %s as %.32q, expected nanoseconds", ErrPTP, name, found[name])
		}
		*into = time.Duration(value)
	}
	return &p, nil
}
