package hotpath

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/test/claim"
)

// Memory measures the memory of a room of many tracks. The packet caches are limited to less than the load would fill.
type Memory struct {
	bench
	Load Load
	// More is the number of additional receivers of a second room; the difference is the memory per receiver.
	More int
	// CacheBytes is the configured bound of all packet caches. CacheAge is the longest time for which packets are kept;
	// without the bound, the load would fill more.
	CacheBytes int
	CacheAge   time.Duration
	// Growth is the percentage by which resident memory may grow once the caches are full.
	Growth float64
}

// Name implements lab.Check.
func (m *Memory) Name() string {
	l := m.Load
	return fmt.Sprintf("memory: %d tiles × %d qualities × %d publishers in one room of %d", l.Tracks, l.Qualities,
		l.Publishers, l.Receivers)
}

// footprint holds the memory figures of a server.
type footprint struct {
	load Load
	// idle, early and late are the resident memory before any client joined, after the first window, and after the
	// second.
	idle, early, late uint64
	figures           Figures
	// repeated is the number of runs before this one that were discarded because the machine was busy.
	repeated int
	// packetBytes is the mean size of the load's packets.
	packetBytes int
}

// result returns a Result with the validity of the run.
func (f *footprint) result() *Result {
	return &Result{Load: f.load, Figures: f.figures, Valid: f.figures.valid(f.load)}
}

// wanted returns the cache size for packets of an age: at least the bytes received in that time.
func (f *footprint) wanted(age time.Duration) float64 {
	return ratio(float64(f.figures.PacketsReceived), f.figures.Seconds) * age.Seconds() * float64(f.packetBytes)
}

// Run implements lab.Check.
func (m *Memory) Run(ctx context.Context) ([]claim.Line, error) {
	one, err := m.attempt(ctx, m.Load)
	if err != nil {
		return nil, err
	}
	load := m.Load
	load.Receivers += m.More
	more, err := m.attempt(ctx, load)
	if err != nil {
		return nil, err
	}
	tracks := m.Load.Publishers * m.Load.tracksPerPublisher()
	perReceiver := (float64(more.late) - float64(one.late)) / float64(m.More)
	perTrack := (float64(one.late-one.idle) - perReceiver*float64(m.Load.Receivers)) / float64(tracks)
	return []claim.Line{
		claim.AtMost("packet caches", float64(one.figures.CacheBytes)/1e6, "MB", float64(m.CacheBytes)/1e6),
		claim.Information("packet caches without the bound, computed from the received rate",
			one.wanted(m.CacheAge)/1e6, "MB"),
		claim.AtMost("growth of resident memory while frames flow", 100*ratio(float64(one.late)-float64(one.early),
			float64(one.early)), "%", m.Growth),
		claim.Information("resident memory", float64(one.late)/1e6, "MB"),
		claim.Information("resident memory before any client joined", float64(one.idle)/1e6, "MB"),
		claim.Information("tracks published", float64(tracks), ""),
		claim.Stated("resident memory per track, including its cache", perTrack/1e3, "kB"),
		claim.Stated(fmt.Sprintf("resident memory per receiver of %d slots", m.Load.streams(m.Load.Publishers)),
			perReceiver/1e3, "kB"),
		claim.Information("resident memory per participant, in total",
			ratio(float64(one.late-one.idle), float64(m.Load.Receivers))/1e6, "MB"),
		claim.Information("goroutines", float64(one.figures.Goroutines), ""),
		claim.Exactly("valid runs", int64(Runs{one.result(), more.result()}.Valid()), "", 2),
		claim.Information("runs discarded because the machine was busy", float64(one.repeated+more.repeated), ""),
		claim.Information("machine busy, at most", 100*max(one.figures.MachineBusy, more.figures.MachineBusy), "%"),
		claim.Information("packets lost in all runs", float64(one.figures.PacketsLost+more.figures.PacketsLost), ""),
	}, nil
}

// attempt measures, and repeats the run if the machine was busy. The last attempt counts.
func (m *Memory) attempt(ctx context.Context, load Load) (footprint, error) {
	for attempt := 1; ; attempt++ {
		print, err := m.measure(ctx, load)
		print.repeated = attempt - 1
		if err != nil || attempt == attempts || !print.figures.disturbed() {
			return print, err
		}
		m.progress.Say("disturbed: %s", print.result().state())
	}
}

// measure attaches a load to its own server and publishes frames in two windows.
func (m *Memory) measure(ctx context.Context, load Load) (print footprint, err error) {
	print.load = load
	bounds := []string{"--forward-cache-bytes", strconv.Itoa(m.CacheBytes), "--forward-cache-age", m.CacheAge.String()}
	o := Options{Load: load, ServerBin: m.serverBin, Arguments: append(bounds, m.arguments...)}
	if err := load.Validate(); err != nil {
		return print, err
	}
	server, err := o.start(ctx)
	if err != nil {
		return print, err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	resident := func() (uint64, error) {
		counts, err := server.counts(ctx)
		return uint64(counts["process_resident_memory_bytes"]), err
	}
	if print.idle, err = resident(); err != nil {
		return print, err
	}
	m.progress.Say("a room of %d with %d tracks", load.Receivers, load.Publishers*load.tracksPerPublisher())
	r, err := newRig(ctx, server, load)
	if err != nil {
		return print, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	window := runTime
	if m.duration != 0 {
		window = m.duration
	}
	for _, at := range []*uint64{&print.early, &print.late} {
		if err := r.measure(ctx, window); err != nil {
			return print, err
		}
		*at = r.figures().RSS
	}
	print.figures, print.packetBytes = r.figures(), load.frameBytes()/load.packetsPerFrame()
	return print, nil
}
