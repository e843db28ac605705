package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Waits between attempts to resume: the first attempt is made at once, then the wait doubles up to two seconds.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// resumePatience is the time for which a client tries to resume. The server's grace time begins when the server notices
// that the websocket is broken, which may be long after the client did. The server refuses a client that is too late.
func resumePatience(grace time.Duration) time.Duration { return 2 * grace }

// resume opens another websocket and continues the session, for as long as the server may accept a resume.
func (c *control) resume() error {
	s := c.session
	broken := s.conn.Err()
	if s.ctx.Err() != nil {
		return s.Err()
	}
	s.events.add(Interrupted{broken})
	grace := time.Duration(s.joined.Resume.GraceMS) * time.Millisecond
	ctx, cancel := context.WithTimeout(s.ctx, resumePatience(grace))
	defer cancel()
	times := s.config.times
	for wait, limit := firstRetry, times.Attempt; ; wait, limit = min(2*wait, lastRetry), min(2*limit, times.Dial) {
		err := c.tryResume(ctx, limit)
		if err == nil {
			c.ended = nil
			s.events.add(Resumed{})
			return nil
		}
		var refused *signal.Error
		if errors.As(err, &refused) {
			if c.ended != nil {
				err = fmt.Errorf("%w: %w", c.ended, err)
			}
			return fmt.Errorf("%w: %w", ErrLost, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrLost, errors.Join(broken, err))
		}
	}
}

// tryResume makes one attempt, for at most limit. A peer connection that still works is kept, and the server restarts
// ICE.
func (c *control) tryResume(ctx context.Context, limit time.Duration) error {
	s := c.session
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fresh := c.ended != nil || !s.media.isConnected()
	s.mu.Lock()
	limits := s.limits
	s.mu.Unlock()
	join := &signal.Join{
		Version:       signal.Version,
		Room:          s.joined.Room,
		Identity:      s.joined.Identity,
		Receive:       s.config.Receive,
		DeadlineMS:    int(s.config.Deadline.Milliseconds()),
		Pauses:        true,
		Multipath:     s.config.multipath(),
		BitrateLimits: limits,
		Resume: &signal.ResumeRequest{
			Session: s.joined.Session, Secret: s.joined.Resume.Secret, NewConnection: fresh,
			DataReceived: s.data.lastReceived(),
		},
		MessageChannel: s.config.MessageChannel,
	}
	conn, joined, err := signalling.Join(ctx, s.config.signalling(), join)
	if err != nil {
		return err
	}
	s.conn.Close()
	s.mu.Lock()
	s.conn = conn
	s.requests.Abandon()
	s.mu.Unlock()
	s.data.resume(conn, joined.DataReceived)
	s.welcome(joined)
	s.media.resendUplink()
	if !fresh {
		return nil
	}
	return c.replacePeer()
}

// replacePeer replaces the peer connection and the state of media that belongs to the connection.
func (c *control) replacePeer() error {
	s := c.session
	peer, err := s.config.newPeer(s.endpoint, s.media, s.joined, s.data)
	if err != nil {
		return err
	}
	// Packets of the former connection have the same numbers. If they still arrived, they would count as packets of the
	// new one.
	_ = s.peer.Close()
	s.media.reset()
	s.mu.Lock()
	s.peer = peer
	s.mu.Unlock()
	return nil
}
