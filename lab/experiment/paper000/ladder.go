package paper000

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/cast"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// errLadder reports that the qualities could not be prepared.
var errLadder = errors.New("ladder of qualities")

// shares are the shares of the points, in %, of the ladder's qualities: from some 12.5 Mbit/s to some 75 Mbit/s, as in
// the paper's sequence. Each quality is a third above the previous one.
var shares = []int{9, 12, 16, 22, 30, 41, 56, 76}

// prepared are the frames of the ladder in a file.
type prepared struct {
	Path     string
	Captures int `json:"captures"`
	// Rates are the rates of the qualities, in Mbit/s.
	Rates  []float64
	Source direct.Source
}

// loop is the number of prepared captures: two seconds, the period of the figure's movement.
const loop = 60

// prepare encodes the ladder once for all cells and iterations of a run.
func (s *stage) prepare(ctx context.Context, settings *experiment.Settings) (*prepared, error) {
	p := &prepared{Source: direct.SourceOf(direct.Figure, s.Points, settings.Data)}
	name := fmt.Sprintf("ladder-%d-%d-%d-%d", s.Points, s.Bits, s.Speed, settings.Seed)
	p.Path = filepath.Join(settings.Shared, name+".vljournal")
	report := filepath.Join(settings.Shared, name+".json")
	text, err := os.ReadFile(report)
	if err != nil {
		if text, err = s.encode(ctx, p, settings); err != nil {
			return nil, err
		}
		if err := os.WriteFile(report, text, 0o666); err != nil {
			return nil, err
		}
	}
	var said carriage.Prepared
	if err := json.Unmarshal(text, &said); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errLadder, report, err)
	}
	p.Captures = said.Captures
	for _, q := range said.Qualities {
		p.Rates = append(p.Rates, q.Mbps)
	}
	return p, nil
}

// levels returns the qualities in vollab's syntax.
func (s *stage) levels() string {
	var levels []string
	for _, share := range shares {
		levels = append(levels, fmt.Sprintf("p%d=%d%%:%d:%d", share, share, s.Bits, s.Speed))
	}
	return strings.Join(levels, ",")
}

// encode runs vollab prepare, and returns its report.
func (s *stage) encode(ctx context.Context, p *prepared, settings *experiment.Settings) ([]byte, error) {
	vollab, err := settings.Program("vollab")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(p.Path)
	flags := append([]string{"prepare", "--output", p.Path, "--count", strconv.Itoa(loop), "--qualities", s.levels(),
		"--codec", "draco"},
		p.Source.Flags(s.FPS, settings)...)
	text, err := exec.CommandContext(ctx, vollab, flags...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %w: %s", errLadder, err, strings.TrimSpace(string(failed.Stderr)))
	}
	return text, err
}

// ladder is a run of vollab peer with prepared frames.
type ladder struct {
	network *network
	source  direct.Source
	// nil if clouds are encoded as they are captured
	prepared  *prepared
	publisher *cast.Player
	watcher   *cast.Player
	server    *cast.Player // nil for senders without a server
}

// startLadder starts a publisher of prepared frames and a watcher, which gets additional flags.
func (n *network) startLadder(ctx context.Context, watch ...string) (*ladder, error) {
	p, err := n.stage.prepare(ctx, n.settings)
	if err != nil {
		return nil, err
	}
	l := &ladder{network: n, source: p.Source, prepared: p}
	return l, l.start(ctx, watch, "--frames", p.Path, "--fps", strconv.FormatFloat(n.stage.FPS, 'g', -1, 64))
}

// startLive is startLadder for clouds that are encoded while they are captured.
func (n *network) startLive(ctx context.Context) (*ladder, error) {
	l := &ladder{network: n, source: direct.SourceOf(direct.Figure, n.stage.Points, n.settings.Data)}
	return l, l.start(ctx, nil, append(l.source.Flags(n.stage.FPS, n.settings), "--qualities", n.stage.levels(),
		"--codec", "draco")...)
}

// start starts all peers. A server is on the publisher's host, so that the bottleneck is behind the server.
func (l *ladder) start(ctx context.Context, watching []string, material ...string) (err error) {
	n := l.network
	highest := strconv.Itoa(len(shares) - 1)
	publish := append([]string{"--role", "publish"}, material...)
	watch := append([]string{"--role", "watch", "--watched", "publisher", "--watched-tiles", "1", "--quality", highest},
		watching...)
	listen := n.cast.Listen(hostSender)
	if n.stage.Sender == senderServer {
		if l.server, err = n.cast.Peer(ctx, hostSender, "server", "--transport", "volsfu", "--role", "server",
			"--listen", listen, "--controller", n.stage.controller()); err != nil {
			return err
		}
		address, err := l.server.Ready(ctx)
		if err != nil {
			return err
		}
		common := []string{"--transport", "volsfu", "--connect", address}
		// The path from the publisher to the server is within one host.
		if l.publisher, err = n.cast.Peer(ctx, hostSender, "publisher",
			append(append(publish, common...), "--uplink", "300Mbit")...); err != nil {
			return err
		}
		if l.watcher, err = n.cast.Peer(ctx, hostReceiver, "watcher",
			append(append(watch, common...), "--adapt")...); err != nil {
			return err
		}
		return l.watcher.Receiving(ctx)
	}
	if l.publisher, err = n.cast.Peer(ctx, hostSender, "publisher", append(publish, "--transport", n.stage.Sender,
		"--listen", listen, "--adapt", "--min-bitrate", "12.5Mbit",
		"--max-bitrate", "90Mbit")...); err != nil {
		return err
	}
	address, err := l.publisher.Ready(ctx)
	if err != nil {
		return err
	}
	if l.watcher, err = n.cast.Peer(ctx, hostReceiver, "watcher", append(watch, "--transport", n.stage.Sender,
		"--connect", address)...); err != nil {
		return err
	}
	return l.watcher.Receiving(ctx)
}

// drain is the time limit for the last frames.
const drain = time.Second

// ended implements session.
func (l *ladder) ended() <-chan struct{} { return l.watcher.Ended() }

// wait implements session. The publisher continues while the last frames that count are in flight, because its pacer
// drops its queue when the publisher ends.
func (l *ladder) wait(ctx context.Context) (*flights, error) {
	if err := l.network.Until(ctx, l.network.settings.Duration+drain, l.watcher.Ended()); err != nil {
		return nil, errors.Join(err, l.stop())
	}
	for _, player := range []*cast.Player{l.publisher, l.watcher, l.server} {
		if player == nil {
			continue
		}
		if err := player.Stop(); err != nil {
			return nil, err
		}
	}
	return l.read()
}

// stop implements session. Closing the cast ends all processes.
func (l *ladder) stop() error { return nil }

// read reads the records and summaries of the peers.
func (l *ladder) read() (*flights, error) {
	sent, err := l.publisher.Records()
	if err != nil {
		return nil, err
	}
	received, err := l.watcher.Records()
	if err != nil {
		return nil, err
	}
	published, err := l.publisher.Summary()
	if err != nil {
		return nil, err
	}
	watched, err := l.watcher.Summary()
	if err != nil {
		return nil, err
	}
	f := &flights{list: ladderFlights(sent, received, l.network.Began)}
	f.sent, f.received, f.source, f.prepared = sent, received, l.source, l.prepared
	f.since = before(sent, l.network.Began)
	if l.server != nil {
		served, err := l.server.Summary()
		if err != nil {
			return nil, err
		}
		f.relayed = served.Server
	}
	f.notes = []string{l.source.Says}
	switch l.network.stage.Sender {
	case senderPion:
		f.notes = append(f.notes, baseline.PionDefect)
	case senderPatched:
		f.notes = append(f.notes, baseline.PionPatch)
	}
	if p := l.prepared; p != nil && len(p.Rates) > 0 {
		f.notes = append(f.notes,
			fmt.Sprintf("The ladder of %s, %s and %s has %d qualities, from %.1f to %.1f Mbit/s. It is "+
				"prepared before the measurement, which therefore includes no encoding.",
				senderPion, senderPatched, senderServer, len(p.Rates), p.Rates[0], p.Rates[len(p.Rates)-1]))
	}
	if published.Sent == nil || watched.Got == nil {
		return nil, fmt.Errorf("%w: the peers published and received no frames", errLadder)
	}
	if f.estimates = estimatesFrom(published.Sent.Begun, published.Sent.Estimates, l.network.Began,
		l.network.settings.Duration); l.server != nil {
		// The server's estimates describe the path behind the bottleneck. Estimates of the publisher describe the path
		// within its host.
		f.estimates = held(watched.Got.Begun, watched.Got.Estimates, l.network.Began, l.network.settings.Duration)
	}
	f.pace = experiment.Pace{
		Wanted: int(published.Sent.Captures), Done: int(watched.Got.FramesDecoded),
		DroppedByCPU: int(published.Sent.NotEncoded() + watched.Got.FramesSkipped),
	}
	return f, nil
}
