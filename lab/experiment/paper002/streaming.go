package paper002

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/topology"
)

//go:embed *.yaml
var files embed.FS

// Collection returns the experiments of this package.
func Collection() experiment.Collection {
	return experiment.Collection{Files: files, Scenarios: map[string]experiment.Scenario{
		"paper002/streaming": experiment.OnHosts(experiment.Define(defaultStreaming(), quantities, run), hostProducer,
			hostConsumer),
		"paper002/capacity": experiment.Define(defaultCapacity(), capacityQuantities, runCapacity),
	}}
}

// streaming is a producer and a consumer of the paper, with all parameters that the experiments vary.
type streaming struct {
	Scene string `yaml:"scene"`
	// Points is the size of a cloud of the scene figure: 848×480 are 407,040.
	Points int `yaml:"points"`
	// FPS is the number of frames per second to capture; 0 selects the highest rate that this machine can sustain.
	FPS float64 `yaml:"fps"`
	// Level is the paper's compression level, 1 (fastest) to 10 (smallest); Draco's speed is 10 minus the level.
	Level  int  `yaml:"level"`
	Bits   int  `yaml:"bits"`
	Colors bool `yaml:"colors"`
	// Share is the share of the points that is kept, in %.
	Share   int `yaml:"share"`
	Threads int `yaml:"threads"`
	// Gap is the time between two packets, 0 for none.
	Gap time.Duration `yaml:"gap"`
	// Link is the path from the producer to the consumer, Back that of the other direction.
	Link string `yaml:"link"`
	Back string `yaml:"back"`
	// Clouds is the number of clouds to measure if they arrive within the time; 0 measures for all of the time.
	Clouds int `yaml:"clouds"`
}

// defaultStreaming is the paper's setup (sections 3.1 to 3.4).
func defaultStreaming() streaming {
	return streaming{
		Scene: direct.Figure, Points: 848 * 480, Level: 4, Bits: 11, Colors: true, Share: 100, Threads: 1,
		Gap:  60 * time.Microsecond,
		Link: "rate=160.8Mbit,delay=12.2ms,jitter=1ms,queue=256kB", Back: "delay=12.2ms,jitter=1ms",
	}
}

// Validate implements the optional interface of experiment.Define.
func (s streaming) Validate() error {
	switch {
	case s.Scene != direct.Figure && s.Scene != direct.Desk:
		return fmt.Errorf("scene: expected %s or %s, got %q", direct.Figure, direct.Desk, s.Scene)
	case s.Level < 1 || s.Level > 10:
		return fmt.Errorf("level: expected 1 to 10, got %d", s.Level)
	case s.Bits < 1 || s.Bits > 30:
		return fmt.Errorf("bits: expected 1 to 30, got %d", s.Bits)
	case s.Share < 1 || s.Share > 100:
		return fmt.Errorf("share: expected 1 to 100 %%, got %d", s.Share)
	case s.Threads < 1 || s.Threads > 64:
		return fmt.Errorf("threads: expected 1 to 64, got %d", s.Threads)
	case s.Points < 1 || !(s.FPS >= 0) || s.Gap < 0 || s.Clouds < 0:
		return errors.New("points, fps, gap, clouds: expected a number of points above 0, and values of 0 or more " +
			"for the others")
	}
	_, err := layoutOf(s.Link, s.Back, 0)
	return err
}

// layoutOf returns the network of the producer and the consumer, with a link in the syntax of netem's profiles for each
// direction.
func layoutOf(link, back string, seed uint64) (*topology.Topology, error) {
	forth, err := netem.ParseProfile(link)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	other, err := netem.ParseProfile(back)
	if err != nil {
		return nil, fmt.Errorf("back: %w", err)
	}
	t := topology.Pair(hostProducer, hostConsumer, topology.Link{Forth: topology.Direction{Config: forth},
		Back: topology.Direction{Config: other}})
	t.Seed = seed
	return t, nil
}

// warmUp is the beginning of a run, which does not count: codecs and memory are cold, and the buffer of the link is
// empty.
const warmUp = time.Second

// codec returns the codec's name for vollab.
func (s *streaming) codec() string {
	if s.Threads == 1 {
		return "draco"
	}
	return fmt.Sprintf("parts:draco:%d", s.Threads)
}

// produce returns the producer's flags. A reduced resolution omits points evenly before encoding, as in the paper.
func (s *streaming) produce(source *direct.Source, settings *experiment.Settings) []string {
	kept := *source
	kept.Points = source.Points * s.Share / 100
	flags := append(kept.Flags(s.FPS, settings), "--transport", "udp", "--mode", "paper002", "--codec", s.codec(),
		"--bits", strconv.Itoa(s.Bits),
		"--speed", strconv.Itoa(10-s.Level), "--gap", s.Gap.String())
	if !s.Colors {
		flags = append(flags, "--no-colors")
	}
	if s.Clouds > 0 {
		// During the warm-up no more clouds arrive than fall due.
		flags = append(flags, "--count", strconv.Itoa(s.Clouds+int(math.Ceil(s.FPS*warmUp.Seconds()))))
	}
	return flags
}

// run measures one iteration.
func run(ctx context.Context, s streaming, settings experiment.Settings) (*experiment.Outcome, error) {
	network, skipped, err := s.open(ctx, &settings)
	if skipped != nil || err != nil {
		return skipped, err
	}
	defer func() { _ = network.Close() }()
	source := direct.SourceOf(s.Scene, s.Points, settings.Data)
	if settings.Source == direct.RealSense {
		// Cameras have their own rate. As in the paper, the producer takes the newest frame when it is done.
		source, s.FPS = direct.Cameras(s.Points), camera
	}
	outcome := experiment.NewOutcome()
	outcome.Note("%s", source.Says)
	if settings.Hosts != nil {
		outcome.Note("The link from producer to consumer is %s. The link of the cell, %s, is not emulated.",
			settings.Hosts.Link(), s.Link)
	} else {
		outcome.Note("The link from producer to consumer is %s; the other direction is %s.", s.Link, s.Back)
	}
	if s.FPS == 0 {
		if s.FPS, err = s.heldRate(ctx, network, &source, &settings); err != nil {
			return nil, err
		}
		outcome.Note("Every n-th of the camera's %d frames per second is captured, with the smallest n of each cell "+
			"that this machine sustains. A trial of %v before the measurement, in which the producer takes the next "+
			"frame as soon as it is done, as in the paper, measures the time that producer and consumer need for "+
			"a frame, and the use of all processors. The number of frames is under frames sent.", camera, trial)
	}
	frames, summary, err := s.stream(ctx, network, &source, warmUp+settings.Duration, &settings)
	if reason := direct.NoCamera(err); reason != "" {
		return experiment.Skip("%s", reason), nil
	}
	if err != nil {
		return nil, err
	}
	s.measure(outcome, direct.Between(frames, warmUp, 0))
	if network.Network != nil {
		statistics := network.Network.Statistics()
		wire := statistics.Wire("link", topology.Forth)
		outcome.Set("queue_dropped", float64(wire.DroppedQueue))
	}
	outcome.ClockBound = summary.ClockBound
	outcome.Set("busy", 100*network.Busy())
	network.Judge(outcome, summary.Pace(frames))
	return outcome, nil
}

// The roles.
const (
	hostProducer = "producer"
	hostConsumer = "consumer"
)

// open starts the link, or measures the hosts of the settings.
func (s *streaming) open(ctx context.Context, settings *experiment.Settings) (*direct.Metered, *experiment.Outcome,
	error) {
	if settings.Hosts != nil {
		m, err := direct.OnHosts(settings.Hosts)
		return m, nil, err
	}
	layout, err := layoutOf(s.Link, s.Back, settings.Seed)
	if err != nil {
		return nil, nil, err
	}
	return direct.OpenMetered(ctx, layout)
}

// stream runs a producer and a consumer for a time, and measures the machine and the network.
func (s *streaming) stream(ctx context.Context, network *direct.Metered, source *direct.Source, length time.Duration,
	settings *experiment.Settings) ([]direct.Frame, direct.Summary, error) {
	pair, err := direct.Start(ctx, direct.Config{
		Network: network.Network, Producer: hostProducer, Consumer: hostConsumer, Length: length,
		Produce: s.produce(source, settings), Consume: []string{"--render"},
	}, settings)
	if err != nil {
		return nil, direct.Summary{}, err
	}
	if err := network.Begin(); err != nil {
		return nil, direct.Summary{}, errors.Join(err, pair.Stop())
	}
	if err := network.Until(ctx, length, pair.Ended()); err != nil {
		return nil, direct.Summary{}, errors.Join(err, pair.Stop())
	}
	network.End()
	return pair.Wait(ctx, length)
}
