package layers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The paper's frames (section III-B): a colour and a depth image of 640 × 576 pixels as they are, and sound, in bytes.
var parts = []int{1_400_000, 2_100_000, 200_000}

// frameBytes is what the parts of one frame have together.
const frameBytes = 3_700_000

const (
	// paperRate is the paper's frame rate per second.
	paperRate = 30
	// receivers is how many receive.
	receivers = 2
	// carried is what share of the frames has to arrive whole for a rate to count as carried.
	carried = 0.99
	// unlimited is what no estimate is to go below or above here: 10 Gbit/s.
	unlimited = 10_000_000_000
	// deadline is how long a frame may be repaired: one of 3,200 packets takes 16 ms at 2 Gbit/s.
	deadline = 250 * time.Millisecond
	// gathering is how long the last records take.
	gathering = 3 * time.Second
)

// Residence checks how long the paper's frames stay in the server, one sender and two receivers, at the highest rate that the machine carries.
type Residence struct {
	Progress lab.Progress
	// Rates are tried from the highest on, in frames per second, until one is carried, each for Length.
	Rates  []float64
	Length time.Duration
}

// Name implements lab.Check.
func (r *Residence) Name() string {
	return "residence in the server of raw RGBD frames of 3.7 MB, one sender, two receivers"
}

// Run implements lab.Check.
func (r *Residence) Run(ctx context.Context) ([]lab.Line, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	var lines []lab.Line
	for _, rate := range r.Rates {
		r.Progress.Say("%g frames per second, %.0f Mbit/s to the server", rate, megabits(rate))
		s, err := r.stay(ctx, programs.volsfu, rate)
		if err != nil {
			return lines, fmt.Errorf("%g frames per second: %w", rate, err)
		}
		lines = append(lines, lab.Information(fmt.Sprintf("%g frames per second: frames that arrived whole", rate), 100*s.share(), "%"))
		if s.share() < carried {
			continue
		}
		return append(lines, s.lines(rate)...), nil
	}
	return append(lines, lab.Skip("highest rate that is carried", fmt.Sprintf("this machine carries not even %g frames per second", r.Rates[len(r.Rates)-1]))), nil
}

func megabits(rate float64) float64 { return 8 * frameBytes * rate / 1e6 }

// stayed is what came of a run.
type stayed struct {
	// sent counts the tile frames that left, and arrived those that each receiver got, all together.
	sent, arrived             int
	hold, distribution, frame lab.Distribution
	residence                 []lab.Bucket
}

// share is that of the frames which arrived.
func (s *stayed) share() float64 {
	if s.sent == 0 {
		return 0
	}
	return float64(s.arrived) / float64(receivers*s.sent)
}

// lines are the figures. The paper's server distributed a frame in some milliseconds, irregularly (figure 9).
func (s *stayed) lines(rate float64) []lab.Line {
	ms := lab.Milliseconds
	return []lab.Line{
		lab.Information("highest rate that is carried, of the paper's 30", rate, "frames/s"),
		lab.Information("to the server at that rate, and twice that from it", megabits(rate), "Mbit/s"),
		lab.Information("residence of a packet in the server, less what the pacer holds it, p50", ms(lab.Quantile(s.residence, 0.5)), "ms"),
		lab.Information("residence of a packet in the server, less what the pacer holds it, p99", ms(lab.Quantile(s.residence, 0.99)), "ms"),
		lab.Information("first packet of a frame in to first packet out, p50", ms(s.hold.Percentile(0.5)), "ms"),
		lab.Information("first packet of a frame in to first packet out, p99", ms(s.hold.Percentile(0.99)), "ms"),
		lab.Information("first packet of a frame in to last packet out, p50", ms(s.distribution.Percentile(0.5)), "ms"),
		lab.Information("first packet of a frame in to last packet out, p99", ms(s.distribution.Percentile(0.99)), "ms"),
		lab.Information("Frame(L), p50", ms(s.frame.Percentile(0.5)), "ms"),
		lab.Information("Frame(L), p99", ms(s.frame.Percentile(0.99)), "ms"),
	}
}

// stay sends at a rate, and gathers how long frames stayed.
func (r *Residence) stay(ctx context.Context, volsfu string, rate float64) (s *stayed, err error) {
	most := strconv.Itoa(unlimited)
	server, err := lab.StartServer(ctx, volsfu, "--forward-congestion-max-bps", most, "--forward-congestion-start-bps", most, "--forward-congestion-min-bps", most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	publication := description(rate)
	source, err := client.Join(ctx, client.Config{
		URL: server.URL(), Room: room, Identity: sender, Publications: []volumetric.Publication{publication},
		MinUplink: unlimited, StartUplink: unlimited, MaxUplink: unlimited,
	})
	if err != nil {
		return nil, err
	}
	a := &audience{}
	defer a.leave(source)
	a.drain(source)
	for i := range receivers {
		session, err := client.Join(ctx, client.Config{URL: server.URL(), Room: room, Identity: fmt.Sprintf("%s-%d", receiver, i), Receive: true, Deadline: deadline, FrameTimes: true})
		if err != nil {
			return nil, err
		}
		a.receive(session)
	}
	load := newLoad(source.Publisher(publication.Name), rate)
	if err := load.run(ctx, settling, func() bool { return a.present() < receivers }); err != nil {
		return nil, err
	}
	before, err := lab.Scrape(ctx, "http://"+server.Admin+"/metrics")
	if err != nil {
		return nil, err
	}
	from := load.number
	if err := load.run(ctx, r.Length, nil); err != nil {
		return nil, err
	}
	until := load.number
	after, err := lab.Scrape(ctx, "http://"+server.Admin+"/metrics")
	if err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, gathering); err != nil {
		return nil, err
	}
	s = a.sum(from, until)
	window := make(lab.Series)
	window.Add(before, after)
	s.residence = window.Histogram("volsfu_residence_seconds")
	return s, nil
}

// description is the publication of the load: the parts of a frame are its tiles.
func description(rate float64) volumetric.Publication {
	p := volumetric.Publication{
		Name: "rgbd", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: rate,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}, Qualities: make([]volumetric.QualityLevel, 1),
	}
	for _, label := range []string{"colour", "depth", "sound"} {
		p.Tiles = append(p.Tiles, volumetric.Tile{Label: label})
	}
	return p
}

// load sends frames.
type load struct {
	publisher *client.Publisher
	interval  time.Duration
	parts     [][]byte
	number    uint32
}

func newLoad(p *client.Publisher, rate float64) *load {
	l := &load{publisher: p, interval: time.Duration(float64(time.Second) / rate)}
	random := rand.NewChaCha8([32]byte{})
	for _, size := range parts {
		part := make([]byte, size)
		_, _ = random.Read(part)
		l.parts = append(l.parts, part)
	}
	return l
}

// run sends for so long, and beyond that as long as more is wanted.
func (l *load) run(ctx context.Context, length time.Duration, more func() bool) error {
	ticker := time.NewTicker(l.interval)
	defer ticker.Stop()
	for end := time.Now().Add(length); time.Now().Before(end) || more != nil && more(); {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now := time.Now()
		for tile, part := range l.parts {
			err := l.publisher.WriteFrame(tile, 0, client.OutgoingFrame{Number: l.number, Capture: now, Data: part})
			if err != nil && !errors.Is(err, client.ErrNotConnected) {
				return err
			}
		}
		l.number++
	}
	return nil
}
