package gallery

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// room is the room of a run, and watcher the receiver.
const (
	room    = "gallery"
	watcher = "watcher"
)

// accessDelay is the delay of each direction of each access link, queueTime the length of the receiver's queue.
const (
	accessDelay = 10 * time.Millisecond
	queueTime   = 100 * time.Millisecond
)

// sampleInterval is the time between two samples of the shown frames.
const sampleInterval = 100 * time.Millisecond

// Options are the parameters of a run.
type Options struct {
	Split Split
	// Link is the rate of the receiver's downlink.
	Link volumetric.Bitrate
	// Settle is the time before the measurement, View the length of each of its three parts: the receiver looks at the
	// middle of the table, then turned to the left, then at the middle again.
	Settle, View time.Duration
	Seed         uint64
}

// Result is the result of a run.
type Result struct {
	// Ahead and Turned are the mean values of the shown frames, relative to all publications at the highest
	// quality, while it looks at the middle of the table and while it is turned.
	Ahead, Turned float64
	// Freezes counts times of more than a second without a frame of a tile that is on.
	Freezes int
	// Received is the rate of frames and of packets of pictures, without headers.
	Received volumetric.Bitrate
	// Estimate is the server's estimate of the downlink at the end.
	Estimate volumetric.Bitrate
}

// Run measures one split of one link.
func Run(ctx context.Context, o Options) (result Result, err error) {
	network, err := testbed.NewEmulation(testbed.ConferenceConfig(), o.Seed)
	if err != nil {
		return result, err
	}
	defer network.Close()
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	all := guests()
	for i := range all {
		session, err := enter(ctx, network, &all[i], &running, o.Seed+uint64(i))
		if err != nil {
			return result, err
		}
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	link := netem.DefaultConfig()
	link.Delay = accessDelay
	down := link
	down.RateBPS, down.QueueDelay = int(o.Link), queueTime
	session, err := join(ctx, network, link, down, client.Config{Identity: watcher, Receive: true})
	if err != nil {
		return result, err
	}
	r := newReceiver(session, all)
	var collecting sync.WaitGroup
	collecting.Go(r.collect)
	defer collecting.Wait()
	defer func() { err = errors.Join(err, session.Close()) }()
	if err := o.choose(ctx, session, all); err != nil {
		return result, err
	}
	m := measurement{options: o, receiver: r, guests: all, scene: sceneOf(all)}
	return m.run(ctx)
}

// choose sends the fixed qualities of a split.
func (o *Options) choose(ctx context.Context, session *client.Session, all []guest) error {
	if o.Split == SplitAllocator {
		return nil
	}
	var choices []signal.Choice
	for i, quality := range fixed(o.Split, all, o.Link) {
		choices = append(choices, signal.Choice{PublicationRef: all[i].ref(), Quality: signal.Only(quality)})
	}
	return session.SetQuality(ctx, choices...)
}

// enter joins a guest, which publishes until the context ends.
func enter(
	ctx context.Context, network *testbed.Emulation, g *guest, running *sync.WaitGroup, seed uint64,
) (*client.Session, error) {
	link := netem.DefaultConfig()
	link.Delay = accessDelay
	if g.levels == nil {
		peer, _, err := network.JoinOver(ctx, link, testbed.Part{Room: room, Identity: g.identity,
			Loads: []testbed.Load{figure}, Seed: seed})
		if err != nil {
			return nil, err
		}
		peer.Session.Publisher(figure.Name).SetPose(g.pose)
		return peer.Session, nil
	}
	var qualities []picture.Quality
	for i, level := range g.levels {
		source := newEncoder(&level, seed<<8+uint64(i))
		qualities = append(qualities, picture.Quality{QualityLevel: level, Source: source})
	}
	player := picture.NewPlayer(g.name(), volumetric.MIMEVP8, g.source, qualities)
	session, err := join(ctx, network, link, link, client.Config{
		Identity: g.identity, Publications: []volumetric.Publication{player.Publication()},
	})
	if err != nil {
		return nil, err
	}
	publisher := session.Publisher(g.name())
	publisher.SetPose(g.pose)
	running.Go(func() { _ = player.Run(ctx, publisher) })
	running.Go(func() {
		for {
			select {
			case e, open := <-session.Events():
				if !open {
					return
				}
				if wanted, ok := e.(client.KeyFrameWanted); ok {
					player.WantKeyFrame(wanted.Quality)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return session, nil
}

// join joins a client on a host of its own.
func join(
	ctx context.Context, network *testbed.Emulation, up, down netem.Config, config client.Config,
) (*client.Session, error) {
	host, err := network.Host(up, down)
	if err != nil {
		return nil, err
	}
	if config.PacketConn, err = network.Network.Listen(netip.AddrPortFrom(host, 0)); err != nil {
		return nil, err
	}
	config.URL, config.Room = network.Server.URL(), room
	return client.Join(ctx, config)
}

// measurement measures the frames that the receiver shows.
type measurement struct {
	options  Options
	receiver *receiver
	guests   []guest
	scene    allocate.Scene
}

// run measures the three parts.
func (m *measurement) run(ctx context.Context) (result Result, err error) {
	m.look(0)
	if err := m.sample(ctx, m.options.Settle, 0, nil); err != nil {
		return result, err
	}
	began := m.now()
	m.receiver.begin(began)
	var ahead, left mean
	for _, part := range []struct {
		angle float64
		mean  *mean
	}{{0, &ahead}, {turned, &left}, {0, &ahead}} {
		m.look(part.angle)
		if err := m.sample(ctx, m.options.View, part.angle, part.mean); err != nil {
			return result, err
		}
	}
	ended := m.now()
	freezes, bytes, estimate := m.receiver.end(ended)
	return Result{
		Ahead: ahead.value(), Turned: left.value(), Freezes: freezes, Estimate: estimate,
		Received: volumetric.Bitrate(8 * float64(bytes) / ended.Sub(began).Seconds()),
	}, m.receiver.session.Err()
}

// now returns the time by the server's clock.
func (m *measurement) now() time.Time { return m.receiver.session.ServerTime(time.Now()) }

// look sends the viewpoint of the receiver.
func (m *measurement) look(angle float64) {
	v := viewpoint(angle)
	m.receiver.session.SetViewpoint(client.Viewpoint{
		Position: v.Position, Orientation: v.Orientation, FOV: v.FOV, Aspect: v.Aspect,
	})
}

// sample adds the values of the frames that the receiver shows during a time. Without a mean, sample only waits.
func (m *measurement) sample(ctx context.Context, length time.Duration, angle float64, into *mean) error {
	config := allocate.DefaultConfig().View
	eye := viewpoint(angle)
	everything := decisions(&m.scene, func(object, tile int) volumetric.Quality {
		return volumetric.Quality(len(m.scene.Objects[object].Tiles[tile].Levels) - 1)
	})
	most := allocate.Value(&config, eye, &m.scene, everything)
	ticker := time.NewTicker(sampleInterval)
	defer ticker.Stop()
	for end := time.Now().Add(length); time.Now().Before(end); {
		select {
		case <-ticker.C:
		case <-m.receiver.session.Done():
			return m.receiver.session.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
		if into != nil {
			shown := m.receiver.shows(&m.scene, m.guests, m.now())
			into.add(allocate.Value(&config, eye, &m.scene, shown) / most)
		}
	}
	return nil
}

// mean is a mean of values.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(v float64) { m.sum, m.count = m.sum+v, m.count+1 }

// value returns the mean, NaN without a value.
func (m *mean) value() float64 {
	if m.count == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.count)
}
