package firstlight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Demo runs the conference of the README with the installed programs: a server, two publishers and a watcher.
type Demo struct {
	Progress lab.Progress
	Seconds  int
	scene
}

// scene is the source of the two publishers, with its frame rate.
type scene struct {
	// source is in the syntax of volpeer; rate is in frames per second.
	source string
	rate   float64
}

const (
	// frameShare is the part of the frames that must be decoded: 27 of 30.
	frameShare = 0.9
	// latencyIntervals bounds the median latency from capture to decoded, in frame intervals. Publisher and server
	// spread a frame over 0.4 of an interval each, in the worst case one after the other. Encoding and decoding may use
	// 0.7.
	latencyIntervals = 1.5
)

// NewDemo returns the check of the claim: 4 tiles and 3 qualities of 40,000, 20,000 and 10,000 points are the defaults
// of volpeer publish.
func NewDemo(progress lab.Progress) *Demo {
	return &Demo{Progress: progress, Seconds: 20, scene: scene{source: "synthetic", rate: 30}}
}

// Name implements lab.Check.
func (d *Demo) Name() string {
	return fmt.Sprintf("the demo: two publishers of 4 tiles × 3 qualities up to 40,000 points, one watcher, %d s",
		d.Seconds)
}

// Run implements lab.Check.
func (d *Demo) Run(ctx context.Context) ([]claim.Line, error) {
	show, err := d.scene.play(ctx, d.Seconds, "")
	if err != nil {
		return nil, err
	}
	return show.lines("", d.rate), show.ended
}

// show is the result of a scene whose watcher ended with status 0.
type show struct {
	watch watchSummary
	// ended is the error of the server and the publishers when they were stopped, nil if all ended with status 0.
	ended error
}

// watchSummary is the output of volpeer watch --json, with the fields that the checks use. Percentiles are null if no
// frame was decoded.
type watchSummary struct {
	FramesExpected        int64       `json:"frames_expected"`
	FramesDecoded         int64       `json:"frames_decoded"`
	FramesUndecodable     int64       `json:"frames_undecodable"`
	FramesMissing         int64       `json:"frames_missing"`
	FramesSkipped         int64       `json:"frames_skipped"`
	FramesDroppedByServer int64       `json:"frames_dropped_by_server"`
	TilesHeld             int64       `json:"tiles_held"`
	Latency               percentiles `json:"latency_ms"`
	FPS                   float64     `json:"fps"`
	BitrateBPS            float64     `json:"bitrate_bps"`
	NACKsSent             int64       `json:"nacks_sent"`
	Publications          []struct {
		Participant string  `json:"participant"`
		Tile        int     `json:"tile"`
		FPS         float64 `json:"fps"`
	} `json:"publications"`
}

type percentiles struct {
	P50, P95, P99, Max *float64
}

// play runs the scene with the installed programs. If save is not empty, a second watcher then writes its frames to
// that folder.
func (s scene) play(ctx context.Context, seconds int, save string) (*show, error) {
	volpeer, err := lab.FindProgram("volpeer")
	if err != nil {
		return nil, err
	}
	path, err := lab.FindProgram("volsfu")
	if err != nil {
		return nil, err
	}
	server, err := lab.StartServer(ctx, path)
	if err != nil {
		return nil, err
	}
	running := []*lab.Program{server.Program}
	stopAll := func() error {
		var ended error
		// In reverse order of starting.
		for i := len(running) - 1; i >= 0; i-- {
			ended = errors.Join(ended, running[i].Stop())
		}
		running = nil
		return ended
	}
	defer func() { _ = stopAll() }()
	for _, name := range []string{"alice", "bob"} {
		p, err := lab.StartProgram("volpeer publish as "+name, volpeer, nil, "publish", "--server", server.URL(),
			"--room", "demo", "--identity", name,
			"--source", s.source, "--fps", strconv.FormatFloat(s.rate, 'f', -1, 64), "--tiles", "4", "--points",
			"40000", "--qualities", "low,mid,high")
		if err != nil {
			return nil, err
		}
		running = append(running, p)
	}
	outcome := &show{}
	summary, err := watch(ctx, volpeer, server.URL(), "carol", seconds)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(summary, &outcome.watch); err != nil {
		return nil, fmt.Errorf("%w volpeer watch: its summary cannot be read: %w", lab.ErrProgram, err)
	}
	if save != "" {
		if _, err := watch(ctx, volpeer, server.URL(), "dave", saveSeconds, "--save", save); err != nil {
			return nil, err
		}
	}
	outcome.ended = stopAll()
	return outcome, nil
}

// saveSeconds is the time for which frames are saved. The 48 frames of a capture after startingSeconds fit into this
// time. During startingSeconds, the watcher's bandwidth is found and the shown quality is lower. Each second needs 36
// MB for two publishers.
const (
	saveSeconds     = startingSeconds + 2
	startingSeconds = 1
)

// watch runs volpeer watch for a time and returns its summary.
func watch(ctx context.Context, volpeer, url, identity string, seconds int, more ...string) ([]byte, error) {
	arguments := append([]string{"watch", "--server", url, "--room", "demo", "--identity", identity, "--seconds",
		strconv.Itoa(seconds), "--json"}, more...)
	p, err := lab.StartProgram("volpeer watch", volpeer, nil, arguments...)
	if err != nil {
		return nil, err
	}
	if err := p.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			_ = p.Stop()
		}
		return nil, err
	}
	return p.Output(), nil
}

// lines returns the figures of a scene that was published at a rate.
func (s *show) lines(prefix string, rate float64) []claim.Line {
	w := &s.watch
	least := math.Inf(1)
	for _, p := range w.Publications {
		least = min(least, p.FPS)
	}
	lines := []claim.Line{
		claim.AtLeast(prefix+"frames decoded per second and tile", w.FPS, "fps", frameShare*rate),
		claim.Information(prefix+"frames decoded per second, slowest tile", least, "fps"),
		claim.Exactly(prefix+"tiles received", int64(len(w.Publications)), "", 8),
		claim.Exactly(prefix+"frames undecodable", w.FramesUndecodable, "", 0),
		claim.Information(prefix+"frames expected", float64(w.FramesExpected), ""),
		claim.Exactly(prefix+"frames missing, not reported by the server", w.FramesMissing, "", 0),
		claim.Information(prefix+"frames skipped, superseded before they were decoded", float64(w.FramesSkipped), ""),
		claim.Information(prefix+"frames dropped by the server", float64(w.FramesDroppedByServer), ""),
		claim.Information(prefix+"tiles held", float64(w.TilesHeld), ""),
		claim.Information(prefix+"packets requested (NACK)", float64(w.NACKsSent), ""),
		claim.Information(prefix+"bit rate received", w.BitrateBPS/1e6, "Mbit/s"),
	}
	const latency = "latency from capture to decoded, "
	if p50 := w.Latency.P50; p50 != nil {
		lines = append(lines, claim.AtMost(prefix+latency+"p50", *p50, "ms", latencyIntervals*1000/rate))
	} else {
		lines = append(lines, claim.Fail(prefix+latency+"p50", "no frame was decoded"))
	}
	for _, l := range []struct {
		name  string
		value *float64
	}{{"p95", w.Latency.P95}, {"p99", w.Latency.P99}, {"max", w.Latency.Max}} {
		if l.value != nil {
			lines = append(lines, claim.Information(prefix+latency+l.name, *l.value, "ms"))
		}
	}
	return lines
}
