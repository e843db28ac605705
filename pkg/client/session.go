package client

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Session is one participant's presence in a room. Its methods are safe for concurrent use.
type Session struct{ *parts }

// Join enters a room. Join returns once the server has accepted the client. Media flows after the event Connected.
func Join(ctx context.Context, config Config) (*Session, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	p := newParts(config)
	if p.endpoint, err = p.config.endpoint(); err != nil {
		return nil, err
	}
	c := newControl(p)
	if err := c.enter(ctx); err != nil {
		p.lifetime.End(err)
		_ = p.endpoint.Close()
		// If a panic of the websocket's goroutine has ended the websocket, the error is that panic.
		return nil, p.lifetime.Err()
	}
	p.lifetime.Go(c.run)
	p.path.media().start()
	return &Session{p}, nil
}

// Events returns the channel of events. It is closed when the session ends.
func (s *Session) Events() <-chan Event { return s.events }

// Frames returns the channel of complete frames of volumetric video. It is closed when the session ends.
func (s *Session) Frames() <-chan Frame { return s.path.media().frames }

// Packets returns the channel of the packets of all other tracks. It is closed when the session ends.
func (s *Session) Packets() <-chan Packet { return s.path.media().packets }

// Done returns a channel that is closed when the session has ended. Err returns why.
func (s *Session) Done() <-chan struct{} { return s.lifetime.Done() }

// Err returns why the session ended: ErrClosed after Close, otherwise the cause of the failure, which may be
// ErrPanicked. It is nil before the end.
func (s *Session) Err() error { return s.lifetime.Err() }

// leaveTimeout bounds how long closing waits for the server's reply.
const leaveTimeout = 2 * time.Second

// Close leaves the room and frees the session's resources. Close returns when all goroutines of the session have ended.
func (s *Session) Close() error {
	s.leaving.Store(true)
	if s.lifetime.Err() == nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		_, _ = s.requests.Do(ctx, &signal.Leave{})
		cancel()
	}
	s.lifetime.End(ErrClosed)
	s.lifetime.Wait()
	return nil
}

// ServerTime converts a time of this host to the server's clock, the clock of Frame.Capture.
func (s *Session) ServerTime(t time.Time) time.Time { return s.path.media().serverTime(t) }

// Keys returns the keys of the session, nil if nothing is encrypted.
func (s *Session) Keys() *e2ee.Keys { return s.config.Keys }

// SetQuality sets the qualities that this client wants. SetQuality returns when the server has accepted the choices.
func (s *Session) SetQuality(ctx context.Context, choices ...signal.Choice) error {
	err := s.requests.Settle(ctx, func() signal.Message { return &signal.SetQuality{Choices: choices} })
	if err != nil {
		return err
	}
	s.requested.Choose(choices, func(ref volumetric.PublicationRef) bool {
		_, exists := s.room.publication(ref)
		return exists
	})
	return nil
}

// SetViewpoint sends the program's viewpoint to the server, which sends visible objects in the best quality. The
// program may call SetViewpoint for every rendered frame: the newest viewpoint is sent at most 60 times per second. The
// last viewpoint remains valid. If the server refuses a viewpoint, the program receives no error.
func (s *Session) SetViewpoint(v Viewpoint) {
	if v.At.IsZero() {
		v.At = time.Now()
	}
	if v.FOV == 0 {
		v.FOV = defaultFOV
	}
	if v.Aspect == 0 {
		v.Aspect = 1
	}
	s.updates.SetViewpoint(&signal.Viewpoint{
		At:          s.ServerTime(v.At).UnixMicro(),
		Position:    v.Position,
		Orientation: rotation(v.Orientation),
		FOV:         v.FOV * 180 / math.Pi,
		Aspect:      v.Aspect,
	})
}

// SetLimits bounds the rate that the server sends to this client, in bit/s. most is the highest rate. least is a rate
// that the link is known to carry, and the minimum of the server's estimate. 0 is no limit. SetLimits returns when the
// server has accepted the limits.
func (s *Session) SetLimits(ctx context.Context, most, least volumetric.Bitrate) error {
	limits := s.config.limits(most, least)
	if _, err := s.requests.Do(ctx, &signal.SetLimits{BitrateLimits: limits}); err != nil {
		return err
	}
	s.requested.Limit(limits)
	return nil
}

// RequestKeyFrame asks the publisher of H264 or VP8 for a key frame, because the receiver has lost a frame that others
// depend on. The server asks a publisher at most twice per second. A tile that is not received is ignored.
func (s *Session) RequestKeyFrame(tile volumetric.TileRef) error {
	m := s.path.media()
	m.mu.Lock()
	packets := m.downlink.KeyFrameRequests(tile)
	m.mu.Unlock()
	if len(packets) == 0 {
		return nil
	}
	return m.peer.Load().WriteRTCP(packets)
}

// Publish announces one more publication.
func (s *Session) Publish(ctx context.Context, publication volumetric.Publication) (*Publisher, error) {
	publication, err := s.config.mark(publication)
	if err != nil {
		return nil, err
	}
	p := newPublisher(s.publishers, publication)
	if !s.publishers.add(p) {
		message := fmt.Sprintf("publication %q exists already", publication.Name)
		return nil, &signal.Error{Code: signal.CodeExists, Message: message}
	}
	// The session may have moved to another server since the publisher was made.
	p.follow(s.path.media())
	// The request is repeated until there is a reply. If the server accepted the publication without this client's
	// knowledge, the client could neither use the publication nor publish it again.
	err = s.requests.Insist(ctx, signal.CodeExists, func() signal.Message {
		return &signal.Publish{Publication: publication}
	})
	if err != nil {
		s.publishers.remove(publication.Name)
		return nil, err
	}
	return p, nil
}

// Publisher returns the publisher of a publication of this client, nil if there is none.
func (s *Session) Publisher(name string) *Publisher { return s.publishers.get(name) }

// Unpublish ends a publication of this client.
func (s *Session) Unpublish(ctx context.Context, name string) error {
	s.publishers.remove(name)
	s.updates.Forget(name)
	s.requested.Mute(name, false)
	return s.requests.Insist(ctx, signal.CodeNotFound, func() signal.Message {
		return &signal.Unpublish{Publication: name}
	})
}

// Data returns the channel of received data messages. It is closed when the session ends.
func (s *Session) Data() <-chan DataMessage { return s.inbox }

// SendData sends a data message. A reliable message returns when the server has accepted the message. If the websocket
// breaks before, the session repeats the message after the resume. A lossy message returns at once, and may be lost
// without an error. A refusal is a *signal.Error: signal.CodeLimit for more messages than the server allows, and
// signal.CodeNotFound if a recipient is not in the room, in which case the others receive the message.
func (s *Session) SendData(ctx context.Context, d Data) error {
	reply, err := s.QueueData(d)
	if err != nil || reply == nil {
		return err
	}
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.lifetime.Done():
		return s.Err()
	}
}

// QueueData is SendData without the wait for the server. Messages have the order of the calls. The returned channel
// gets the result of SendData, and is nil for a lossy message. After the end of the session it gets nothing.
func (s *Session) QueueData(d Data) (<-chan error, error) {
	m := &signal.Data{To: d.To, Topic: d.Topic, Lossy: d.Lossy, Text: d.Text, Binary: d.Binary}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	return s.data.Send(m)
}

// SetAttributes changes attributes of a participant. Entries that are not named stay, and an entry with an empty value
// is deleted. An empty name stands for this client. Other participants need a token with the grant admin. SetAttributes
// returns when the server has accepted the change.
func (s *Session) SetAttributes(ctx context.Context, participant string, attributes map[string]string) error {
	_, err := s.requests.Do(ctx, &signal.Attributes{Participant: participant, Attributes: attributes})
	return err
}

// SetMetadata changes the metadata of the room, as SetAttributes changes attributes. It needs a token with the grant
// admin.
func (s *Session) SetMetadata(ctx context.Context, metadata map[string]string) error {
	_, err := s.requests.Do(ctx, &signal.Metadata{Metadata: metadata})
	return err
}

// Mute mutes a publication, or ends this: the server does not forward a muted publication. An empty name stands for
// this client. Other participants need a token with the grant admin, and cannot end such muting. Mute returns when the
// server has accepted the change.
func (s *Session) Mute(ctx context.Context, participant, publication string, muted bool) error {
	err := s.requests.Settle(ctx, func() signal.Message {
		return &signal.Mute{Participant: participant, Publication: publication, Muted: muted}
	})
	if err != nil {
		return err
	}
	if participant == "" || participant == s.Identity() {
		s.requested.Mute(publication, muted)
	}
	return nil
}

// SetPermissions changes the permissions of a participant that are not nil, for the rest of its session. It needs a
// token with the grant admin.
func (s *Session) SetPermissions(ctx context.Context, permissions signal.SetPermissions) error {
	_, err := s.requests.Do(ctx, &permissions)
	return err
}
