package hotpath

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/lab"
)

// ErrPacing reports that a server cannot be measured with the requested pacing.
var ErrPacing = errors.New("pacing")

// Pacing selects whether the server paces the packets that it sends.
type Pacing string

// The choices: as the server is configured, on, off, and on with smooth paths (pacing.Path.Smooth), for receivers that
// report arrivals and codepoints.
const (
	PacingConfigured Pacing = ""
	PacingOn         Pacing = "on"
	PacingOff        Pacing = "off"
	PacingSmooth     Pacing = "smooth"
)

// headroom is the estimate of receivers that report arrivals as a multiple of the rate that they receive. A receiver
// whose queue marks packets gets nearly its estimate.
const headroom = 1.2

// reports describes the reports of arrivals that receivers make. The zero value is none.
type reports struct {
	made bool
	// codepoint is the codepoint with which packets are reported.
	codepoint ecn.Codepoint
	// arguments are those of the server: the controller, and limits that determine the estimate.
	arguments []string
}

// smoothReports returns the reports that make paths smooth: the server sends ECT(1), and its queue may mark packets.
func smoothReports(load Load) reports {
	return reports{made: true, codepoint: ecn.ECT1, arguments: fixedEstimate(load, "auto")}
}

// usualReports returns the reports of receivers whose paths are not smooth.
func usualReports(load Load) reports {
	return reports{made: true, arguments: fixedEstimate(load, "gcc")}
}

// fixedEstimate returns the arguments that limit the estimates of a controller to one value.
func fixedEstimate(load Load, controller string) []string {
	estimate := strconv.FormatInt(int64(headroom*load.wireRate()), 10)
	return []string{"--forward-congestion-controller=" + controller, "--forward-congestion-min-bps=" + estimate,
		"--forward-congestion-start-bps=" + estimate, "--forward-congestion-max-bps=" + estimate}
}

// pacingFlag is the flag of a server's pacing mode; pacingOff is the value that disables pacing.
const (
	pacingFlag = "--forward-pacing"
	pacingOff  = "off"
)

// paces reports whether the server has to pace.
func (p Pacing) paces() bool { return p == PacingOn || p == PacingSmooth }

// arguments returns the additional arguments that select the pacing of a server started with the arguments others.
func (p Pacing) arguments(ctx context.Context, path string, others []string) ([]string, error) {
	if p == PacingConfigured {
		return nil, nil
	}
	printed, err := exec.CommandContext(ctx, path, append([]string{"config", "print"}, others...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("%w: run %s config print: %w", lab.ErrProgram, path, err)
	}
	configured, known := configuredPacing(string(printed))
	switch {
	case p.paces() && !known:
		return nil, fmt.Errorf("%w: this server has no pacing: its configuration has no %s", ErrPacing, pacingFlag)
	case p.paces() && configured == pacingOff:
		return nil, fmt.Errorf("%w: this server is configured without pacing: %s is %s", ErrPacing, pacingFlag,
			pacingOff)
	case p == PacingOff && known:
		return []string{pacingFlag + "=" + pacingOff}, nil
	}
	return nil, nil
}

// configuredPacing finds the pacing mode in the printed configuration of a server: each key is below a comment with the
// name of its flag.
func configuredPacing(printed string) (string, bool) {
	_, rest, known := strings.Cut(printed, "# "+pacingFlag+",")
	if !known {
		return "", false
	}
	_, rest, _ = strings.Cut(rest, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	_, value, _ := strings.Cut(line, ":")
	return strings.Trim(strings.TrimSpace(value), `"'`), true
}
