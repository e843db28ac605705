package baseline

import (
	"context"
	"errors"

	"github.com/volsfu/volsfu/lab/baseline/conference"
	"github.com/volsfu/volsfu/lab/baseline/datagrams"
	"github.com/volsfu/volsfu/lab/baseline/direct"
	"github.com/volsfu/volsfu/lab/baseline/engineio"
	"github.com/volsfu/volsfu/lab/baseline/reflector"
	"github.com/volsfu/volsfu/lab/baseline/rtc"
	"github.com/volsfu/volsfu/lab/baseline/segments"
	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Open opens the end of a client. If the transport has a server, Open waits for the server. listening is called with
// the address of an end that listens.
func Open(ctx context.Context, c Config, listening func(string)) (carriage.End, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Role == RoleServer {
		return nil, errors.Join(ErrConfig, errors.New("the role server has no client end"))
	}
	options := tcp.Options{Congestion: c.Congestion}
	watched := 0
	if c.Role.Watches() {
		watched = c.Tiles
	}
	switch c.Transport {
	case DirectTCP, TCPSwitching:
		return openDirect(ctx, options, c, listening)
	case Reflector:
		return asEnd(reflector.Join(ctx, options, c.Connect, c.Name, reflector.NewSelection(c.Watched, watched,
			c.Quality)))
	case Websocket:
		return asEnd(engineio.Join(ctx, options, c.Connect, c.Name, reflector.NewSelection(c.Watched, watched,
			c.Quality)))
	case DASH:
		return segments.NewClient(options, segments.Config{
			Address: c.Connect, Name: c.Name, Watched: c.Watched, Tiles: watched, Quality: c.Quality,
			Publishes: c.Role.Publishes(), FPS: c.Publication.FrameRate, Segment: c.Segment,
		}), nil
	case UDPChunks:
		end, err := datagrams.Open(c.Listen, c.Connect, c.Gap)
		if err == nil && c.Listen != "" {
			listening(end.Address())
		}
		return asEnd(end, err)
	case Pion, PionPatched:
		if c.Role == RoleWatch {
			return asEnd(rtc.Connect(c.Connect, c.Tiles, c.Quality))
		}
		estimate := rtc.PionEstimator
		if c.Transport == PionPatched {
			estimate = rtc.PatchedEstimator
		}
		end, err := rtc.Listen(c.Listen, c.Publication, estimate, c.Min, c.Max, c.Adapt)
		if err == nil {
			listening(end.Address())
		}
		return asEnd(end, err)
	default:
		config := conference.Config{Address: c.Connect, Secret: c.Secret, Name: c.Name, Watched: c.Watched,
			Tiles: watched, Quality: c.Quality, Adapt: c.Adapt, Spread: c.Spread, Uplink: c.Uplink,
			Controller: c.Controller}
		if c.Role.Publishes() {
			config.Publication = &c.Publication
		}
		return asEnd(conference.Join(ctx, config))
	}
}

// asEnd prevents a nil pointer from becoming an end.
func asEnd[E carriage.End](end E, err error) (carriage.End, error) {
	if err != nil {
		return nil, err
	}
	return end, nil
}

// Serve runs the server of a transport until the context ends. listening is called with the server's address.
func Serve(ctx context.Context, c Config, listening func(string)) (*carriage.Relayed, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	options := tcp.Options{Congestion: c.Congestion}
	switch c.Transport {
	case Reflector:
		return reflector.Serve(ctx, options, c.Listen, c.QueueFrames, listening)
	case Websocket:
		return engineio.Serve(ctx, options, c.Listen, c.QueueFrames, listening)
	case DASH:
		return segments.Serve(ctx, options, c.Listen, listening)
	default: // Validate has refused all others.
		return conference.Serve(ctx, conference.Settings{Address: c.Listen, Secret: c.Secret,
			Suppression: c.Suppression, Pacing: c.Pacing, Controller: c.Controller}, listening)
	}
}

// openDirect opens the ends of Direct TCP: an end that listens, an end that watches, or both in one.
func openDirect(ctx context.Context, options tcp.Options, c Config, listening func(string)) (carriage.End, error) {
	var publisher *direct.Publisher
	if c.Role.Publishes() {
		var err error
		if publisher, err = direct.Listen(ctx, options, c.Listen); err != nil {
			return nil, err
		}
		listening(publisher.Address())
	}
	if !c.Role.Watches() {
		return publisher, nil
	}
	watcher := direct.NewWatcher(options, c.Connect, c.Tiles, c.Quality)
	switch {
	case publisher != nil:
		return &pair{publisher, watcher}, nil
	default:
		return watcher, nil
	}
}

// pair consists of the two independent ends of a client that both publishes and watches.
type pair struct {
	*direct.Publisher
	watcher *direct.Watcher
}

// Run implements carriage.End: publishing continues when the watched stream has ended.
func (p *pair) Run(ctx context.Context, to carriage.Taker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		err := p.watcher.Run(ctx, to)
		if err != nil && !errors.Is(err, carriage.ErrEnded) {
			cancel()
		}
		failed <- err
	}()
	err := p.Publisher.Run(ctx, to)
	cancel()
	return errors.Join(err, <-failed)
}

// Choose implements carriage.End.
func (p *pair) Choose(ctx context.Context, qualities []volumetric.Quality) error {
	return p.watcher.Choose(ctx, qualities)
}

// Traffic implements carriage.End.
func (p *pair) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: p.Publisher.Traffic().Sent, Received: p.watcher.Traffic().Received}
}

// Close implements carriage.End.
func (p *pair) Close() error { return errors.Join(p.Publisher.Close(), p.watcher.Close()) }
