// Package relay is the bridge between VR2Gather's native connector and a server: it joins the room, and joins again
// when the session is lost, publishes what the connector sends, and gives the connector what others publish. It does so
// by signalling v1 or by VR2Gather's dialect, and transcodes if that is wanted.
//
// Of each session one goroutine sends to the server and owns upward and the speaker of transcoding; another serves the
// connector and owns downward and the listeners of transcoding. Figures are behind a mutex.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/connector"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/dialect"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Relay is a bridge under way, over one session with the server after the other.
type Relay struct {
	settings *Options
	log      *slog.Logger
	tally    *bridge.Tally
	local    *connector.Connector // nil if there is none
	// frames are those that wait to be sent to the server.
	frames chan *bridge.Frame
	began  time.Time

	// upward belongs to the goroutine that sends to the server, of which there is one at a time; downward to the one
	// that serves the connector.
	upward   *upward
	downward *downward
	// transcoding is nil if nothing is transcoded.
	transcoding *transcoding

	// mu guards what follows. pose is where the connector's object stands, nil if it has not said; speaksRaw says
	// that its sound is not compressed, and that it expects as much of others'.
	mu        sync.Mutex
	figures   figures
	pose      *signal.Pose
	speaksRaw bool
}

// figures are what is told of a bridge, besides what was dropped.
type figures struct {
	sessions int64
	outlet   bridge.OutletCounts
	uplink   client.UplinkCounts
	received client.FrameCounts
	// up is from the last datagram of a frame to when the SDK has it, down from the last packet of a frame to when the
	// connector was sent all of it.
	up, down distribution.Distribution
	// packed and unpacked are what transcoding adds to each, waiting included; spoken and heard what it adds to sound,
	// of which so many frames were made up.
	packed, unpacked distribution.Distribution
	spoken, heard    distribution.Distribution
	concealed        int64
}

// frameQueue is how many frames may wait to be sent to the server: two captures of 9 tiles in 3 qualities.
const frameQueue = 64

// New makes a relay. The options have been checked.
func New(b *Options, log *slog.Logger) *Relay {
	tally := &bridge.Tally{}
	return &Relay{
		settings: b, log: log, tally: tally, began: time.Now(), frames: make(chan *bridge.Frame, frameQueue),
		upward:   newUpward(b, tally, log),
		downward: &downward{tally: tally, outlet: bridge.NewOutlet(tally), voices: bridge.NewVoices(tally)},
	}
}

// run bridges until the context ends, or the server refuses for good.
func (s *Relay) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if s.settings.local.IsValid() {
		local, err := connector.Open(connector.Config{
			Address: s.settings.local, Layout: s.settings.layout, Input: s.settings.input, Secret: s.settings.required,
			Frames: s.frames, Tally: s.tally, Log: s.log,
		})
		if err != nil {
			return err
		}
		s.local = local
		running.Go(local.Read)
		running.Go(func() { local.Step(ctx) })
		defer func() { _ = local.Close() }()
		s.log.Info("waiting for the connector", "listening", local.Address(), "connector expected on",
			s.settings.local.Port()+1)
		select {
		case <-local.Answered():
			peer, _ := local.Peer()
			s.log.Info("connector found", "address", peer)
		case <-ctx.Done():
			return nil
		}
	}
	if s.settings.transcode {
		t, err := newTranscoding(s.settings.packs)
		if err != nil {
			return fmt.Errorf("--transcode: %w", err)
		}
		s.transcoding = t
		defer t.close()
	}
	if s.settings.debug {
		running.Go(func() { s.pretend(ctx) })
	}
	running.Go(func() { s.watch(ctx) })
	return s.stay(ctx)
}

// Waits between attempts to join.
const (
	firstRejoin = 500 * time.Millisecond
	lastRejoin  = 5 * time.Second
)

// lasting are what a server answers that will answer the same again, and with which operators send somebody away.
var lasting = []signal.Code{
	signal.CodeUnauthorized, signal.CodeVersion, signal.CodeForbidden, signal.CodeKicked, signal.CodeClosed,
	signal.CodeRevoked,
}

// stay joins, and joins again whenever the session is lost, until the context ends.
func (s *Relay) stay(ctx context.Context) error {
	wait := firstRejoin
	attend := s.attend
	if s.settings.dialect == dialectVR2Gather {
		attend = s.attendDialect
	}
	for {
		err := attend(ctx)
		var refused *signal.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && slices.Contains(lasting, refused.Code):
			return err
		case errors.Is(err, client.ErrConfig), errors.Is(err, dialect.ErrRefused):
			return err
		case errors.Is(err, errEnded):
			wait = firstRejoin
		}
		s.log.Warn("not connected to the server, trying again", "error", err, "wait", wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, lastRejoin)
	}
}

// errEnded says that a session began and has ended.
var errEnded = errors.New("session ended")

// attend is one session with the server, from joining to its end.
func (s *Relay) attend(ctx context.Context) error {
	config := client.Config{
		Publications: s.upward.publications(), Receive: s.settings.output,
		MaxUplink: volumetric.Bitrate(s.settings.most), Log: s.log,
	}
	session, err := s.settings.room.Join(ctx, config)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.figures.sessions++
	s.mu.Unlock()
	s.log.Info("joined", "room", session.Room(), "identity", session.Identity())
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	requests := make(chan []signal.Choice, peer.RequestBacklog)
	refused := make(chan []signal.Choice, peer.RequestBacklog)
	running.Go(func() { s.send(ctx, session) })
	running.Go(func() { s.ask(ctx, session, requests, refused) })
	s.serve(ctx, session, requests, refused)
	ended := session.Err()
	cancel()
	_ = session.Close()
	running.Wait()
	s.mu.Lock()
	s.figures.add(session)
	s.mu.Unlock()
	return fmt.Errorf("%w: %w", errEnded, ended)
}

// send sends the connector's frames to the server.
func (s *Relay) send(ctx context.Context, session *client.Session) {
	for {
		select {
		case f := <-s.frames:
			if s.transcoding == nil || !s.convert(ctx, session, f) {
				s.publish(ctx, session, asItIs(f))
			}
		case p := <-s.transcoding.packed():
			s.publishPacked(ctx, session, p)
		case <-ctx.Done():
			return
		}
	}
}

// publish sends one frame. After the first frame of the object it sends the object's pose.
func (s *Relay) publish(ctx context.Context, session *client.Session, f outgoing) {
	unknown := session.Publisher(cloudName) == nil
	if s.upward.send(ctx, session, f) {
		s.left(time.Since(f.Arrival))
	}
	if unknown {
		s.show(session)
	}
}

// left books how long a frame took from its last datagram to the server's side.
func (s *Relay) left(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.up.Add(took)
}

// ask sends requests for qualities in their order, each after the reply to the one before, and hands back what was
// refused.
func (s *Relay) ask(ctx context.Context, session *client.Session, requests <-chan []signal.Choice,
	refused chan<- []signal.Choice) {
	for {
		select {
		case choices := <-requests:
			limited, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
			err := session.SetQuality(limited, choices...)
			cancel()
			if err == nil || ctx.Err() != nil {
				continue
			}
			s.tally.Add(bridge.DropChoice)
			s.log.Warn("the server refuses the choice of qualities", "error", err)
			select {
			case refused <- choices:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}
