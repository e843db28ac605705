package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
)

const (
	// maxResident is the largest growth of a process's resident memory between the first and the last quarter, in per
	// cent.
	maxResident = 5
	// maxHeap is the largest growth of the live Go heap in that time, in megabytes of 2^20 bytes. Garbage collections
	// report the heap in whole megabytes, and a collection at a moment with little work may report one megabyte less.
	maxHeap = 2
	// sampleInterval is the interval of reading resident memory. scrapeInterval is the interval of reading the server's
	// heap, which itself allocates memory in the server.
	sampleInterval, scrapeInterval = time.Second, 5 * time.Second
	// collectionInterval is the longest time between two garbage collections of the Go runtime. The memory of programs
	// with little garbage rises and falls with this period.
	collectionInterval = 2 * time.Minute
)

// endurance watches the memory of a server, a publisher and a watcher, while another participant sends damaged frames.
type endurance struct {
	progress lab.Progress
	duration time.Duration
	publish  []string
}

func newEndurance(duration time.Duration, progress lab.Progress) *endurance {
	return &endurance{progress, duration, []string{"--source", "synthetic", "--fps", fmt.Sprint(rate), "--points",
		"40000", "--tiles", "4", "--codec", "draco"}}
}

// Name implements lab.Check.
func (e *endurance) Name() string {
	return fmt.Sprintf("memory over %v at %d fps, damaged frames among others", e.duration, rate)
}

// Run implements lab.Check.
func (e *endurance) Run(ctx context.Context) ([]claim.Line, error) {
	const name = "memory"
	p, err := findPrograms()
	if err != nil {
		return nil, err
	}
	if why, err := p.lacksDraco(ctx); err != nil || why != "" {
		return skipped(name, why), err
	}
	env, err := exec.LookPath("env")
	if err != nil {
		return skipped(name, "the program env is missing, which sets GODEBUG to report garbage collections"), nil
	}
	s := &stage{env: env, begun: time.Now(), programs: p}
	err = s.open(ctx, e.publish)
	if err == nil {
		err = s.watch(ctx, e.duration, e.progress)
	}
	if err = errors.Join(err, s.close()); err != nil {
		return nil, err
	}
	var summary watched
	if err := read(s.watcher.Program, &summary); err != nil {
		return nil, err
	}
	lines := enduranceLines(summary.Publications, s.vandal.sent)
	for _, a := range []*actor{s.server, s.publisher, s.watcher} {
		lines = append(lines, a.lines(e.duration)...)
	}
	return lines, nil
}

// The identities of the participants.
const publisherName, watcherName, vandalName = "alice", "carol", "mallory"

// enduranceLines returns the figures of a watcher's tiles: undamaged tiles of the publisher, and damaged tiles.
func enduranceLines(tiles []tile, damaged int64) []claim.Line {
	var fps float64
	var whole, undecodable, refused, decoded int64
	for _, t := range tiles {
		switch t.Participant {
		case publisherName:
			whole++
			fps += t.FPS
			undecodable += t.Undecodable
		case vandalName:
			refused += t.Undecodable
			decoded += t.Decoded
		}
	}
	return []claim.Line{
		claim.AtLeast("frames decoded per second and tile", fps/max(1, float64(whole)), "fps", decodedShare*rate),
		claim.Exactly("undamaged frames undecodable", undecodable, "", 0),
		claim.Information("frames damaged and sent", float64(damaged), ""),
		claim.AtLeast("damaged frames rejected", float64(refused), "", 1),
		claim.Information("damaged frames decoded", float64(decoded), ""),
	}
}

// actor is a program whose memory is watched.
type actor struct {
	*lab.Program
	name     string
	resident []sample
	heap     func() []sample
}

// lines returns the growth of the actor's memory from the first to the last quarter of the time.
func (a *actor) lines(whole time.Duration) (lines []claim.Line) {
	const megabyte = 1 << 20
	name := a.name + ": growth of resident memory"
	switch first, last := quarters(a.resident, whole); {
	case len(first) == 0 || len(last) == 0:
		lines = append(lines, claim.Skip(name, "not available on this system"))
	case quarter(whole) < collectionInterval:
		lines = append(lines, claim.Information(name+", in a time too short for a target",
			100*(slices.Max(last)/slices.Max(first)-1), "%"))
	default:
		lines = append(lines, claim.AtMost(name, 100*(slices.Max(last)/slices.Max(first)-1), "%", maxResident))
	}
	if len(a.resident) > 0 {
		lines = append(lines, claim.Information(a.name+": resident memory at the end",
			a.resident[len(a.resident)-1].bytes/megabyte, "MiB"))
	}
	// The smallest live heap is the memory in permanent use. Other memory in use at a moment is temporary.
	name = a.name + ": growth of the Go heap"
	if first, last := quarters(a.heap(), whole); len(first) == 0 || len(last) == 0 {
		lines = append(lines,
			claim.Skip(name, "too few garbage collections; the runtime collects at least every two minutes"))
	} else {
		before, after := slices.Min(first), slices.Min(last)
		lines = append(lines, claim.AtMost(name, (after-before)/megabyte, "MiB", maxHeap),
			claim.Information(a.name+": Go heap", after/megabyte, "MiB"))
	}
	return lines
}

// stage has the running programs.
type stage struct {
	programs
	env   string
	begun time.Time

	serving   *lab.ServerProgram
	admin     string
	scraped   time.Duration // time of the last scrape since the start
	collected float64       // time of the server's last garbage collection, by the server's clock
	heap      []sample      // a sample after each collection
	server    *actor
	publisher *actor
	watcher   *actor
	vandal    vandal
}

// open starts the server, the publisher and the vandal.
func (s *stage) open(ctx context.Context, publish []string) error {
	var err error
	if s.serving, err = lab.StartServer(ctx, s.volsfu); err != nil {
		return err
	}
	s.admin = "http://" + s.serving.Admin + "/metrics"
	s.server = &actor{Program: s.serving.Program, name: "server", heap: func() []sample { return s.heap }}
	if s.publisher, err = s.enter("publisher", publisherName, append([]string{"publish"}, publish...)); err != nil {
		return err
	}
	s.vandal = vandal{from: volumetric.PublicationRef{Participant: publisherName, Publication: objectName},
		random: rand.New(rand.NewPCG(1, 1))}
	return s.vandal.join(ctx, s.serving.URL(), vandalName)
}

// enter starts a command of volpeer that reports garbage collections.
func (s *stage) enter(name, identity string, command []string) (*actor, error) {
	told := &collections{begun: s.begun}
	arguments := append(entering(command[0], s.serving, identity), command[1:]...)
	// env executes volpeer in the same process, so that the number of the process stays the same.
	p, err := lab.StartProgram("volpeer "+command[0], s.env, told, append([]string{"GODEBUG=gctrace=1", s.volpeer},
		arguments...)...)
	if err != nil {
		return nil, err
	}
	return &actor{Program: p, name: name, heap: told.all}, nil
}

// watch starts a watcher, and samples all programs' memory until the watcher's time is over.
func (s *stage) watch(ctx context.Context, duration time.Duration, progress lab.Progress) (err error) {
	seconds := strconv.FormatFloat(duration.Seconds(), 'f', -1, 64)
	if s.watcher, err = s.enter("watcher", watcherName, []string{"watch", "--seconds", seconds}); err != nil {
		return err
	}
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	ended := make(chan error, 1)
	go func() { ended <- finish(ctx, s.watcher.Program) }()
	told := s.begun
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
			if err := s.look(ctx); err != nil {
				// The watcher may have ended meanwhile. Any other failure to read memory ends the watcher.
				return errors.Join(err, s.watcher.Stop(), <-ended)
			}
			if time.Since(told) > time.Minute {
				told = time.Now()
				progress.Say("  %v of %v", time.Since(s.begun).Round(time.Second), duration)
			}
		}
	}
}

// look takes a sample of every program. On systems that do not report resident memory, no program has samples.
func (s *stage) look(ctx context.Context) error {
	at := time.Since(s.begun)
	for _, a := range []*actor{s.server, s.publisher, s.watcher} {
		if bytes, err := lab.ResidentBytes(a.PID()); err == nil {
			a.resident = append(a.resident, sample{at, bytes})
		}
	}
	if at-s.scraped < scrapeInterval {
		return nil
	}
	s.scraped = at
	series, err := exposition.Scrape(ctx, s.admin)
	if err != nil {
		return err
	}
	return s.collect(at, series)
}

// collect takes a sample of the server's heap after a garbage collection. By default (GOGC=100), the next collection is
// due when the heap is twice the size after this collection.
func (s *stage) collect(at time.Duration, series exposition.Series) error {
	collected, err := series.Value("go_memstats_last_gc_time_seconds")
	next, missing := series.Value("go_memstats_next_gc_bytes")
	if err = errors.Join(err, missing); err != nil || collected == s.collected {
		return err
	}
	s.collected = collected
	s.heap = append(s.heap, sample{at, next / 2})
	return nil
}

// close ends all programs in reverse order.
func (s *stage) close() error {
	err := s.vandal.leave()
	if s.publisher != nil {
		err = errors.Join(err, s.publisher.Stop())
	}
	if s.serving != nil {
		err = errors.Join(err, s.serving.Stop())
	}
	return err
}
