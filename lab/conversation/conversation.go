package conversation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/exposition"
)

const (
	room, publication = "layers", "scene"
	// connecting bounds the time for all to join and connect, and for the first frame to arrive.
	connecting = 30 * time.Second
	// gathering is the wait for the times of the last frames: sender and server report times every half second, and the
	// client delivers them after two seconds.
	gathering = 3 * time.Second
	// warming is the time before the measurement in which estimates rise.
	warming = time.Second
)

// ErrNothing says that no frame arrived.
var ErrNothing = errors.New("no frame has arrived")

// Plan describes the participants, and the spreading of frames.
type Plan struct {
	// Receivers is the number of receivers. The first receiver makes meshes of the frames.
	Receivers int
	// Spread is the part of the frame interval over which the sender sends a frame, Down the part over which the server
	// sends it.
	Spread, Down float64
	// Seed selects the images.
	Seed uint64
}

// DefaultPlan returns the paper's two receivers and rates. At 30 frames per second, a frame of 3.9 MB leaves the sender
// at 2 Gbit/s in 15.5 ms, 0.47 of the interval, and the server at 1.5 Gbit/s in 20.7 ms, 0.62 of it. At lower frame
// rates, down to 10 per second, frames leave proportionally more slowly.
func DefaultPlan() Plan { return Plan{Receivers: 2, Spread: 0.47, Down: 0.62, Seed: 1} }

// Conversation is the result of a run.
type Conversation struct {
	// Records are the records of the frames of which the first receiver made a mesh, in their order.
	Records []frametimes.Record
	// Distributions are the distributions of the frames that all receivers have, in the order of frame numbers.
	Distributions []Distribution
	// Due is the number of captures that were due, Sent the number of frames written, during Took.
	Due, Sent int
	Took      time.Duration
	Residence []exposition.Bucket
	// Others are the numbers of written frames that arrived at each receiver except the first.
	Others []int
	// Busy is the share of the processors' time in use while frames were sent.
	Busy float64
}

// Distribution is the time from the first packet of a frame that the server read to the last packet of the frame that
// the server sent to any receiver.
type Distribution struct {
	Frame int64
	Time  time.Duration
}

// Least returns the number of frames at the receiver with the fewest frames.
func (c *Conversation) Least() int { return slices.Min(append([]int{len(c.Records)}, c.Others...)) }

// All returns the number of frames at all receivers together.
func (c *Conversation) All() (sum int) {
	sum = len(c.Records)
	for _, n := range c.Others {
		sum += n
	}
	return sum
}

// Wanted returns the number of frames at all receivers together if every due frame had been sent.
func (c *Conversation) Wanted() int { return c.Due * (1 + len(c.Others)) }

// Run runs sender, server and receivers for a time, at a frame rate. The error wraps ErrNothing if no frame arrived.
func (p Plan) Run(ctx context.Context, volsfu string, rate float64, length time.Duration) (c *Conversation, err error) {
	server, err := lab.StartServer(ctx, volsfu, p.serverFlags(rate)...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	within, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	sender, err := client.Join(within, p.senderConfig(server.URL(), rate))
	if err != nil {
		return nil, fmt.Errorf("join as sender: %w", err)
	}
	all := &parties{rate: rate, sender: sender, camera: newCamera(p.Seed)}
	defer all.leave()
	for i := range p.Receivers {
		session, err := client.Join(within, client.Config{
			URL: server.URL(), Room: room, Identity: fmt.Sprintf("receiver %d", i), Receive: true, FrameTimes: true,
			Deadline: time.Second,
		})
		if err != nil {
			return nil, fmt.Errorf("join as receiver %d: %w", i, err)
		}
		all.receive(session)
	}
	return all.measure(ctx, server, length)
}

// From the first frame to the last, packets of both hops leave at the rates of the plan. GCC sends a frame at up to 2.5
// times the estimate, and the estimate is at least half of the plan's rate, so that only the plan spaces packets. L4S
// would send a frame at the estimate, and on a path without marks in bursts of 1.7 times the estimate, whatever the
// plan is.

// serverFlags returns the flags of the server at a frame rate.
func (p Plan) serverFlags(fps float64) []string {
	least, most := limits(fps, p.Down)
	return []string{"--forward-pacing", fmt.Sprintf("spread:%g", p.Down),
		"--forward-congestion-controller", string(client.ControllerGCC),
		"--forward-congestion-max-bps", fmt.Sprint(int64(most)),
		"--forward-congestion-start-bps", fmt.Sprint(int64(most)),
		"--forward-congestion-min-bps", fmt.Sprint(int64(least))}
}

// senderConfig returns the configuration of the sender at a frame rate.
func (p Plan) senderConfig(url string, fps float64) client.Config {
	least, most := limits(fps, p.Spread)
	return client.Config{
		URL: url, Room: room, Identity: "sender", Publications: []volumetric.Publication{description(fps)},
		Spread: p.Spread, FrameTimes: true, Controller: client.ControllerGCC,
		MinUplink: least, StartUplink: most, MaxUplink: most,
	}
}

// limits returns the limits of the estimate for frames that are spread over a share of the frame interval. The largest
// estimate is the rate within a frame: probes, which are never above it, are no faster than frames. The smallest is
// half of it. Both are at least the mean rate with packets' headers and a fifth for repairs.
func limits(fps, share float64) (least, most volumetric.Bitrate) {
	needed, paced := volumetric.Bitrate(8*FrameBytes*fps*1.3), paced(fps, share)
	return max(needed, paced/2), max(needed, paced)
}

// slowest is the frame rate below which frames are spread as at this rate (pacing.Schedule).
const slowest = 10

// paced returns the content's bit rate within a frame that is spread over a share of the frame interval.
func paced(fps, share float64) volumetric.Bitrate {
	return volumetric.Bitrate(8 * FrameBytes * max(fps, slowest) / share)
}

// Paced returns the bit rates of the content within a frame, on the way to the server and from it.
func (p Plan) Paced(fps float64) (up, down volumetric.Bitrate) {
	return paced(fps, p.Spread), paced(fps, p.Down)
}

// description returns the sender's publication.
func description(rate float64) volumetric.Publication {
	return volumetric.Publication{
		Name: publication, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: rate,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 1), Qualities: []volumetric.QualityLevel{{Name: "raw",
			Bitrate: volumetric.Bitrate(8 * FrameBytes * rate)}},
	}
}

// measure sends until the first frame has arrived, warms up, and then sends for the measured time.
func (p *parties) measure(ctx context.Context, server *lab.ServerProgram, length time.Duration) (*Conversation, error) {
	p.running.Go(func() { discard(p.sender.Events()) })
	p.running.Go(func() {
		// The receivers' records contain the sender's times, too.
		discard(p.sender.FrameTimes())
	})
	s := p.newSending()
	begin := time.Now()
	if err := s.send(ctx, func() bool { return p.drawn() == 0 && time.Since(begin) < connecting }); err != nil {
		return nil, err
	}
	if p.drawn() == 0 {
		return nil, ErrNothing
	}
	warm := time.Now()
	if err := s.send(ctx, func() bool { return time.Since(warm) < warming }); err != nil {
		return nil, err
	}
	before, err := exposition.Scrape(ctx, metrics(server))
	if err != nil {
		return nil, err
	}
	machine, err := lab.ReadMachineTime()
	if err != nil {
		return nil, err
	}
	c := &Conversation{}
	from, first := time.Now(), s.number
	s.due, s.written = 0, 0
	if err := s.send(ctx, func() bool { return time.Since(from) < length }); err != nil {
		return nil, err
	}
	c.Due, c.Sent, c.Took = s.due, s.written, time.Since(from)
	// Joining and the wait for the last frames' times are not included. They need little processor time.
	if now, err := lab.ReadMachineTime(); err == nil {
		c.Busy = now.BusySince(machine)
	}
	after, err := exposition.Scrape(ctx, metrics(server))
	if err != nil {
		return nil, err
	}
	window := make(exposition.Series)
	window.Add(before, after)
	c.Residence = window.Histogram("volsfu_residence_seconds")
	if err := lab.Pause(ctx, gathering); err != nil {
		return nil, err
	}
	c.Records, c.Others, c.Distributions = p.recordsOf(from, from.Add(c.Took)), p.counted(first, s.number),
		p.distributed(first, s.number)
	return c, nil
}

func metrics(server *lab.ServerProgram) string { return "http://" + server.Admin + "/metrics" }
