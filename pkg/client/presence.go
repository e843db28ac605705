package client

import (
	"context"
	"maps"
	"sync"

	"github.com/volsfu/volsfu/pkg/signal"
)

// presence is the server's description of this client and of the room. Its methods are safe for concurrent use.
type presence struct {
	mu          sync.Mutex
	identity    string
	attributes  map[string]string
	metadata    map[string]string
	permissions signal.Permissions
}

// welcome stores the description of the reply to a join.
func (p *presence) welcome(joined *signal.Joined) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.identity, p.attributes, p.metadata = joined.Identity, joined.Attributes, joined.Metadata
	if joined.Permissions != nil {
		p.permissions = *joined.Permissions
	}
}

// change takes a message of the server about this client or the room.
func (p *presence) change(m signal.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m := m.(type) {
	case *signal.Attributes:
		if m.Participant == p.identity {
			p.attributes = m.Attributes
		}
	case *signal.Metadata:
		p.metadata = m.Metadata
	case *signal.PermissionsChanged:
		p.permissions = m.Permissions
	}
}

// Attributes returns the attributes of this client. Session.Participants has those of the others.
func (s *Session) Attributes() map[string]string {
	s.presence.mu.Lock()
	defer s.presence.mu.Unlock()
	return maps.Clone(s.presence.attributes)
}

// Metadata returns the metadata of the room.
func (s *Session) Metadata() map[string]string {
	s.presence.mu.Lock()
	defer s.presence.mu.Unlock()
	return maps.Clone(s.presence.metadata)
}

// Permissions returns the permissions of this client.
func (s *Session) Permissions() signal.Permissions {
	s.presence.mu.Lock()
	defer s.presence.mu.Unlock()
	return s.presence.permissions
}

// SetAttributes changes attributes of a participant. Entries that are not named stay, and an entry with an empty value
// is deleted. An empty name stands for this client. Other participants need a token with the grant admin. SetAttributes
// returns when the server has accepted the change.
func (s *Session) SetAttributes(ctx context.Context, participant string, attributes map[string]string) error {
	_, err := s.request(ctx, &signal.Attributes{Participant: participant, Attributes: attributes})
	return err
}

// SetMetadata changes the metadata of the room, as SetAttributes changes attributes. It needs a token with the grant
// admin.
func (s *Session) SetMetadata(ctx context.Context, metadata map[string]string) error {
	_, err := s.request(ctx, &signal.Metadata{Metadata: metadata})
	return err
}

// Mute mutes a publication, or ends this: the server does not forward a muted publication. An empty name stands for
// this client. Other participants need a token with the grant admin, and cannot end such muting. Mute returns when the
// server has accepted the change.
func (s *Session) Mute(ctx context.Context, participant, publication string, muted bool) error {
	err := s.settle(ctx, func() signal.Message {
		return &signal.Mute{Participant: participant, Publication: publication, Muted: muted}
	})
	if err != nil {
		return err
	}
	if participant == "" || participant == s.Identity() {
		s.requested.mute(publication, muted)
	}
	return nil
}

// SetPermissions changes the permissions of a participant that are not nil, for the rest of its session. It needs a
// token with the grant admin.
func (s *Session) SetPermissions(ctx context.Context, permissions signal.SetPermissions) error {
	_, err := s.request(ctx, &permissions)
	return err
}
