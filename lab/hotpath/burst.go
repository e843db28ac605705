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

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Burst sends each frame at once and counts the packets that the server loses. Burst also checks the server's warnings
// if the system limits the socket buffers.
type Burst struct {
	bench
	Load Load
}

// Name implements lab.Check.
func (b *Burst) Name() string {
	return fmt.Sprintf("bursts: %g Mbit/s at %g fps, %.1f MB at once", b.Load.Mbps, b.Load.FrameRate,
		float64(b.Load.frameBytes())/1e6)
}

// Run implements lab.Check.
func (b *Burst) Run(ctx context.Context) ([]claim.Line, error) {
	result, err := b.run(ctx, Options{Load: b.Load})
	if err != nil {
		return nil, err
	}
	lines := []claim.Line{
		claim.Exactly("packets lost inside the server", int64(result.PacketsLost)-int64(result.ReceiverDrops), "", 0),
		claim.Information("packets lost at the receiver's socket", float64(result.ReceiverDrops), ""),
		claim.Information("packets forwarded", float64(result.PacketsForwarded), ""),
		claim.Information("frames lost", float64(result.FramesLost), ""),
		claim.Information("server CPU per forwarded packet", result.CPU, "µs"),
	}
	lines = append(lines, two("end-to-end frame latency", result.FrameLatency, "ms", 1000)...)
	lines = append(lines, validity("", result)...)
	warning, err := b.warning(ctx)
	return append(lines, warning...), err
}

// limited lists the server flags of the socket buffers and the system limits that apply.
var limited = []struct{ flag, limit string }{{"--media-receive-buffer", "rmem_max"},
	{"--media-send-buffer", "wmem_max"}}

// warningPatience is the time limit for the warnings after the server is ready.
const warningPatience = 5 * time.Second

// warning starts a server that may not exceed the system's limits of socket buffers, and checks the advice in the
// server's warnings.
func (b *Burst) warning(ctx context.Context) ([]claim.Line, error) {
	const name = "warnings with the sysctl line if the buffers are limited"
	path, err := b.copied()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(filepath.Dir(path)) }()
	var wanted []string
	for _, buffer := range limited {
		bytes, err := moreThanAllowed(buffer.limit)
		if err != nil {
			return []claim.Line{claim.Skip(name, err.Error())}, nil
		}
		wanted = append(wanted, buffer.flag, strconv.Itoa(bytes))
	}
	server, err := lab.StartServerUnprivileged(ctx, path, wanted...)
	if errors.Is(err, errors.ErrUnsupported) {
		// Without root the server lacks the privilege anyway.
		server, err = lab.StartServer(ctx, path, wanted...)
	}
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, warningPatience)
	defer cancel()
	found := 0
	_ = testbed.Await(waiting, "the server warns", func() bool { // the line below reports a missing warning
		found = advised(server.LastOutput())
		return found == len(limited)
	})
	if err := server.Stop(); err != nil {
		return nil, err
	}
	return []claim.Line{claim.Exactly(name, int64(found), "", int64(len(limited)))}, nil
}

// advised counts the limits for which the server's output names the sysctl line.
func advised(said string) (n int) {
	for _, buffer := range limited {
		if strings.Contains(said, "sysctl -w net.core."+buffer.limit+"=") {
			n++
		}
	}
	return n
}

// copied copies the server's program to a folder from which every user may run it.
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

// moreThanAllowed returns a buffer size above a system limit, which the system grants to privileged processes only.
func moreThanAllowed(name string) (int, error) {
	data, err := os.ReadFile("/proc/sys/net/core/" + name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", lab.ErrProc, err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return 0, fmt.Errorf("%w: net.core.%s: %w", lab.ErrProc, name, err)
	}
	// The server's own default is 8 MiB.
	return max(8<<20, 2*limit), nil
}
