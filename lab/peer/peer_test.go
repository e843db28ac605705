package peer

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/baseline"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	// patience is much longer than any of these runs.
	patience = time.Minute
	// length is the duration of a run. A fifth is enough on a machine that does not stall.
	length = 2500 * time.Millisecond
)

// prepare makes a file of frames: three captures of a few points, with more points at higher qualities. At 30 per
// second the frames need 200 kbit/s, and no estimate is lower.
func prepare(t *testing.T, tiles, qualities int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "frames")
	w, err := journal.Create(path, journal.Head{Content: journal.Encoded, FrameRate: 30,
		Publication: &volumetric.Publication{
			Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, qualities),
		}})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	encoder, params := codec.Raw.NewEncoder(), codec.Params{PositionBits: 10,
		Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}}
	for number := range 3 * tiles * qualities {
		tile := journal.Tile{Number: uint32(number / tiles / qualities), Tile: number % tiles,
			Quality: volumetric.Quality(number / tiles % qualities), Codec: codec.Raw.FourCC(), Capture: begun}
		var cloud pointcloud.Cloud
		for point := range 50 * (1 + int(tile.Quality)) {
			cloud.Append([3]float32{float32(point) / 1000}, [3]uint8{byte(number)})
		}
		if tile.Data, err = encoder.Encode(nil, &cloud, params); err == nil {
			err = w.WriteTile(&tile)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// trial is a publisher, a watcher, and a server if the transport has one, in this process.
type trial struct {
	t                  *testing.T
	publisher, watcher Config
	server             *Config
	running            sync.WaitGroup
	published, watched *carriage.Summary
	relayed            *carriage.Summary
}

func newTrial(t *testing.T, transport baseline.Transport, frames string, tiles int) *trial {
	common := func(role baseline.Role, name string) Config {
		c := DefaultConfig()
		c.End.Transport, c.End.Role, c.End.Name, c.End.Watched, c.End.Tiles = transport, role, name, "a", tiles
		return c
	}
	r := &trial{t: t, publisher: common(baseline.RolePublish, "a"), watcher: common(baseline.RoleWatch, "b")}
	r.publisher.Frames, r.publisher.Publish.FPS = frames, 30
	if transport == baseline.DirectTCP || transport == baseline.TCPSwitching {
		// The publisher waits for the watcher, which ends together with the publisher.
		r.publisher.Duration = length
	} else {
		r.watcher.Duration = length
	}
	if transport.Served() {
		c := common(baseline.RoleServer, "server")
		c.End.Listen = "127.0.0.1:0"
		r.server = &c
	}
	return r
}

// run runs all peers until publisher and watcher have ended, and then ends the server.
func (r *trial) run() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	address := make(chan string, 1)
	told := func(a string) { address <- a }
	var server sync.WaitGroup
	var serverErr, publishErr, watchErr error
	first, second := &r.publisher, &r.watcher
	switch listens, _ := first.End.Needs(); {
	case r.server != nil:
		r.server.Listening = told
		server.Go(func() { r.relayed, serverErr = Run(serving, *r.server) })
		r.publisher.End.Connect = r.await(ctx, address)
		r.watcher.End.Connect = r.publisher.End.Connect
	case listens:
		first.End.Listen, first.Listening = "127.0.0.1:0", told
	default:
		second.End.Listen, second.Listening = "127.0.0.1:0", told
	}
	// A publisher without a duration publishes until the watcher ends.
	publishing, watched := context.WithCancel(ctx)
	defer watched()
	publish := func() {
		r.running.Go(func() {
			if r.published, publishErr = Run(publishing, r.publisher); publishErr != nil {
				cancel() // no other goroutine waits for it
			}
		})
	}
	watch := func() {
		r.running.Go(func() {
			if r.watched, watchErr = Run(ctx, r.watcher); watchErr != nil || r.publisher.Duration == 0 {
				watched()
			}
		})
	}
	switch {
	case first.End.Listen != "":
		publish()
		r.watcher.End.Connect = r.await(ctx, address)
		watch()
	case second.End.Listen != "":
		watch()
		r.publisher.End.Connect = r.await(ctx, address)
		publish()
	default:
		watch()
		publish()
	}
	r.running.Wait()
	stop()
	server.Wait()
	if err := errors.Join(serverErr, publishErr, watchErr); err != nil {
		r.t.Fatal(err)
	}
}

func (r *trial) await(ctx context.Context, address chan string) string {
	r.t.Helper()
	select {
	case a := <-address:
		return a
	case <-ctx.Done():
		r.t.Fatal("no peer listens")
		return ""
	}
}

// TestTransports sends frames over every transport, decodes and shows them. Arriving frames are complete, and streams
// lose no frame.
func TestTransports(t *testing.T) {
	four, one := prepare(t, 4, 1), prepare(t, 1, 1)
	for _, transport := range baseline.Transports {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			frames, tiles := four, 4
			if transport == baseline.UDPChunks {
				frames, tiles = one, 1
			}
			r := newTrial(t, transport, frames, tiles)
			r.watcher.Records = filepath.Join(t.TempDir(), "watched")
			r.publisher.Records = filepath.Join(t.TempDir(), "published")
			r.run()
			sent, got := r.published.Sent, r.watched.Got
			if sent.FramesSent == 0 || got.FramesShown == 0 || got.FramesDamaged+got.FramesUndecodable != 0 {
				t.Errorf("sent %+v\ngot %+v", sent, got)
			}
			if got.Latency.Count != int(got.FramesShown) || got.Latency.P50 <= 0 || got.Bytes == 0 || got.Mbps <= 0 {
				t.Errorf("got latency %+v, %d bytes, %g Mbit/s", got.Latency, got.Bytes, got.Mbps)
			}
			dropped := sent.FramesDropped
			if r.relayed != nil {
				if dropped += r.relayed.Server.FramesDropped; r.relayed.Server.FramesReceived == 0 {
					t.Errorf("the server has received nothing: %+v", r.relayed.Server)
				}
			}
			// Datagrams may be lost, and a client that is too far behind skips segments. Streams deliver every frame.
			streams := []baseline.Transport{baseline.DirectTCP, baseline.TCPSwitching, baseline.Reflector,
				baseline.Websocket}
			if slices.Contains(streams, transport) && got.FramesMissing > dropped {
				t.Errorf("%d frames are missing, but only %d were dropped", got.FramesMissing, dropped)
			}
			checkRecords(t, r, tiles)
		})
	}
}

// checkRecords joins the records of both sides.
func checkRecords(t *testing.T, r *trial, tiles int) {
	t.Helper()
	type place struct {
		tile  int
		frame int64
	}
	sent := make(map[place]frametimes.Record)
	read := func(path string, take func(*frametimes.Record)) {
		text, err := os.ReadFile(path)
		if err == nil {
			err = frametimes.ReadJSONL(bytes.NewReader(text), func(r *frametimes.Record) error { take(r); return nil })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read(r.publisher.Records, func(r *frametimes.Record) { sent[place{r.Track.Tile, r.Frame}] = *r })
	shown := 0
	read(r.watcher.Records, func(got *frametimes.Record) {
		of, known := sent[place{got.Track.Tile, got.Frame}]
		if !known {
			return // the publisher was ended before it could record its last frame
		}
		got.Merge(&of)
		if !got.Has(frametimes.Shown) {
			return
		}
		shown++
		before := got.Time(frametimes.Captured)
		for _, stamp := range []frametimes.Stamp{frametimes.Acquired, frametimes.Encoded, frametimes.Reassembled,
			frametimes.DecodingBegan, frametimes.Decoded, frametimes.Shown} {
			at := got.Time(stamp)
			if at.Before(before) || at.IsZero() {
				t.Errorf("tile %d of frame %d: %v at %v, want a time after %v", got.Track.Tile, got.Frame, stamp, at,
					before)
			}
			before = at
		}
	})
	if shown < tiles {
		t.Errorf("%d frames are in the records of both sides, want at least %d", shown, tiles)
	}
}

// TestDecisions: two tiles change their qualities, by the mechanism of each transport.
func TestDecisions(t *testing.T) {
	frames := prepare(t, 2, 2)
	decisions := filepath.Join(t.TempDir(), "decisions.csv")
	text := "t_s,q0,q1\n0,1,0\n0.2,0,1\n0.4,1,1\n"
	if err := os.WriteFile(decisions, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, transport := range []baseline.Transport{baseline.TCPSwitching, baseline.Reflector, baseline.Websocket,
		baseline.DASH, baseline.Pion, baseline.Volsfu} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			r := newTrial(t, transport, frames, 2)
			// The last decision is at 0.4 s. The remaining time is for busy machines.
			r.publisher.Duration, r.watcher.Duration = 0, length
			r.watcher.Decisions = decisions
			r.run()
			var list []carriage.DecisionOutcome
			for _, d := range r.watched.Got.Decisions {
				if !d.Superseded {
					list = append(list, d)
				}
			}
			if len(r.watched.Got.Decisions) != 4 || len(list) == 0 {
				t.Fatalf("got decisions %+v, want four, with at least one not superseded", r.watched.Got.Decisions)
			}
			for _, d := range list {
				if d.FirstPacket < 0 || d.Decoded < d.FirstPacket || d.Shown < d.Decoded || d.Before == d.Quality {
					t.Errorf("got %+v, want a decision in force and shown", d)
				}
			}
		})
	}
}

// TestBoth runs two clients that publish and watch at the same time, at different rates.
func TestBoth(t *testing.T) {
	frames := prepare(t, 2, 1)
	for _, transport := range []baseline.Transport{baseline.DirectTCP, baseline.Volsfu} {
		t.Run(string(transport), func(t *testing.T) {
			t.Parallel()
			r := newTrial(t, transport, frames, 2)
			one, other := &r.publisher, &r.watcher
			one.End.Role, other.End.Role = baseline.RoleBoth, baseline.RoleBoth
			one.End.Watched, other.Frames, other.Publish.FPS, other.Duration = "b", frames, 15, length
			one.Duration = length
			if transport == baseline.DirectTCP {
				one.End.Listen, other.End.Listen = freeAddress(t), freeAddress(t)
				one.End.Connect, other.End.Connect = other.End.Listen, one.End.Listen
			}
			r.runBoth()
			for _, s := range []*carriage.Summary{r.published, r.watched} {
				if s.Sent.FramesSent == 0 || s.Got.FramesShown == 0 || s.Got.FramesDamaged != 0 {
					t.Errorf("%s sent %+v\ngot %+v", s.Name, s.Sent, s.Got)
				}
			}
		})
	}
}

// freeAddress returns an address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// runBoth runs two clients that both publish and watch, and a server if the transport has one.
func (r *trial) runBoth() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	defer stop()
	var server sync.WaitGroup
	var failures [3]error
	if r.server != nil {
		address := make(chan string, 1)
		r.server.Listening = func(a string) { address <- a }
		server.Go(func() { r.relayed, failures[0] = Run(serving, *r.server) })
		r.publisher.End.Connect = r.await(ctx, address)
		r.watcher.End.Connect = r.publisher.End.Connect
	}
	r.running.Go(func() { r.published, failures[1] = Run(ctx, r.publisher) })
	r.running.Go(func() { r.watched, failures[2] = Run(ctx, r.watcher) })
	r.running.Wait()
	stop()
	server.Wait()
	if err := errors.Join(failures[:]...); err != nil {
		r.t.Fatal(err)
	}
}

// TestLive encodes during capture, with more frames than the queue holds.
func TestLive(t *testing.T) {
	r := newTrial(t, baseline.DirectTCP, "", 2)
	r.publisher.Material = carriage.Material{Source: "synthetic", Points: 2000, Tiling: "direction", Tiles: 2,
		Qualities: "low,high", Codec: "raw"}
	r.publisher.Publish.EncoderQueue, r.publisher.Workers = 1, 1
	r.watcher.End.Quality = 1
	r.watcher.Watch.Display = 60
	r.run()
	s, got := r.published.Sent, r.watched.Got
	if s.Encoding.Count == 0 || s.Encoding.Mean <= 0 || s.CapturesEncoded == 0 || s.Captures < s.CapturesEncoded {
		t.Errorf("published %+v", s)
	}
	if got.FramesShown == 0 || got.DisplayWait.Max <= 0 {
		t.Errorf("received %+v", got)
	}
}

func TestRefused(t *testing.T) {
	base := func() Config {
		c := DefaultConfig()
		c.End.Transport, c.End.Role, c.End.Connect = baseline.DirectTCP, baseline.RoleWatch, "127.0.0.1:1"
		return c
	}
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"transport":     {func(c *Config) { c.End.Transport = "pigeons" }, baseline.ErrConfig},
		"role":          {func(c *Config) { c.End.Role = "spectate" }, baseline.ErrConfig},
		"no server":     {func(c *Config) { c.End.Role = baseline.RoleServer }, baseline.ErrConfig},
		"no address":    {func(c *Config) { c.End.Connect = "" }, baseline.ErrConfig},
		"two addresses": {func(c *Config) { c.End.Listen = "127.0.0.1:0" }, baseline.ErrConfig},
		"tiles":         {func(c *Config) { c.End.Tiles = 0 }, baseline.ErrConfig},
		"tiles of chunks": {func(c *Config) {
			c.End.Transport, c.End.Tiles, c.End.Listen, c.End.Connect = baseline.UDPChunks, 2, "127.0.0.1:0", ""
		}, baseline.ErrConfig},
		"name":      {func(c *Config) { c.End.Name = "a/b" }, baseline.ErrConfig},
		"decisions": {func(c *Config) { c.Decisions = missing }, os.ErrNotExist},
		"frames": {func(c *Config) {
			c.End.Role, c.End.Connect, c.End.Listen, c.Frames = baseline.RolePublish, "", "127.0.0.1:0", missing
		}, os.ErrNotExist},
	} {
		c := base()
		test.change(&c)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := Run(ctx, c); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
		cancel()
	}
}

// TestNothing: a watcher without frames returns ErrNothing.
func TestNothing(t *testing.T) {
	c := DefaultConfig()
	c.End.Transport, c.End.Role, c.End.Listen = baseline.UDPChunks, baseline.RoleWatch, "127.0.0.1:0"
	c.Watch.Patience = time.Millisecond
	if _, err := Run(t.Context(), c); !errors.Is(err, carriage.ErrNothing) || !strings.Contains(err.Error(), "1ms") {
		t.Errorf("got %v, want ErrNothing and the duration of the wait", err)
	}
}

// TestAdapt selects qualities by an estimate.
func TestAdapt(t *testing.T) {
	r := newTrial(t, baseline.Pion, prepare(t, 2, 2), 2)
	r.publisher.End.Adapt = true
	r.run()
	if e := r.published.Sent.Estimates; len(e) == 0 || e[0].Mbps < 12 {
		t.Errorf("got estimates %v, want estimates of at least 12.5 Mbit/s", e)
	}
}

// TestServerEstimates: the server reports its estimates of the path to a watcher, and the watcher's summary contains
// them. The publisher's estimates describe another path.
func TestServerEstimates(t *testing.T) {
	r := newTrial(t, baseline.Volsfu, prepare(t, 2, 2), 2)
	r.watcher.End.Adapt = true
	r.run()
	got := r.watched.Got
	if len(got.Estimates) == 0 || got.Estimates[0].Mbps <= 0 || got.Begun.IsZero() ||
		len(r.published.Sent.Estimates) > 0 {
		t.Errorf("since %v the watcher has estimates %v, and the publisher %v; expected some and none", got.Begun,
			got.Estimates, r.published.Sent.Estimates)
	}
}
