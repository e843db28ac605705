package hotpath

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/volsfu/volsfu/lab"
)

// ErrPacing reports that a server cannot be measured with the requested pacing.
var ErrPacing = errors.New("pacing")

// Pacing selects whether the server paces the packets that it sends.
type Pacing string

// The choices: as the server is configured, on, and off.
const (
	PacingConfigured Pacing = ""
	PacingOn         Pacing = "on"
	PacingOff        Pacing = "off"
)

// pacingFlag is the flag of a server's pacing mode; pacingOff is the value that disables pacing.
const (
	pacingFlag = "--forward-pacing"
	pacingOff  = "off"
)

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
	case p == PacingOn && !known:
		return nil, fmt.Errorf("%w: this server has no pacing: its configuration has no %s", ErrPacing, pacingFlag)
	case p == PacingOn && configured == pacingOff:
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
