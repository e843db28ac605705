package paper003

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

// redundancies are the arms of conference, with the values of volpeer's --redundancy.
var redundancies = map[string]string{"off": "off", "selective": "auto", "all": "all"}

// The ways in which a WiFi fails.
const (
	// failureLoss loses all packets, which neither end can see.
	failureLoss = "loss"
	// failureUnplugged sets the client's interface down.
	failureUnplugged = "unplugged"
)

// conference is a session of volsfu and two volpeers, a publisher and a watcher. Each has a WiFi and a 5G link to the
// server, which fail in turn.
type conference struct {
	// Arm is the copies of all three programs: see redundancies.
	Arm     string `yaml:"arm"`
	Failure string `yaml:"failure"`
	// Points is the number of points of the figure.
	Points int `yaml:"points"`
}

func defaultConference() conference {
	return conference{Arm: "selective", Failure: failureLoss, Points: 6000}
}

// Validate implements the optional interface of experiment.Define.
func (c conference) Validate() error {
	switch {
	case redundancies[c.Arm] == "":
		return fmt.Errorf("arm: expected one of %s, got %q", strings.Join(slices.Sorted(maps.Keys(redundancies)), ", "),
			c.Arm)
	case c.Failure != failureLoss && c.Failure != failureUnplugged:
		return fmt.Errorf("failure: expected %s or %s, got %q", failureLoss, failureUnplugged, c.Failure)
	case c.Points < 1000 || c.Points > 100_000:
		return fmt.Errorf("points: expected 1000 to 100000, got %d", c.Points)
	}
	return nil
}

// conferenceQuantities describe the reception of the publisher's media by the watcher. "lowest" figures are about
// the tiles that the watcher takes at their lowest quality. Of the other tiles, the watcher takes the quality that
// fits.
var conferenceQuantities = []experiment.Quantity{
	{Name: "audio_lost", Unit: "packets", Label: "audio packets lost"},
	{Name: "lowest_lost", Unit: "frames", Label: "frames of the lowest quality lost"},
	{Name: "gap", Unit: "ms", Label: "longest gap of audio and of the lowest quality"},
	{Name: "audio_gap", Unit: "ms", Label: "longest gap of audio"},
	{Name: "lowest_gap", Unit: "ms", Label: "longest gap of the lowest quality"},
	{Name: "high_lost", Unit: "frames", Label: "frames of the other tiles lost at every quality"},
	{Name: "latency_p95", Unit: "ms", Label: "lowest quality, from capture to reception, 95th percentile"},
	{Name: "cost", Unit: "", Label: "bytes on both paths, of the bytes on the one that carries more"},
	{Name: "cost_up", Unit: "", Label: "the same of the publisher's paths alone"},
	{Name: "cost_down", Unit: "", Label: "the same of the watcher's paths alone"},
	{Name: "audio", Unit: "packets", Label: "audio packets received"},
	{Name: "lowest", Unit: "frames", Label: "frames of the lowest quality sent"},
	{Name: "rate", Unit: "Mbit/s", Label: "received by the watcher's host"},
}

// leaving is the time after the measurement in which the last frames arrive.
const leaving = time.Second

// runConference measures one iteration.
func runConference(ctx context.Context, c conference, s experiment.Settings) (outcome *experiment.Outcome, err error) {
	metered, skipped, err := direct.OpenMetered(ctx, wirelessLayout(c.Failure, s.Seed))
	if skipped != nil || err != nil {
		return skipped, err
	}
	network := metered.Network
	defer func() { err = errors.Join(err, network.Close()) }()
	p, err := convene(ctx, &c, network, &s)
	if err != nil {
		return nil, err
	}
	defer p.end()
	if err := metered.Begin(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unplugged := make(chan error, 1)
	go func() { unplugged <- unplug(ctx, network, &c, metered.Began) }()
	traffic, err := observe(ctx, metered, s.Duration)
	cancel()
	if err = errors.Join(err, <-unplugged); err != nil {
		return nil, err
	}
	metered.End()
	from, to := metered.Began, metered.Began.Add(s.Duration)
	if err := lab.Pause(context.WithoutCancel(ctx), leaving); err != nil {
		return nil, err
	}
	if err := p.leave(); err != nil {
		return nil, err
	}
	outcome = experiment.NewOutcome()
	traffic.measure(outcome, s.Duration)
	if err := p.measure(outcome, from, to); err != nil {
		return nil, err
	}
	metered.Judge(outcome, experiment.Pace{})
	return outcome, nil
}

// traffic has the bytes of media's directions, by client: from the publisher and to the watcher. all are the bytes on
// both paths, most those on the path that carries more, counted in each interval.
type traffic [len(clients)]struct{ all, most uint64 }

// observing is the interval in which the path that carries more is determined. The primary path changes within seconds.
const observing = 100 * time.Millisecond

// observe counts the bytes until the measurement ends.
func observe(ctx context.Context, m *direct.Metered, length time.Duration) (t traffic, err error) {
	var before [len(clients)][len(accesses)]uint64
	for at := time.Duration(0); at < length; at += observing {
		if err := m.Until(ctx, at+observing, nil); err != nil {
			return t, err
		}
		counts := m.Network.Statistics()
		for i, client := range clients {
			most := uint64(0)
			for j := range accesses {
				wire := counts.Wire(client.link(j), client.media)
				bytes := wire.SentBytes - before[i][j]
				before[i][j] = wire.SentBytes
				most, t[i].all = max(most, bytes), t[i].all+bytes
			}
			t[i].most += most
		}
	}
	return t, nil
}

// measure computes the figures of the traffic.
func (t *traffic) measure(o *experiment.Outcome, length time.Duration) {
	up, down := t[0], t[len(t)-1]
	o.Set("cost", float64(up.all+down.all)/float64(max(up.most+down.most, 1)))
	o.Set("cost_up", float64(up.all)/float64(max(up.most, 1)))
	o.Set("cost_down", float64(down.all)/float64(max(down.most, 1)))
	o.Set("rate", float64(down.all)*8/length.Seconds()/1e6)
}
