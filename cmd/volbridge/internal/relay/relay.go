// Package relay connects VR2Gather's native connector to a server. The package joins the room, and rejoins when the
// session is lost, publishes the connector's frames, and sends the publications of others to the connector. The
// protocol is signalling v1 or VR2Gather's dialect. The relay transcodes if configured.
//
// In each session, one goroutine sends to the server and owns upward and the transcoding to Opus; another goroutine
// serves the connector and owns downward and the transcoding from Opus. Figures have a mutex of their own.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/connector"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/dialect"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Relay is a running bridge. A Relay has one session with the server at a time.
type Relay struct {
	settings *Options
	log      *slog.Logger
	tally    *bridge.Tally
	local    *connector.Connector // nil if there is none
	// frames has the frames that wait to be sent to the server.
	frames chan *bridge.Frame
	began  time.Time

	// upward is owned by the goroutine that sends to the server, of which there is one at a time. downward is owned by
	// the goroutine that serves the connector.
	upward   *upward
	downward *downward
	// transcoding is nil if nothing is transcoded.
	transcoding *transcoding

	figures *figures
	// pose is the pose of the connector's object, nil if unknown. rawAudio is set if the connector sends uncompressed
	// audio; the connector then also expects uncompressed audio.
	pose     atomic.Pointer[signal.Pose]
	rawAudio atomic.Bool
}

// frameQueue is the number of frames that may wait to be sent to the server: two captures of 9 tiles in 3 qualities.
const frameQueue = 64

// New returns a relay. The options must have been checked.
func New(b *Options, log *slog.Logger) *Relay {
	tally, figures := &bridge.Tally{}, &figures{}
	return &Relay{
		settings: b, log: log, tally: tally, figures: figures, began: time.Now(),
		frames: make(chan *bridge.Frame, frameQueue),
		upward: newUpward(b, tally, log),
		downward: &downward{tally: tally, figures: figures, outlet: bridge.NewOutlet(tally),
			voices: bridge.NewVoices(tally)},
	}
}

// run bridges until the context ends or the server refuses permanently.
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
		s.local, s.downward.local = local, local
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
		t, err := newTranscoding(s.settings.pointCodec, s.log)
		if err != nil {
			return fmt.Errorf("--transcode: %w", err)
		}
		s.transcoding = t
		defer t.close()
	}
	if s.settings.debug {
		running.Go(func() { s.publishDebugFrames(ctx) })
	}
	running.Go(func() { s.watch(ctx) })
	return s.keepJoined(ctx)
}

// The range of waiting times between attempts to join.
const (
	firstRejoin = 500 * time.Millisecond
	lastRejoin  = 5 * time.Second
)

// permanentCodes has the error codes for which another attempt is useless: permanent refusals, and those with which
// operators remove a participant.
var permanentCodes = []signal.Code{
	signal.CodeUnauthorized, signal.CodeVersion, signal.CodeForbidden, signal.CodeKicked, signal.CodeClosed,
	signal.CodeRevoked,
}

// keepJoined joins, and rejoins whenever the session is lost, until the context ends.
func (s *Relay) keepJoined(ctx context.Context) error {
	wait := firstRejoin
	session := s.runSession
	if s.settings.dialect == dialectVR2Gather {
		session = s.runDialectSession
	}
	for {
		err := session(ctx)
		var refused *signal.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && slices.Contains(permanentCodes, refused.Code):
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

// errEnded means that a session began and has ended.
var errEnded = errors.New("session ended")

// runSession runs one session with the server, from joining to the end.
func (s *Relay) runSession(ctx context.Context) error {
	config := client.Config{
		Publications: s.upward.publications(), Receive: s.settings.output,
		MaxUplink: volumetric.Bitrate(s.settings.maxBitrate), Log: s.log, Keys: s.settings.keys,
	}
	session, err := s.settings.room.Join(ctx, config)
	if err != nil {
		return err
	}
	s.figures.update(func(c *counts) { c.sessions++ })
	s.log.Info("joined", "room", session.Room(), "identity", session.Identity())
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	requests := make(chan []signal.Choice, peer.RequestBacklog)
	refused := make(chan []signal.Choice, peer.RequestBacklog)
	running.Go(func() { s.send(ctx, session) })
	running.Go(func() { s.sendRequests(ctx, session, requests, refused) })
	s.serve(ctx, session, requests, refused)
	ended := session.Err()
	cancel()
	_ = session.Close()
	running.Wait()
	s.figures.update(func(c *counts) { c.add(session) })
	return fmt.Errorf("%w: %w", errEnded, ended)
}

// send sends the connector's frames to the server.
func (s *Relay) send(ctx context.Context, session *client.Session) {
	for {
		select {
		case f := <-s.frames:
			if s.transcoding == nil || !s.convert(ctx, session, f) {
				s.publish(ctx, session, unchanged(f))
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
		s.figures.recordUp(time.Since(f.Arrival))
	}
	if unknown {
		s.sendPose(session)
	}
}

// sendRequests sends quality requests in order, each after the reply to the previous one, and returns refused requests.
func (s *Relay) sendRequests(ctx context.Context, session *client.Session, requests <-chan []signal.Choice,
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
			s.log.Warn("the server refused the choice of qualities", "error", err)
			select {
			case refused <- choices:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}
