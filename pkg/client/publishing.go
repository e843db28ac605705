package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publish announces one more publication.
func (s *Session) Publish(ctx context.Context, publication volumetric.Publication) (*Publisher, error) {
	p := newPublisher(s, publication)
	s.mu.Lock()
	if _, taken := s.publishers[publication.Name]; taken {
		s.mu.Unlock()
		return nil, &signal.Error{Code: signal.CodeExists, Message: fmt.Sprintf("publication %q exists already", publication.Name)}
	}
	s.publishers[publication.Name] = p
	s.mu.Unlock()
	if err := s.announce(ctx, publication); err != nil {
		s.forgetPublisher(publication.Name)
		return nil, err
	}
	return p, nil
}

// announce asks for a publication until there is a reply: one that the server has taken while nobody hears of it could neither be used nor published again.
func (s *Session) announce(ctx context.Context, publication volumetric.Publication) error {
	return s.insist(ctx, signal.CodeExists, func() signal.Message { return &signal.Publish{Publication: publication} })
}

// insist makes a request until there is a reply, if need be by the next websocket. Once one was interrupted, done is the code by which the server says that it had been
// carried out.
func (s *Session) insist(ctx context.Context, done signal.Code, message func() signal.Message) error {
	for interrupted := false; ; {
		back := s.another()
		_, err := s.request(ctx, message())
		var refused *signal.Error
		switch {
		case errors.Is(err, ErrInterrupted):
			interrupted = true
		case errors.Is(err, errUnsent):
			select {
			case <-back:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-s.ctx.Done():
				return s.Err()
			}
		case interrupted && errors.As(err, &refused) && refused.Code == done:
			return nil
		default:
			return err
		}
	}
}

// another gives what is closed once the session goes on by another websocket.
func (s *Session) another() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.back == nil {
		s.back = make(chan struct{})
	}
	return s.back
}

// Publisher gives the publisher of a publication that was announced on joining, nil where there is none.
func (s *Session) Publisher(name string) *Publisher {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.publishers[name]
}

// Unpublish ends a publication of this client.
func (s *Session) Unpublish(ctx context.Context, name string) error {
	s.forgetPublisher(name)
	return s.insist(ctx, signal.CodeNotFound, func() signal.Message { return &signal.Unpublish{Publication: name} })
}

func (s *Session) forgetPublisher(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.publishers[name]; ok {
		p.detach()
		delete(s.publishers, name)
	}
}
