package paper004

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	room, publication = "layers", "scene"
	// connecting is how long all may take to join and to connect, and for the first frame to come.
	connecting = 30 * time.Second
	// gathering is how long the times of the last frames are waited for: sender and server report them every quarter of a second, and the client gives them out after two.
	gathering = 3 * time.Second
	// warming is what does not count: estimates climb.
	warming = time.Second
	// largestRate is what nobody on this machine is to be held back by: 10 Gbit/s.
	largestRate = 10_000_000_000
)

// errNothing says that no frame came.
var errNothing = errors.New("no frame came")

// conversation is what came of a run.
type conversation struct {
	// records are those of the frames that the first receiver made a mesh of, in their order.
	records []frametimes.Record
	// due is how many captures fell due, sent how many were written, in the time taken.
	due, sent int
	took      time.Duration
	residence []lab.Bucket
	// others are how many of the frames written came to each of the other receivers.
	others []int
	// busy is what share of the processors was in use while frames were sent.
	busy float64
}

// least is how many frames came to the receiver to which the fewest came, and all how many came to all of them together.
func (c *conversation) least() int { return slices.Min(append([]int{len(c.records)}, c.others...)) }

func (c *conversation) all() (sum int) {
	sum = len(c.records)
	for _, n := range c.others {
		sum += n
	}
	return sum
}

// confer runs sender, server and receivers for a time.
func (f *frames) confer(ctx context.Context, volsfu string, rate float64, length time.Duration, seed uint64) (c *conversation, err error) {
	most := strconv.Itoa(largestRate)
	server, err := lab.StartServer(ctx, volsfu, "--forward-pacing", fmt.Sprintf("spread:%g", f.Down), "--forward-congestion-max-bps", most, "--forward-congestion-start-bps", most,
		"--forward-congestion-min-bps", strconv.Itoa(int(f.rate(rate))))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	within, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	sender, err := client.Join(within, client.Config{
		URL: server.URL(), Room: room, Identity: "sender", Publications: []volumetric.Publication{description(rate)}, Spread: f.Spread, FrameTimes: true,
		MinUplink: f.rate(rate), StartUplink: largestRate, MaxUplink: largestRate,
	})
	if err != nil {
		return nil, fmt.Errorf("join as sender: %w", err)
	}
	p := &parties{rate: rate, sender: sender, camera: newCamera(seed)}
	defer p.leave()
	for i := range f.Receivers {
		session, err := client.Join(within, client.Config{
			URL: server.URL(), Room: room, Identity: fmt.Sprintf("receiver %d", i), Receive: true, FrameTimes: i == 0, Deadline: time.Second,
		})
		if err != nil {
			return nil, fmt.Errorf("join as receiver %d: %w", i, err)
		}
		p.receive(session, i == 0)
	}
	return p.measure(ctx, server, length)
}

// rate is what a frame rate takes, in bit/s, with packets' headers and a fifth for repairs.
func (f *frames) rate(fps float64) volumetric.Bitrate {
	return volumetric.Bitrate(8 * frameBytes * fps * 1.3)
}

// description is what the sender publishes: one frame of everything.
func description(rate float64) volumetric.Publication {
	return volumetric.Publication{
		Name: publication, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: rate,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 1), Qualities: []volumetric.QualityLevel{{Name: "raw", Bitrate: volumetric.Bitrate(8 * frameBytes * rate)}},
	}
}

// parties are those who confer.
type parties struct {
	rate      float64
	camera    *camera
	sender    *client.Session
	receivers []*client.Session
	running   sync.WaitGroup

	mu      sync.Mutex
	records []frametimes.Record
	got     int
	// numbers are those of the frames that came to each of the other receivers.
	numbers [][]int64
}

// receive takes what comes to a receiver until its session ends. The first one makes meshes.
func (p *parties) receive(session *client.Session, meshes bool) {
	p.receivers = append(p.receivers, session)
	p.running.Go(func() { discard(session.Events()) })
	if meshes {
		p.running.Go(func() { p.draw(session) })
	} else {
		p.mu.Lock()
		at := len(p.numbers)
		p.numbers = append(p.numbers, nil)
		p.mu.Unlock()
		p.running.Go(func() { p.count(session.Frames(), at) })
	}
	p.running.Go(func() {
		for r := range session.FrameTimes() {
			if meshes && r.Has(frametimes.Decoded) {
				p.mu.Lock()
				p.records = append(p.records, r)
				p.mu.Unlock()
			}
		}
	})
}

// draw makes meshes of what comes.
func (p *parties) draw(session *client.Session) {
	var m mesh
	for frame := range session.Frames() {
		began := time.Now()
		if m.extract(frame.Data) {
			session.FrameDecoded(&frame, began, time.Now())
			p.mu.Lock()
			p.got++
			p.mu.Unlock()
		}
	}
}

// count notes which frames come to another receiver.
func (p *parties) count(frames <-chan client.Frame, receiver int) {
	for frame := range frames {
		if len(frame.Data) == frameBytes {
			p.mu.Lock()
			p.numbers[receiver] = append(p.numbers[receiver], frame.Number)
			p.mu.Unlock()
		}
	}
}

// counted is how many of the frames from a number up to another one came to each of the other receivers.
func (p *parties) counted(from, until uint32) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := make([]int, len(p.numbers))
	for i, numbers := range p.numbers {
		for _, n := range numbers {
			if n >= int64(from) && n < int64(until) {
				counts[i]++
			}
		}
	}
	return counts
}

// discard takes what comes.
func discard[T any](from <-chan T) {
	for range from {
		continue
	}
}

// leave ends all sessions.
func (p *parties) leave() {
	_ = p.sender.Close()
	for _, session := range p.receivers {
		_ = session.Close()
	}
	p.running.Wait()
}

func (p *parties) drawn() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got
}

// measure sends until the first frame has come, warms up, and then sends for as long as is measured.
func (p *parties) measure(ctx context.Context, server *lab.ServerProgram, length time.Duration) (*conversation, error) {
	p.running.Go(func() { discard(p.sender.Events()) })
	p.running.Go(func() {
		// What the sender knows is in the records of the receiver, too.
		discard(p.sender.FrameTimes())
	})
	s := p.newSending()
	begin := time.Now()
	if err := s.send(ctx, func() bool { return p.drawn() == 0 && time.Since(begin) < connecting }); err != nil {
		return nil, err
	}
	if p.drawn() == 0 {
		return nil, errNothing
	}
	warm := time.Now()
	if err := s.send(ctx, func() bool { return time.Since(warm) < warming }); err != nil {
		return nil, err
	}
	before, err := lab.Scrape(ctx, metrics(server))
	if err != nil {
		return nil, err
	}
	machine, err := lab.ReadMachineTime()
	if err != nil {
		return nil, err
	}
	c := &conversation{}
	from, first := time.Now(), s.number
	s.due, s.written = 0, 0
	if err := s.send(ctx, func() bool { return time.Since(from) < length }); err != nil {
		return nil, err
	}
	c.due, c.sent, c.took = s.due, s.written, time.Since(from)
	// Before and after there is little to do: joining, and waiting for the last frames' times.
	if now, err := lab.ReadMachineTime(); err == nil {
		c.busy = now.BusySince(machine)
	}
	after, err := lab.Scrape(ctx, metrics(server))
	if err != nil {
		return nil, err
	}
	window := make(lab.Series)
	window.Add(before, after)
	c.residence = window.Histogram("volsfu_residence_seconds")
	if err := lab.Pause(ctx, gathering); err != nil {
		return nil, err
	}
	c.records, c.others = p.recordsOf(from, from.Add(c.took)), p.counted(first, s.number)
	return c, nil
}

func metrics(server *lab.ServerProgram) string { return "http://" + server.Admin + "/metrics" }

// recordsOf are those of the frames that were captured between two times, in their order.
func (p *parties) recordsOf(from, until time.Time) []frametimes.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	records := slices.DeleteFunc(slices.Clone(p.records), func(r frametimes.Record) bool {
		at := r.Time(frametimes.Captured)
		return at.Before(from) || !at.Before(until)
	})
	slices.SortFunc(records, func(a, b frametimes.Record) int { return cmp.Compare(a.Frame, b.Frame) })
	return records
}
