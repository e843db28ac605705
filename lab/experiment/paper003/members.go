package paper003

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

const (
	// figureTiles is the number of tiles. The watcher takes lowTiles of them at their lowest quality.
	figureTiles = 4
	lowTiles    = 2
	// joining is the time limit until the watcher receives, and settling the time from then on until the measurement,
	// in which the estimates of both paths rise.
	joining  = 30 * time.Second
	settling = 5 * time.Second
)

// programs are the processes of a conference.
type programs struct {
	server             *lab.ServerProgram
	publisher, watcher *lab.Program
	sent, received     string // files of frame times
}

// convene starts the programs and waits until the watcher receives for a while.
func convene(ctx context.Context, c *conference, n *topology.Network, s *experiment.Settings) (p *programs, err error) {
	p = &programs{sent: s.File("sent.jsonl"), received: s.File("received.jsonl")}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	volsfu, err := s.Program("volsfu")
	if err != nil {
		return p, err
	}
	volpeer, err := s.Program("volpeer")
	if err != nil {
		return p, err
	}
	secret := rand.Text() + rand.Text()
	keys, err := auth.NewKeyring(auth.Config{Keys: []string{"lab:" + secret}})
	if err != nil {
		return p, err
	}
	// The context does not kill the programs, which print their results when they end.
	serve := n.Command(context.WithoutCancel(ctx), HostServer, volsfu, "serve", "--listen",
		n.Address(HostServer).String()+":0", "--admin-listen", "", "--media-port", "0", "--log-format", "json")
	serve.Env = append(serve.Env, "VOLSFU_AUTH_KEYS=lab:"+secret)
	if p.server, err = lab.StartServerCommand(ctx, serve); err != nil {
		return p, err
	}
	start := func(host string, in io.Reader, arguments ...string) (*lab.Program, error) {
		now := time.Now()
		token, err := keys.Mint("", auth.Claims{Identity: host, Room: "lab", Publish: true, Subscribe: true,
			Expires: now.Add(time.Hour)}, now)
		if err != nil {
			return nil, err
		}
		command := n.Command(context.WithoutCancel(ctx), host, volpeer, append(arguments, "--server", p.server.URL(),
			"--token", token, "--interfaces", topology.InterfaceName(wifi)+","+topology.InterfaceName(cellular),
			"--redundancy", redundancies[c.Arm], "--clock", string(frametimes.SourceSystem), "--json")...)
		command.Stdin = in
		return lab.StartCommand("volpeer on "+host, command, nil)
	}
	if p.publisher, err = start(hostPublisher, nil, "publish", "--points", strconv.Itoa(c.Points), "--tiles",
		strconv.Itoa(figureTiles), "--qualities", "low=25%,high=100%", "--codec", "zstd", "--audio", "tone", "--seed",
		strconv.FormatUint(s.Seed%1000, 10), "--frame-times", p.sent); err != nil {
		return p, err
	}
	// The names of publications are known when the watcher has received frames.
	choices, choose := io.Pipe()
	defer func() { _ = choose.Close() }()
	if p.watcher, err = start(HostViewer, choices, "watch", "--commands", "--frame-times", p.received); err != nil {
		return p, err
	}
	if err := p.receives(ctx, n); err != nil {
		return p, err
	}
	for tile := range lowTiles {
		if _, err := fmt.Fprintf(choose, "quality %d 0\n", tile); err != nil {
			return p, err
		}
	}
	return p, lab.Pause(ctx, settling)
}

// receives waits until media has arrived at the watcher's host.
func (p *programs) receives(ctx context.Context, n *topology.Network) error {
	const media = 200_000 // bytes, more than the handshakes
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	watcher := clients[len(clients)-1]
	for {
		counts := n.Statistics()
		if wire := counts.Wire(watcher.link(wifi), watcher.media); wire.DeliveredBytes > media {
			return nil
		}
		if err := lab.Pause(ctx, observing); err != nil {
			return fmt.Errorf("%w: the watcher received nothing within %v; last output of the publisher: %s; of the "+
				"watcher: %s", err, joining, p.publisher.LastOutput(), p.watcher.LastOutput())
		}
	}
}

// leave stops the clients, which print their results.
func (p *programs) leave() error { return errors.Join(p.watcher.Stop(), p.publisher.Stop()) }

// end stops all programs that run.
func (p *programs) end() {
	for _, program := range []*lab.Program{p.watcher, p.publisher} {
		if program != nil {
			_ = program.Stop()
		}
	}
	if p.server != nil {
		_ = p.server.Stop()
	}
}

// watched is the part of volpeer's summary that is used here.
type watched struct {
	Audio struct {
		Received int64   `json:"packets_received"`
		Lost     int64   `json:"packets_lost"`
		Gap      float64 `json:"longest_gap_ms"`
	} `json:"audio"`
}

// measure computes the figures of the frames captured in a time, and of the audio.
func (p *programs) measure(o *experiment.Outcome, from, to time.Time) error {
	var w watched
	if err := json.Unmarshal(p.watcher.Output(), &w); err != nil {
		return fmt.Errorf("summary of the watcher: %w", err)
	}
	sent, err := readFrames(p.sent)
	if err != nil {
		return err
	}
	received, err := readFrames(p.received)
	if err != nil {
		return err
	}
	f := compareFrames(sent, received, from, to)
	o.Set("audio", float64(w.Audio.Received))
	o.Set("audio_lost", float64(w.Audio.Lost))
	o.Set("audio_gap", w.Audio.Gap)
	o.Set("lowest", float64(f.lowest))
	o.Set("lowest_lost", float64(f.lowestLost))
	o.Set("lowest_gap", lab.Milliseconds(f.gap))
	o.Set("high_lost", float64(f.highLost))
	o.Set("gap", max(w.Audio.Gap, lab.Milliseconds(f.gap)))
	if len(f.latencies) > 0 {
		o.Set("latency_p95", experiment.Quantile(f.latencies, 0.95))
	}
	return nil
}

func readFrames(name string) (list []frametimes.Record, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	err = frametimes.ReadJSONL(file, func(r *frametimes.Record) error {
		list = append(list, *r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// frameCounts compare frames sent and received.
type frameCounts struct {
	lowest, lowestLost, highLost int
	// gap is the longest time between two complete frames of a tile that the watcher takes at the lowest quality.
	gap time.Duration
	// latencies are those of the lowest quality in ms.
	latencies []float64
}

// compareFrames counts the frames captured in a time.
func compareFrames(sent, received []frametimes.Record, from, to time.Time) (c frameCounts) {
	type tileFrame struct {
		tile  int
		frame int64
	}
	arrived := make(map[tileFrame]time.Time)
	for i := range received {
		r := &received[i]
		key := tileFrame{int(r.Track.Tile), r.Frame}
		at := r.Time(frametimes.Reassembled)
		if first, known := arrived[key]; r.Has(frametimes.Reassembled) && (!known || at.Before(first)) {
			arrived[key] = at
		}
	}
	captured := make(map[tileFrame]time.Time)
	for i := range sent {
		r := &sent[i]
		if at := r.Time(frametimes.Captured); !at.Before(from) && at.Before(to) {
			captured[tileFrame{int(r.Track.Tile), r.Frame}] = at
		}
	}
	complete := make(map[int][]time.Time)
	for key, at := range captured {
		end, known := arrived[key]
		if key.tile >= lowTiles {
			if !known {
				c.highLost++
			}
			continue
		}
		c.lowest++
		if !known {
			c.lowestLost++
			continue
		}
		complete[key.tile] = append(complete[key.tile], end)
		c.latencies = append(c.latencies, lab.Milliseconds(end.Sub(at)))
	}
	for _, times := range complete {
		slices.SortFunc(times, time.Time.Compare)
		for i, at := range times[1:] {
			c.gap = max(c.gap, at.Sub(times[i]))
		}
	}
	return c
}
