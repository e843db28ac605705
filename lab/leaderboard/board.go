package leaderboard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/environment"
	"github.com/volsfu/volsfu/lab/inference"
)

// linkTrip is the round trip of recorded links without queues.
const linkTrip = 40 * time.Millisecond

// sections are the test cases of RFC 8867.
var sections = []string{"5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8"}

// Board is the comparison of all entries.
type Board struct {
	Begun time.Time `json:"begun"`
	// Took is the time of the runs in seconds.
	Took        float64                  `json:"took_seconds"`
	Version     string                   `json:"version"`
	Command     string                   `json:"command"`
	Seeds       int                      `json:"seeds"`
	Environment *environment.Environment `json:"environment,omitempty"`
	Entries     []Entry                  `json:"entries"`
	Sources     []Source                 `json:"sources"`
	Links       []Link                   `json:"links"`
	// Absent lists links whose file is absent.
	Absent []string `json:"absent,omitempty"`
	Cells  []Cell   `json:"cells"`
}

// Cell is one run of an entry. Shares are in per cent, times in milliseconds.
type Cell struct {
	Entry string `json:"entry"`
	// Case is the name of a link, or a section of RFC 8867.
	Case string `json:"case"`
	Seed uint64 `json:"seed"`
	// Utilisation is the rate of decodable frames as a share of the most that fits into the link, OfLink, with the
	// headers of packets, as a share of the link's rate. Both count from 10 s on.
	Utilisation float64 `json:"utilisation"`
	OfLink      float64 `json:"of_link"`
	// Latency is the 95th percentile of frame latencies, without outages below 1 Mbit/s and 3 s after them.
	Latency float64 `json:"latency_p95"`
	Median  float64 `json:"latency_p50"`
	// Undecodable is the share of undecodable frames, of those that began to leave; Dropped counts frames that did not
	// begin, as a share of all frames.
	Undecodable float64 `json:"undecodable"`
	Dropped     float64 `json:"dropped_whole"`
	Queue       float64 `json:"queue_p95"`
	// Jain is Jain's index of several receivers, OfFair the share of the fair rate beside a TCP flow.
	Jain   *float64 `json:"jain,omitempty"`
	OfFair *float64 `json:"of_fair,omitempty"`
}

// Options configure a board.
type Options struct {
	// Only and Cases select entries and cases by name, all if empty.
	Only, Cases []string
	// Seeds is the number of runs of each case, and Seconds bounds the time of links, 0 for no bound.
	Seeds    int
	Seconds  float64
	Folders  Folders
	Progress lab.Progress
	// Packets returns the receiver of the packets of a run, nil for no log.
	Packets func(entry, name string, seed uint64) (packet func(control.PacketFate), end func() error, err error)
}

// job is one run.
type job struct {
	entry *Entry
	name  string
	text  string
	seed  uint64
	trace *netem.RateTrace
}

// Run runs a board. Links whose file is absent are listed and left out.
func Run(ctx context.Context, o Options) (*Board, error) {
	links, err := KnownLinks()
	if err != nil {
		return nil, err
	}
	b := &Board{Begun: time.Now().UTC().Truncate(time.Second), Seeds: o.Seeds, Sources: links.Sources}
	for _, e := range entries() {
		if len(o.Only) == 0 || slices.Contains(o.Only, e.Name) {
			b.Entries = append(b.Entries, e)
		}
	}
	var jobs []job
	add := func(name, text string, trace *netem.RateTrace) {
		for i := range b.Entries {
			for seed := range o.Seeds {
				if b.Entries[i].Skipped == "" {
					jobs = append(jobs, job{&b.Entries[i], name, text, uint64(seed + 1), trace})
				}
			}
		}
	}
	wanted := func(name string) bool { return len(o.Cases) == 0 || slices.Contains(o.Cases, name) }
	for _, section := range sections {
		if wanted(section) {
			add(section, "rfc8867:"+section, nil)
		}
	}
	for i := range links.Links {
		link := &links.Links[i]
		if !wanted(link.Name) {
			continue
		}
		trace, err := links.Read(link, o.Folders)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			b.Absent = append(b.Absent, link.Name)
			continue
		case err != nil:
			return nil, err
		}
		b.Links = append(b.Links, *link)
		add(link.Name, "trace", &trace)
	}
	if len(jobs) == 0 {
		return nil, fmt.Errorf("no entry and no case is selected, or no file of a link is in %s and %s; "+
			"vollab data fetch gets them", o.Folders.Fetched, o.Folders.TestData)
	}
	begun := time.Now()
	if b.Cells, err = runAll(ctx, jobs, o); err != nil {
		return nil, err
	}
	b.Took = time.Since(begun).Seconds()
	return b, nil
}

// runAll runs jobs on all processors, and returns their cells in the order of the jobs.
func runAll(ctx context.Context, jobs []job, o Options) ([]Cell, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cells, failed := make([]Cell, len(jobs)), make([]error, len(jobs))
	next := make(chan int)
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for i := range next {
				if cells[i], failed[i] = jobs[i].run(ctx, o); failed[i] != nil {
					cancel()
				}
			}
		})
	}
	for i := range jobs {
		if i%100 == 0 {
			o.Progress.Say("run %d of %d", i+1, len(jobs))
		}
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	running.Wait()
	for _, err := range failed {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	return cells, ctx.Err()
}

func (j *job) run(ctx context.Context, o Options) (cell Cell, err error) {
	c := control.DefaultOptions()
	c.Seed = j.seed
	if j.trace != nil {
		c.RTT, c.Trace = linkTrip, j.trace
		if limit := time.Duration(o.Seconds * float64(time.Second)); limit > 0 && limit < j.trace.Duration {
			c.Duration = limit
		}
	}
	j.entry.configure(&c)
	if o.Packets != nil {
		packet, end, err := o.Packets(j.entry.Name, j.name, j.seed)
		if err != nil {
			return cell, err
		}
		c.Packets = packet
		defer func() { err = errors.Join(err, end()) }()
	}
	record, err := control.RunVirtual(ctx, j.text, c)
	if err != nil {
		return cell, fmt.Errorf("%s, %s: %w", j.entry.Name, j.name, err)
	}
	r := record.Result()
	sent := max(float64(r.FramesSent), 1)
	all := sent + float64(r.FramesDroppedWhole)
	return Cell{Entry: j.entry.Name, Case: j.name, Seed: j.seed, Utilisation: 100 * r.Utilisation,
		OfLink: 100 * r.ShareWithHeaders(), Latency: r.Latency.P95, Median: r.Latency.P50,
		Undecodable: 100 * float64(r.FramesUndecodable) / sent, Dropped: 100 * float64(r.FramesDroppedWhole) / all,
		Queue: r.Queue.P95, Jain: r.JainIndex, OfFair: r.ShareOfFair}, nil
}

// Figure is a mean with its interval over n values.
type Figure struct {
	Mean     float64
	N        int
	Interval *inference.Interval // nil for fewer than two values
}

func figureOf(values []float64) Figure {
	f := Figure{N: len(values), Interval: inference.Mean(values)}
	for _, v := range values {
		f.Mean += v / float64(len(values))
	}
	return f
}

// values returns a figure of the runs of an entry on a case, one per seed.
func (b *Board) values(entry, name string, of func(*Cell) (float64, bool)) (values []float64) {
	for i := range b.Cells {
		if c := &b.Cells[i]; c.Entry == entry && c.Case == name {
			if v, ok := of(c); ok {
				values = append(values, v)
			}
		}
	}
	return values
}

// over returns the mean of a figure over links, each with the mean over its seeds.
func (b *Board) over(entry string, links []Link, of func(*Cell) (float64, bool)) Figure {
	var means []float64
	for i := range links {
		if values := b.values(entry, links[i].Name, of); len(values) > 0 {
			means = append(means, figureOf(values).Mean)
		}
	}
	return figureOf(means)
}

// part returns the links that were used to change GCC, or the others.
func (b *Board) part(tuned bool) (links []Link) {
	for _, l := range b.Links {
		if l.Tuned == tuned {
			links = append(links, l)
		}
	}
	return links
}
