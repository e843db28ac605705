package hotpath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
)

// Burst sends frames each at once, and looks for what the server loses of them; and for its warning where the system limits its socket's buffer.
type Burst struct {
	bench
	Load Load
}

// Name implements lab.Check.
func (b *Burst) Name() string {
	return fmt.Sprintf("bursts: %g Mbit/s at %g fps, %.1f MB at once", b.Load.Mbps, b.Load.FrameRate, float64(b.Load.frameBytes())/1e6)
}

// Run implements lab.Check.
func (b *Burst) Run(ctx context.Context) ([]lab.Line, error) {
	result, err := b.run(ctx, Options{Load: b.Load})
	if err != nil {
		return nil, err
	}
	lines := []lab.Line{
		lab.Exactly("packets lost inside the server", int64(result.PacketsLost)-int64(result.ReceiverDrops), "", 0),
		lab.Information("packets lost at the receiver's own socket", float64(result.ReceiverDrops), ""),
		lab.Information("packets forwarded", float64(result.PacketsForwarded), ""),
		lab.Information("frames lost", float64(result.FramesLost), ""),
		lab.Information("server CPU per forwarded packet", result.CPU, "µs"),
	}
	lines = append(lines, two("end-to-end frame latency", result.FrameLatency, "ms", 1000)...)
	lines = append(lines, validity("", result)...)
	warning, err := b.warning(ctx)
	return append(lines, warning...), err
}

// warningAdvice is what the server's warning has to tell people to do.
const warningAdvice = "sysctl -w net.core.rmem_max="

// warningPatience is how long the warning may take after the server is ready.
const warningPatience = 5 * time.Second

// warning starts a server that may not raise the system's limit of its socket's buffer, and looks for what it says.
func (b *Burst) warning(ctx context.Context) ([]lab.Line, error) {
	const name = "warnings with the sysctl line, where the buffer is limited"
	path, err := b.copied()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }()
	buffer, err := moreThanAllowed()
	if err != nil {
		return []lab.Line{lab.Skip(name, err.Error())}, nil
	}
	wanted := []string{"--media-receive-buffer", strconv.Itoa(buffer)}
	server, err := lab.StartServerUnprivileged(ctx, path, wanted...)
	if errors.Is(err, errors.ErrUnsupported) {
		// Who is not root starts servers without the right anyway.
		server, err = lab.StartServer(ctx, path, wanted...)
	}
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, warningPatience)
	defer cancel()
	found := lab.Await(waiting, "the server warns", func() bool { return strings.Contains(server.Said(), warningAdvice) }) == nil
	if err := server.Stop(); err != nil {
		return nil, err
	}
	return []lab.Line{lab.Exactly(name, int64(map[bool]int{true: 1}[found]), "", 1)}, nil
}

// copied copies the server's program to where every user may run it.
func (b *Burst) copied() (string, error) {
	from := b.serverBin
	if from == "" {
		var err error
		if from, err = lab.FindProgram("volsfu"); err != nil {
			return "", err
		}
	}
	folder, err := os.MkdirTemp("", "vollab-")
	if err != nil {
		return "", err
	}
	to := filepath.Join(folder, "volsfu")
	if err := errors.Join(os.Chmod(folder, 0o755), copyProgram(from, to)); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return to, nil
}

func copyProgram(from, to string) (err error) {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close(), os.Chmod(to, 0o755))
}

// moreThanAllowed is a size of receive buffers that the system does not give to everybody.
func moreThanAllowed() (int, error) {
	data, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		return 0, fmt.Errorf("%w: %w", lab.ErrProc, err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("%w: net.core.rmem_max: %w", lab.ErrProc, err)
	}
	// The server's own default is 8 MiB.
	return max(8<<20, 2*limit), nil
}
