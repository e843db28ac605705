package scale

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/testbed"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"scale/room": experiment.Define(defaultRoom(), quantities, run),
	}}
}

// room describes the participants. All participants are in this process; the server is a separate process.
type room struct {
	Participants int `yaml:"participants"`
	Tiles        int `yaml:"tiles"`
	// Mbps is the rate of each publisher, all tiles together, in Mbit/s, at FPS frames per second. Frames are prepared:
	// nothing is encoded or decoded.
	Mbps float64 `yaml:"mbps"`
	FPS  float64 `yaml:"fps"`
}

func defaultRoom() room { return room{Participants: 2, Tiles: 4, Mbps: 2, FPS: 15} }

// Validate reports the first invalid parameter of a cell.
func (p room) Validate() error {
	switch {
	case p.Participants < 2 || p.Participants > 200:
		return fmt.Errorf("participants: expected 2 to 200, got %d", p.Participants)
	case p.Tiles < 1 || p.Tiles > 15:
		return fmt.Errorf("tiles: expected 1 to 15, got %d", p.Tiles)
	case !(p.Mbps > 0 && p.Mbps <= 1000):
		return fmt.Errorf("mbps: expected more than 0 and up to 1000, got %g", p.Mbps)
	case !(p.FPS > 0 && p.FPS <= 120):
		return fmt.Errorf("fps: expected more than 0 and up to 120, got %g", p.FPS)
	}
	return nil
}

var quantities = []experiment.Quantity{
	{Name: "uplink", Unit: "Mbit/s", Label: "uplink of one participant"},
	{Name: "downlink", Unit: "Mbit/s", Label: "downlink of one participant"},
	{Name: "server_in", Unit: "Mbit/s", Label: "into the server"},
	{Name: "server_out", Unit: "Mbit/s", Label: "out of the server"},
	{Name: "packets", Unit: "packets/s", Label: "packets forwarded"},
	{Name: "whole", Unit: "%", Label: "complete frames"},
	{Name: "fps", Unit: "frames/s", Label: "frame rate of a tile, mean"},
	{Name: "latency", Unit: "ms", Label: "latency, capture to complete frame"},
	{Name: "latency_p95", Unit: "ms", Label: "latency, 95th percentile"},
	{Name: "cpu_server", Unit: "% of a core", Label: "CPU of the server"},
	{Name: "cpu_packet", Unit: "µs", Label: "CPU of the server per forwarded packet"},
	{Name: "cpu_clients", Unit: "% of a core", Label: "CPU of all participants"},
	{Name: "joining", Unit: "s", Label: "until all have joined and are connected"},
}

// load returns the traffic of each publisher.
func (p *room) load() testbed.Load {
	return testbed.Load{Name: "body", Tiles: p.Tiles, Qualities: 1,
		FrameBytes: int(p.Mbps * 1e6 / 8 / p.FPS / float64(p.Tiles)), Variation: 0.2, Rate: p.FPS}
}

// run measures one iteration.
func run(ctx context.Context, p room, s experiment.Settings) (*experiment.Outcome, error) {
	o := experiment.NewOutcome()
	path, err := s.Program("volsfu")
	if err != nil {
		return nil, err
	}
	server, err := lab.StartServer(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Stop() }()
	conference := testbed.Attend(server.URL())
	defer conference.Close()
	begun := time.Now()
	peers, err := p.fill(ctx, conference, s.Seed)
	if err != nil {
		return nil, err
	}
	o.Set("joining", time.Since(begun).Seconds())
	// Estimates rise to the room's needs: some seconds at the rates of large rooms.
	if err := lab.Pause(ctx, climbing); err != nil {
		return nil, err
	}
	m, err := p.measure(ctx, server, peers, s.Duration)
	if err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, time.Second); err != nil {
		return nil, err
	}
	p.evaluate(o, peers, m)
	o.Note("All participants are in one process beside the server, on the same processors, over the loopback " +
		"interface; frames are prepared, so that nothing is encoded or decoded.")
	return o, nil
}

const (
	climbing = 4 * time.Second
	// joining is the time limit for all joins: on two cores, forty participants take some twenty seconds.
	joining = 2 * time.Minute
)

// fill joins all participants, one after the other, and waits until they are connected.
func (p *room) fill(ctx context.Context, conference *testbed.Conference, seed uint64) ([]*testbed.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, joining)
	defer cancel()
	var peers []*testbed.Peer
	for i := range p.Participants {
		peer, err := conference.Join(ctx, testbed.Part{
			Room: "room", Identity: fmt.Sprintf("participant %d", i), Loads: []testbed.Load{p.load()}, Receive: true,
			Record:    true,
			MinUplink: testbed.Everything, QueueBudget: time.Second, Seed: seed + uint64(i),
		})
		if err != nil {
			return nil, err
		}
		peers = append(peers, peer)
	}
	for _, peer := range peers {
		select {
		case <-peer.Connected:
		case <-ctx.Done():
			return nil, fmt.Errorf("connect %d participants: %w", p.Participants, ctx.Err())
		}
	}
	return peers, nil
}

// measured holds the counters of programs and machine at both ends of the window.
type measured struct {
	from, to        time.Time
	before, after   exposition.Series
	server, clients time.Duration
	busy            float64
	// frames are the numbers of the frames published in the window, by participant.
	frames map[string]numbers
}

// numbers is the range of numbers from first to before end.
type numbers struct{ first, end int64 }

// published returns the number of frames of each tile published so far, by participant. Frames are numbered from 0.
func (p *room) published(peers []*testbed.Peer) map[string]int64 {
	counts := make(map[string]int64, len(peers))
	for _, peer := range peers {
		counts[peer.Session.Identity()] = peer.Published(p.load().Name)
	}
	return counts
}

// measure measures for a time.
func (p *room) measure(ctx context.Context, server *lab.ServerProgram, peers []*testbed.Peer,
	duration time.Duration) (m measured, err error) {
	url := "http://" + server.Admin + "/metrics"
	if m.before, err = exposition.Scrape(ctx, url); err != nil {
		return m, err
	}
	machine, err := lab.ReadMachineTime()
	if err != nil {
		return m, err
	}
	serverCPU, ownCPU := lab.ProcessTime(server.PID()), lab.ProcessTime(os.Getpid())
	first := p.published(peers)
	m.from = time.Now()
	if err = lab.Pause(ctx, duration); err != nil {
		return m, err
	}
	m.to = time.Now()
	m.frames = make(map[string]numbers, len(peers))
	for identity, end := range p.published(peers) {
		m.frames[identity] = numbers{first[identity], end}
	}
	m.server, m.clients = lab.ProcessTime(server.PID())-serverCPU, lab.ProcessTime(os.Getpid())-ownCPU
	after, err := lab.ReadMachineTime()
	if err != nil {
		return m, err
	}
	m.busy = after.BusySince(machine)
	m.after, err = exposition.Scrape(ctx, url)
	return m, err
}

// difference returns the growth of a counter in the window, over all series with the given labels.
func (m *measured) difference(metric string, labels ...string) float64 {
	return m.after.Sum(metric, labels...) - m.before.Sum(metric, labels...)
}

// evaluate sets the figures.
func (p *room) evaluate(o *experiment.Outcome, peers []*testbed.Peer, m measured) {
	seconds := m.to.Sub(m.from).Seconds()
	var latencies []timed
	for _, peer := range peers {
		for _, a := range peer.Arrivals() {
			if !a.Capture.Before(m.from) && a.Capture.Before(m.to) {
				latencies = append(latencies, timed{a.Capture, lab.Milliseconds(a.Latency())})
			}
		}
	}
	slices.SortFunc(latencies, func(a, b timed) int { return a.at.Compare(b.at) })
	values := make([]float64, len(latencies))
	for i, l := range latencies {
		values[i] = l.value
	}
	o.Sample("latency", values)
	if len(values) > 0 {
		o.Set("latency_p95", experiment.Quantile(values, 0.95))
	}
	streams := float64(p.Participants * (p.Participants - 1) * p.Tiles)
	o.Set("fps", float64(len(values))/streams/seconds)
	var arrivals []testbed.Arrival
	for _, peer := range peers {
		arrivals = append(arrivals, peer.Arrivals()...)
	}
	if whole, known := m.whole(arrivals, p.Participants, p.Tiles); known {
		o.Set("whole", whole)
	}
	in, out := m.difference("volsfu_bytes_total", `direction="in"`)*8/1e6/seconds,
		m.difference("volsfu_bytes_total", `direction="out"`)*8/1e6/seconds
	o.Set("server_in", in)
	o.Set("server_out", out)
	o.Set("uplink", in/float64(p.Participants))
	o.Set("downlink", out/float64(p.Participants))
	packets := m.difference("volsfu_packets_total", `direction="out"`)
	o.Set("packets", packets/seconds)
	o.Set("cpu_server", 100*m.server.Seconds()/seconds)
	if packets > 0 {
		o.Set("cpu_packet", float64(m.server.Microseconds())/packets)
	}
	o.Set("cpu_clients", 100*m.clients.Seconds()/seconds)
	o.Judge(experiment.Pace{Wanted: int(streams * p.FPS * seconds), Done: len(values), Busy: m.busy})
}

// whole returns the share of the frames published in the window that arrived at the other participants, in per cent;
// false if no frames were published.
func (m *measured) whole(arrivals []testbed.Arrival, participants, tiles int) (float64, bool) {
	came, due := 0, int64(0)
	for _, a := range arrivals {
		if of := m.frames[a.Track.Participant]; a.Number >= of.first && a.Number < of.end {
			came++
		}
	}
	for _, of := range m.frames {
		due += (of.end - of.first) * int64(participants-1) * int64(tiles)
	}
	return 100 * float64(came) / float64(max(due, 1)), due > 0
}

// timed is a value with its time.
type timed struct {
	at    time.Time
	value float64
}
