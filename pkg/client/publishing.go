package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/volsfu/volsfu/pkg/client/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Publish announces one more publication.
func (s *Session) Publish(ctx context.Context, publication volumetric.Publication) (*Publisher, error) {
	p := newPublisher(s, publication)
	if !s.publishers.add(p) {
		return nil, &signal.Error{Code: signal.CodeExists, Message: fmt.Sprintf("publication %q exists already", publication.Name)}
	}
	// The request is repeated until there is a reply: a publication that the server has taken without this client's
	// knowledge could neither be used nor published again.
	err := s.insist(ctx, signal.CodeExists, func() signal.Message { return &signal.Publish{Publication: publication} })
	if err != nil {
		s.publishers.remove(publication.Name)
		return nil, err
	}
	return p, nil
}

// insist makes a request until there is a reply, if need be by the next websocket. Once one was interrupted, done is the code by which the server says that it had been
// carried out.
func (s *Session) insist(ctx context.Context, done signal.Code, message func() signal.Message) error {
	for interrupted := false; ; {
		resumed := s.requests.Resumed()
		_, err := s.request(ctx, message())
		var refused *signal.Error
		switch {
		case errors.Is(err, ErrInterrupted):
			interrupted = true
		case errors.Is(err, signalling.ErrUnsent):
			select {
			case <-resumed:
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

// Publisher returns the publisher of a publication of this client, nil if there is none.
func (s *Session) Publisher(name string) *Publisher { return s.publishers.get(name) }

// Unpublish ends a publication of this client.
func (s *Session) Unpublish(ctx context.Context, name string) error {
	s.publishers.remove(name)
	return s.insist(ctx, signal.CodeNotFound, func() signal.Message { return &signal.Unpublish{Publication: name} })
}

// publishers are those of a session, by the names of their publications. Its methods are safe for concurrent use. The zero
// value is empty.
type publishers struct {
	mu     sync.Mutex
	byName map[string]*Publisher
}

// add adds a publisher, and reports whether its name was free.
func (ps *publishers) add(p *Publisher) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	name := p.publication.Name
	if ps.byName[name] != nil {
		return false
	}
	if ps.byName == nil {
		ps.byName = make(map[string]*Publisher)
	}
	ps.byName[name] = p
	return true
}

// get returns the publisher with a name, nil if there is none.
func (ps *publishers) get(name string) *Publisher {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.byName[name]
}

// remove removes the publisher with a name, if there is one, and frees its lines.
func (ps *publishers) remove(name string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.byName[name]; p != nil {
		p.detach()
		delete(ps.byName, name)
	}
}
