package conference

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config describes a client: its identity, its publication and the watched peer.
type Config struct {
	Address, Secret string
	Name, Watched   string
	// Publication is the client's publication, or nil.
	Publication *volumetric.Publication
	// Tiles of Watched are watched at Quality; 0 watches none. If Adapt is set, the server chooses their qualities
	// until Choose is called.
	Tiles   int
	Quality volumetric.Quality
	Adapt   bool
	// Spread, Uplink and Controller are fields of client.Config: the share of the frame interval over which frames are
	// sent, the assumed rate to the server, and the congestion control.
	Spread     float64
	Uplink     volumetric.Bitrate
	Controller string
}

// Client is the end of a client.
type Client struct {
	config    Config
	session   *client.Session
	publisher *client.Publisher // nil if the client does not publish
	connected chan struct{}
	sent      atomic.Int64

	asking sync.Mutex

	mu sync.Mutex
	// wanted has the qualities of tiles, none if the server chooses. asked has the qualities requested so far. known is
	// set when the publication exists.
	asked, wanted []volumetric.Quality
	known         bool
	// told has the server's estimates of the path to this client, with their arrival times.
	told []estimate
}

// estimate is an estimate with its time.
type estimate struct {
	at   time.Time
	mbps float64
}

// dialPatience is the time limit for the server to start; dialInterval is the interval between attempts.
const (
	dialPatience = 30 * time.Second
	dialInterval = 100 * time.Millisecond
)

// Join joins the lab's room, and waits for the server if it has not started yet.
func Join(ctx context.Context, c Config) (*Client, error) {
	pass, err := token(c.Secret, c.Name)
	if err != nil {
		return nil, err
	}
	config := client.Config{URL: "ws://" + c.Address, Room: Room, Identity: c.Name, Token: pass, Receive: c.Tiles > 0,
		Spread: c.Spread, StartUplink: c.Uplink, Controller: client.Controller(c.Controller)}
	if c.Publication != nil {
		config.Publications = []volumetric.Publication{*c.Publication}
	}
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	e := &Client{config: c, connected: make(chan struct{})}
	for e.session, err = client.Join(ctx, config); err != nil; e.session, err = client.Join(ctx, config) {
		var refused *signal.Error
		timer := time.NewTimer(dialInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil || errors.As(err, &refused) {
			return nil, fmt.Errorf("%s: %w", c.Address, err)
		}
	}
	if c.Publication != nil {
		e.publisher = e.session.Publisher(c.Publication.Name)
	}
	for tile := 0; tile < c.Tiles && !c.Adapt; tile++ {
		e.wanted = append(e.wanted, c.Quality)
	}
	return e, nil
}

// Run implements carriage.End. It returns carriage.ErrEnded once the watched peer has left.
func (c *Client) Run(ctx context.Context, to carriage.Taker) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	running.Go(func() { c.watchEvents(ctx, stop) })
	frames := c.session.Frames()
	for frames != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				break
			}
			c.take(f, to)
		case <-ctx.Done():
			frames = nil
		}
	}
	// Events end after frames: the departure of the watched peer may be among the last events.
	running.Wait()
	if ctx.Err() == nil {
		stop(c.session.Err())
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// take passes a frame of the watched peer to the taker.
func (c *Client) take(f client.Frame, to carriage.Taker) {
	if f.Track.Participant != c.config.Watched {
		return
	}
	now := time.Now()
	// Frame times are in the server's clock; shift is the difference of the clocks. The SDK estimates the offset of the
	// system's clock.
	shift := c.session.ServerTime(now).Sub(now) - wallclock.Shift()
	last := f.Complete.Add(-shift)
	to.Take(&carriage.Arrival{Data: f.Data, First: f.First.Add(-shift), Last: last, Whole: last})
}

// watchEvents handles events until the context or the session ends.
func (c *Client) watchEvents(ctx context.Context, stop context.CancelCauseFunc) {
	connected := sync.OnceFunc(func() { close(c.connected) })
	var asking sync.WaitGroup
	defer asking.Wait()
	ask := func() { asking.Go(func() { c.ask(ctx) }) }
	if c.watching(c.session.Participants()) {
		ask()
	}
	for {
		select {
		case e, open := <-c.session.Events():
			if !open {
				return
			}
			switch e := e.(type) {
			case client.Connected:
				connected()
			case client.Published:
				if e.Participant == c.config.Watched {
					ask()
				}
			case client.ParticipantJoined:
				if c.watching([]signal.Participant{e.Participant}) {
					ask()
				}
			case client.Bandwidth:
				c.mu.Lock()
				c.told = append(c.told, estimate{wallclock.Now(), float64(e.Estimate) / 1e6})
				c.mu.Unlock()
			case client.ParticipantLeft:
				if e.Identity == c.config.Watched && c.config.Tiles > 0 {
					stop(carriage.ErrEnded)
					return
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// watching reports whether the watched peer is among participants and publishes.
func (c *Client) watching(participants []signal.Participant) bool {
	for _, p := range participants {
		if p.Identity == c.config.Watched && len(p.Publications) > 0 && c.config.Tiles > 0 {
			return true
		}
	}
	return false
}

// ask requests wanted qualities from the server, for each tile whose quality differs from the last request.
func (c *Client) ask(ctx context.Context) {
	// Requests are sent in the order of the decisions.
	c.asking.Lock()
	defer c.asking.Unlock()
	c.mu.Lock()
	var choices []signal.Choice
	c.known = true
	if c.asked == nil {
		c.asked = make([]volumetric.Quality, c.config.Tiles)
		for i := range c.asked {
			c.asked[i] = -2 // unlike any quality
		}
	}
	ref := volumetric.PublicationRef{Participant: c.config.Watched, Publication: "body"}
	for tile, quality := range c.wanted {
		if quality != c.asked[tile] {
			choices = append(choices, signal.Choice{PublicationRef: ref, Tile: &tile, Quality: signal.Only(quality)})
			c.asked[tile] = quality
		}
	}
	c.mu.Unlock()
	if len(choices) > 0 {
		// If the request fails, the session ends and Run reports the error.
		_ = c.session.SetQuality(ctx, choices...)
	}
}

// Ready implements carriage.End: it waits for the media connection.
func (c *Client) Ready(ctx context.Context) error {
	select {
	case <-c.connected:
		return nil
	case <-c.session.Done():
		return c.session.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wanted implements carriage.End: it returns the server's demand.
func (c *Client) Wanted(tile int, quality volumetric.Quality) bool {
	return c.publisher != nil && c.publisher.Wanted(tile, quality)
}

// Send implements carriage.End. The frame is sent over a share of its interval, after Send returns. A frame without
// receivers is not sent.
func (c *Client) Send(_ context.Context, f *carriage.Frame) (carriage.Departure, error) {
	taken, err := c.publisher.WriteFrame(f.Tile, f.Quality, client.OutgoingFrame{Number: f.Number, Capture: f.Capture,
		Codec: f.Codec, Data: f.Bytes})
	if errors.Is(err, client.ErrNotConnected) {
		return carriage.Departure{}, nil
	}
	if !taken {
		return carriage.Departure{}, err
	}
	c.sent.Add(int64(wireBytes(len(f.Bytes))))
	return carriage.Departure{Copies: 1}, nil
}

// Choose implements carriage.End: it sends a request to the server over the websocket.
func (c *Client) Choose(ctx context.Context, qualities []volumetric.Quality) error {
	c.mu.Lock()
	c.wanted = append(c.wanted[:0], qualities...)
	known := c.known
	c.mu.Unlock()
	if known {
		c.ask(ctx)
	}
	return nil
}

// Traffic implements carriage.End.
func (c *Client) Traffic() carriage.Traffic {
	t := carriage.Traffic{Sent: c.sent.Load()}
	for _, s := range c.session.Stats() {
		t.Received += int64(s.Bytes + s.Packets*rtpOverhead)
	}
	return t
}

// Downlink implements carriage.Informed.
func (c *Client) Downlink(since time.Time) []carriage.Estimate {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]carriage.Estimate, 0, len(c.told))
	for _, e := range c.told {
		list = append(list, carriage.Estimate{At: e.at.Sub(since).Seconds(), Mbps: e.mbps})
	}
	return list
}

// Close implements carriage.End.
func (c *Client) Close() error { return c.session.Close() }
