package hotpath

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/volsfu/volsfu/lab"
)

// ErrPacing says that a server cannot be measured with the pacing that was asked for.
var ErrPacing = errors.New("pacing")

// Pacing is whether the server is to spread what it sends.
type Pacing string

// The choices: as the server is configured, and either way.
const (
	PacingConfigured Pacing = ""
	PacingOn         Pacing = "on"
	PacingOff        Pacing = "off"
)

// pacingFlag is the flag by which a server that can pace is told how, and pacingOff what turns it off.
const (
	pacingFlag = "--forward-pacing"
	pacingOff  = "off"
)

// arguments are those by which a server paces, or does not, that would be started with the given ones.
func (p Pacing) arguments(ctx context.Context, path string, others []string) ([]string, error) {
	if p == PacingConfigured {
		return nil, nil
	}
	printed, err := exec.CommandContext(ctx, path, append([]string{"config", "print"}, others...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("%w: ask %s for its configuration: %w", lab.ErrProgram, path, err)
	}
	configured, known := configuredPacing(string(printed))
	switch {
	case p == PacingOn && !known:
		return nil, fmt.Errorf("%w: this server has no pacing: its configuration has no %s", ErrPacing, pacingFlag)
	case p == PacingOn && configured == pacingOff:
		return nil, fmt.Errorf("%w: this server is configured not to pace: %s is %s", ErrPacing, pacingFlag, pacingOff)
	case p == PacingOff && known:
		return []string{pacingFlag + "=" + pacingOff}, nil
	}
	return nil, nil
}

// configuredPacing finds how a server is told to pace in its configuration as it prints it: each key stands below a comment that names its flag.
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
