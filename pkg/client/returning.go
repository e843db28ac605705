package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// Waits between attempts to resume: at once, then growing up to two seconds.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// patience is how long a client tries to resume. The server's grace begins when the server notices that the websocket is broken, which may be long after the client did; who
// comes too late is told so.
func patience(grace time.Duration) time.Duration { return 2 * grace }

// resume opens the websocket anew and goes on with the session, as long as the server may wait for that.
func (s *Session) resume() error {
	broken := s.link.err
	if s.ctx.Err() != nil {
		return s.Err()
	}
	s.events.tell(Interrupted{broken})
	ctx, cancel := context.WithTimeout(s.ctx, patience(time.Duration(s.joined.Resume.GraceMS)*time.Millisecond))
	defer cancel()
	times := s.config.link
	for wait, limit := firstRetry, times.attempt; ; wait, limit = min(2*wait, lastRetry), min(2*limit, times.dial) {
		err := s.tryResume(ctx, limit)
		if err == nil {
			s.ended = nil
			s.events.tell(Resumed{})
			return nil
		}
		var refused *signal.Error
		if errors.As(err, &refused) {
			if s.ended != nil {
				err = fmt.Errorf("%w: %w", s.ended, err)
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

// tryResume makes one attempt, which may take so long. A peer connection that still lives is kept; the server starts ICE anew on it.
func (s *Session) tryResume(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fresh := s.ended != nil || !s.media.isConnected()
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
		BitrateLimits: limits,
		Resume:        &signal.ResumeRequest{Session: s.joined.Session, Secret: s.joined.Resume.Secret, NewConnection: fresh},
	}
	l, joined, err := greet(ctx, s.config, join)
	if err != nil {
		return err
	}
	s.link.close()
	s.mu.Lock()
	s.link = l
	s.requests.abandon()
	s.mu.Unlock()
	s.welcome(joined)
	s.media.tellAgain()
	if !fresh {
		return nil
	}
	peer, err := s.config.newPeer(s.endpoint, s.media)
	if err != nil {
		return err
	}
	// What still came on the connection before would be taken for the new one's: their packets have the same numbers.
	_ = s.peer.Close()
	s.media.reset()
	s.mu.Lock()
	s.peer = peer
	s.mu.Unlock()
	return nil
}
