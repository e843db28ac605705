package guest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/internal/authority"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// These are the errors of this package. Errors of pkg/client, pkg/signal and the queue are returned
// as well. All are wrapped with the object of the action.
var (
	// ErrArgument reports a value that the server would reject.
	ErrArgument = errors.New("invalid argument")
	// ErrOrder reports that a frame's number is not above the last number of the same tile and
	// quality.
	ErrOrder = errors.New("frame is out of order")
	// ErrTooLarge reports that a frame exceeds the maximum size.
	ErrTooLarge = errors.New("frame is too large")
	// ErrTooMuchHeld reports that the program holds the maximum amount of data.
	ErrTooMuchHeld = errors.New("the program holds too much")
	// ErrTimeout reports that the server did not answer in time.
	ErrTimeout = errors.New("the server did not answer in time")
	// ErrNotSound reports that a publication is sound and the call is for frames, or the other way round.
	ErrNotSound = errors.New("wrong kind of publication")
	// ErrUnreachable reports that there is no server at the address.
	ErrUnreachable = errors.New("no server is reachable")
)

// These are defaults, and the number of waiting events: about as many arise when a room of 100
// participants with four publications each becomes empty and full again.
const (
	defaultFrames  = 256
	defaultBytes   = 64 << 20
	defaultTimeout = 10 * time.Second
	eventLimit     = 1024
)

// Config is the configuration of the session and the limits of waiting data.
type Config struct {
	client.Config
	// Frames limits waiting and held frames; zeros mean 256 frames and 64 MiB.
	Frames queue.Limits
	// Authority is the PEM file with the certificate authorities to trust in place of the system's. Empty is none.
	Authority string
	// Timeout is the time limit for replies of the server; 0 means 10 s.
	Timeout time.Duration
}

// Guest is one participant's presence in a room.
type Guest struct {
	session *client.Session
	timeout time.Duration
	frames  *store[client.Frame]
	events  *store[client.Event]
	// messages counts the data messages held by the program.
	messages holding
	// hearing guards listeners, by publication.
	hearing   sync.Mutex
	listeners map[volumetric.PublicationRef]*Listener
	// pumps counts the goroutines that read the session's channels.
	pumps sync.WaitGroup
	// defect is the reason why the guest ended, if one of them panicked.
	defect atomic.Pointer[error]
	// ignored counts packets of codecs that are not passed on, written counts frames accepted by
	// the session.
	ignored, written atomic.Uint64
}

// Enter joins a room and returns once the server has accepted the participant.
func Enter(config Config) (*Guest, error) {
	if config.Frames.Things == 0 {
		config.Frames.Things = defaultFrames
	}
	if config.Frames.Bytes == 0 {
		config.Frames.Bytes = defaultBytes
	}
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	var err error
	if config.TLS, err = authority.Trust(config.Authority); err != nil {
		return nil, fmt.Errorf("%w: certificate authorities: %w", ErrArgument, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), config.Timeout)
	defer cancel()
	session, err := client.Join(ctx, config.Config)
	if err != nil {
		return nil, refusal(err)
	}
	g := &Guest{
		session:   session,
		timeout:   config.Timeout,
		frames:    newStore[client.Frame](config.Frames),
		events:    newStore[client.Event](queue.Limits{Things: eventLimit}),
		messages:  holding{limits: queue.Limits{Things: messageLimit, Bytes: messageBytes}},
		listeners: make(map[volumetric.PublicationRef]*Listener),
	}
	g.pump(g.takeFrames)
	g.pump(g.takeEvents)
	g.pump(g.takePackets)
	return g, nil
}

// pump starts a goroutine that reads a channel of the session. If it panics, only the session ends,
// not the program.
func (g *Guest) pump(empty func()) {
	g.pumps.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				err := fmt.Errorf("%w: %v\n%s", client.ErrPanicked, value, debug.Stack())
				g.defect.CompareAndSwap(nil, &err)
				go func() { _ = g.session.Close() }()
			}
		}()
		empty()
	})
}

// refusal returns the reason of a failed join.
func refusal(err error) error {
	var refused *signal.Error
	switch {
	case errors.As(err, &refused), errors.Is(err, client.ErrConfig), errors.Is(err, client.ErrInterface),
		errors.Is(err, client.ErrPanicked):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrTimeout, err)
	default:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
}

func (g *Guest) takeFrames() {
	defer g.frames.queue.End()
	for frame := range g.session.Frames() {
		g.frames.queue.Push(frame, len(frame.Data))
	}
}

func (g *Guest) takeEvents() {
	defer g.events.queue.End()
	for event := range g.session.Events() {
		if _, ok := event.(client.KeyFrameWanted); ok {
			continue // Only independently decodable frames are published here.
		}
		g.events.queue.Push(event, 0)
	}
}

// Close leaves the room. Close returns after the end of the session and of all goroutines.
func (g *Guest) Close() {
	_ = g.session.Close()
	g.pumps.Wait()
	g.hearing.Lock()
	defer g.hearing.Unlock()
	for _, l := range g.listeners {
		l.free()
	}
	clear(g.listeners)
}

// ended returns the reason why nothing more arrives.
func (g *Guest) ended() error {
	if defect := g.defect.Load(); defect != nil {
		return *defect
	}
	err := g.session.Err()
	var refused *signal.Error
	for _, known := range []error{client.ErrClosed, client.ErrLost, client.ErrPanicked} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%w: %w", client.ErrLost, err)
}

// ask sends a request to the server within the guest's timeout.
func (g *Guest) ask(what string, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	err := request(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", what, ErrTimeout)
	}
	if err != nil && g.session.Err() != nil {
		return fmt.Errorf("%s: %w", what, g.ended())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// check validates a message by the server's rules before sending.
func check(m signal.Request) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrArgument, err)
	}
	return nil
}

// SetQuality sends this participant's choices, and waits until the server has accepted the choices.
func (g *Guest) SetQuality(choices []signal.Choice) error {
	if err := check(&signal.SetQuality{Choices: choices}); err != nil {
		return err
	}
	return g.ask("set quality", func(ctx context.Context) error { return g.session.SetQuality(ctx, choices...) })
}

// SetLimits limits the bit rate for this participant, and waits until the server has accepted the
// limits.
func (g *Guest) SetLimits(most, least volumetric.Bitrate) error {
	if err := check(&signal.SetLimits{BitrateLimits: signal.BitrateLimits{Max: most, Min: least}}); err != nil {
		return err
	}
	return g.ask("set limits", func(ctx context.Context) error { return g.session.SetLimits(ctx, most, least) })
}

// SetViewpoint sends the program's viewpoint to the server.
func (g *Guest) SetViewpoint(v client.Viewpoint) error {
	if err := check(sight(v)); err != nil {
		return err
	}
	if g.session.Err() != nil {
		return g.ended()
	}
	g.session.SetViewpoint(v)
	return nil
}

// ServerTime converts a time of this host to the server's clock.
func (g *Guest) ServerTime(t time.Time) time.Time { return g.session.ServerTime(t) }
