package paper000

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// individual is a run of vollab direct.
type individual struct {
	network *network
	run     *direct.Run
	length  time.Duration
	stable  float64
	source  direct.Source
}

// produce returns the producer's flags. The flags of codec and source are also flags of vollab compare.
func (s *stage) produce(source *direct.Source, settings *experiment.Settings) []string {
	return append(source.Flags(s.FPS, settings), "--codec", "draco", "--bits", strconv.Itoa(s.Bits), "--speed",
		strconv.Itoa(s.Speed))
}

// startIndividual starts vollab direct. consume has additional flags of the consumer.
func (n *network) startIndividual(ctx context.Context, consume ...string) (*individual, error) {
	i := &individual{network: n, length: n.settings.Duration, source: direct.SourceOf(direct.Figure, n.stage.Points,
		n.settings.Data)}
	_, stable := n.stage.phases(i.length)
	i.stable = stable.Seconds()
	var err error
	i.run, err = direct.Start(ctx, direct.Config{
		Network: n.Network, Producer: hostSender, Consumer: hostReceiver, Length: i.length,
		Produce: append(n.stage.produce(&i.source, n.settings), n.stage.adaptive()...), Consume: consume,
	}, n.settings)
	return i, err
}

// adaptive returns the producer's flags for the rate. The pacing of the paper's sender is that of its equation 1.
func (s *stage) adaptive() []string {
	flags := []string{"--transport", "webrtc", "--mode", "adaptive", "--regions", "", "--controller", s.controller()}
	if s.Sender == senderPaper {
		flags = append(flags, "--pacing", "spread:20ms")
	}
	if s.Bitrate > 0 {
		flags = append(flags, "--bitrate", strconv.FormatFloat(s.Bitrate, 'g', -1, 64)+"Mbit")
	}
	return flags
}

// ended implements session.
func (i *individual) ended() <-chan struct{} { return i.run.Ended() }

// wait implements session.
func (i *individual) wait(ctx context.Context) (*flights, error) {
	frames, summary, err := i.run.Wait(ctx, i.length)
	if err != nil {
		return nil, err
	}
	// The network's time begins when both programs have been started. Frames arrive once the programs are connected.
	began := i.network.Began
	f := &flights{list: flightsOf(frames, began), frames: frames, source: i.source,
		since: -direct.Begin(frames).Since(began), notes: []string{i.source.Says}}
	f.estimates = estimates(f.list)
	f.pace = summary.Pace(frames)
	f.bound = boundByTime(frames, began, i.stable)
	return f, nil
}

// stop implements session.
func (i *individual) stop() error { return i.run.Stop() }

// flightsOf converts a log to flights of a run that began at a time.
func flightsOf(frames []direct.Frame, began time.Time) (list []flight) {
	for i := range frames {
		f := &frames[i]
		if f.Capture == 0 {
			continue
		}
		list = append(list, flight{
			At: f.Capture.Since(began), Bytes: f.Bytes, Sent: f.Sent(), Whole: f.Outcome == direct.Intact,
			Shown:     f.Decoded != 0 && f.Outcome == direct.Intact,
			Transport: span(f.Encoded, f.LastReceived), Latency: span(f.Capture, f.Decoded),
			Estimate: float64(f.Estimate),
		})
	}
	return list
}

// span returns the milliseconds between two instants, NaN if an instant is unknown.
func span(from, until direct.Instant) float64 {
	if from == 0 || until == 0 {
		return math.NaN()
	}
	return float64(until-from) / 1e3
}

// boundByTime returns the share of the frames captured from a time on whose number of points was limited by the
// encoding time, not by the rate.
func boundByTime(frames []direct.Frame, began time.Time, from float64) float64 {
	bound, all := 0, 0
	for i := range frames {
		if f := &frames[i]; f.Capture != 0 && f.Capture.Since(began) >= from {
			all++
			if f.Bound == "time" {
				bound++
			}
		}
	}
	return share(bound, all) / 100
}
