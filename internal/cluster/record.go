package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Home is the process of a node that has a participant.
type Home struct {
	Node        string
	Incarnation uint64
}

// Participant is the record of a participant, without its publications.
type Participant struct {
	Identity string `json:"identity"`
	Session  string `json:"session"`
	// Epoch counts the adoptions of the session by other nodes.
	Epoch  uint64    `json:"epoch,omitempty"`
	Joined time.Time `json:"joined"`
	// Live is false while the client's websocket is broken.
	Live        bool               `json:"live,omitempty"`
	Attributes  map[string]string  `json:"attributes,omitempty"`
	Permissions signal.Permissions `json:"permissions"`
	// Number identifies the participant in the VR2Gather dialect, nil for none.
	Number *uint32 `json:"number,omitempty"`
	// Complete is set once the home has told all publications of an adopted session. Until then, publications of the
	// former home may follow.
	Complete bool `json:"complete,omitempty"`
	// Audience is set if the participant is not announced to clients.
	Audience bool `json:"audience,omitempty"`
}

// Publication is the record of a publication.
type Publication struct {
	// ID identifies the publication among those that its home has had.
	ID          uint64                 `json:"id"`
	Description volumetric.Publication `json:"description"`
	// OwnMuted is set if the publisher has muted the publication, OperatorMuted if an operator has.
	OwnMuted      bool `json:"own_muted,omitempty"`
	OperatorMuted bool `json:"operator_muted,omitempty"`
}

// Claim is the record of one identity at one home.
type Claim struct {
	Home        Home
	Participant Participant
	// Live is set if the participant is live and its home is not dead. Detached is set if the home is dead, or has
	// returned and its part of the room has not been compared yet.
	Live, Detached bool
	// Publications are in the order of their publication.
	Publications []Publication
}

const (
	// maxPublications limits the publications of one participant in messages. Servers allow fewer by configuration.
	maxPublications = 256
	// maxSessionBytes is the maximum length of a session. rand.Text has 26 bytes.
	maxSessionBytes = 64
)

// validate returns an error for the first field that exceeds its limit.
func (p *Participant) validate() error {
	if err := volumetric.ValidateName("participant", p.Identity); err != nil {
		return err
	}
	if p.Session == "" || len(p.Session) > maxSessionBytes {
		return fmt.Errorf("%w: session of %q has %d bytes, expected 1 to %d", ErrMessage, p.Identity, len(p.Session),
			maxSessionBytes)
	}
	return validateAttributes(fmt.Sprintf("%q", p.Identity), p.Attributes)
}

// validateAttributes returns an error if attributes exceed a limit.
func validateAttributes(owner string, attributes map[string]string) error {
	if len(attributes) > signal.MaxAttributes {
		return fmt.Errorf("%w: %s has %d attributes, expected at most %d", ErrMessage, owner, len(attributes),
			signal.MaxAttributes)
	}
	bytes := 0
	for name, value := range attributes {
		bytes += len(name) + len(value)
	}
	if bytes > signal.MaxAttributeBytes {
		return fmt.Errorf("%w: the attributes of %s have %d bytes, expected at most %d", ErrMessage, owner, bytes,
			signal.MaxAttributeBytes)
	}
	return nil
}

// equal reports whether two records are the same.
func (p *Participant) equal(other *Participant) bool {
	return p.Session == other.Session && p.Epoch == other.Epoch && p.Joined.Equal(other.Joined) &&
		p.Live == other.Live && p.Complete == other.Complete && p.Audience == other.Audience &&
		p.Permissions == other.Permissions && maps.Equal(p.Attributes, other.Attributes) &&
		(p.Number == nil) == (other.Number == nil) && (p.Number == nil || *p.Number == *other.Number)
}

// weight returns about the length of the record as JSON, in bytes. JSON writes a byte of a value as up to six.
func (p *Participant) weight() int {
	n := 250 + len(p.Identity) + len(p.Session)
	for name, value := range p.Attributes {
		n += len(name) + 6*len(value) + 6
	}
	return n
}

// equal reports whether two records are the same.
func (p *Publication) equal(other *Publication) bool { return reflect.DeepEqual(p, other) }

// weight returns about the length of the record as JSON, in bytes. A tile with all digits of its box takes 120 bytes
// besides its label.
func (p *Publication) weight() int {
	n := 400 + 130*len(p.Description.Tiles) + 120*len(p.Description.Qualities)
	for i := range p.Description.Tiles {
		n += 2 * len(p.Description.Tiles[i].Label)
	}
	return n
}

// RoomState is one node's part of the state of a room that is no participant's.
type RoomState struct {
	// Metadata is the latest metadata that the node's operators have set, at the time MetadataAt in ns since 1970.
	Metadata   map[string]string `json:"metadata,omitempty"`
	MetadataAt int64             `json:"metadata_at,omitempty"`
	// Recording is the time since which the node records the room, in ns since 1970, 0 if the node does not.
	Recording int64 `json:"recording,omitempty"`
	// Ended is set if an operator has ended a recording of the room.
	Ended bool `json:"ended,omitempty"`
}

// validate returns an error if the metadata exceeds a limit.
func (s *RoomState) validate() error { return validateAttributes("the room", s.Metadata) }

func (s *RoomState) equal(other *RoomState) bool {
	return s.MetadataAt == other.MetadataAt && s.Recording == other.Recording && s.Ended == other.Ended &&
		maps.Equal(s.Metadata, other.Metadata)
}

// weight returns about the length of the state as JSON, in bytes.
func (s *RoomState) weight() int {
	n := 100
	for name, value := range s.Metadata {
		n += len(name) + 6*len(value) + 6
	}
	return n
}

// record is the part of a room that belongs to one participant at one home. Participant and publications are shared
// with messages and events and do not change.
type record struct {
	participant  *Participant
	publications []*Publication
	// superseded is set in the journal once the participant has been reported as superseded, kicked or closed.
	superseded bool
}

func (r *record) weight() int {
	n := r.participant.weight()
	for _, p := range r.publications {
		n += p.weight()
	}
	return n
}

// find returns the index of a publication, -1 if there is none.
func (r *record) find(name string) int {
	return slices.IndexFunc(r.publications, func(p *Publication) bool { return p.Description.Name == name })
}

// content is the part of a room that belongs to one home, by identity.
type content map[string]*record

// apply applies a change and returns the difference of the weight. A change of a participant or publication that does
// not exist has no effect, and neither has one of the room's state.
func (c content) apply(change *Change) (identity string, weight int) {
	switch {
	case change.State != nil:
		return "", 0
	case change.Participant != nil:
		identity = change.Participant.Identity
		present, ok := c[identity]
		if !ok {
			c[identity] = &record{participant: change.Participant}
			return identity, change.Participant.weight()
		}
		weight = change.Participant.weight() - present.participant.weight()
		present.participant = change.Participant
	case change.Left != "":
		identity = change.Left
		if present, ok := c[identity]; ok {
			weight = -present.weight()
			delete(c, identity)
		}
	case change.Publication != nil:
		identity = change.Publisher
		present, ok := c[identity]
		if !ok {
			return identity, 0
		}
		weight = change.Publication.weight()
		if i := present.find(change.Publication.Description.Name); i >= 0 {
			weight -= present.publications[i].weight()
			present.publications = slices.Clone(present.publications)
			present.publications[i] = change.Publication
		} else if len(present.publications) < maxPublications {
			present.publications = append(slices.Clip(present.publications), change.Publication)
		} else {
			weight = 0
		}
	default:
		identity = change.Publisher
		present, ok := c[identity]
		if !ok {
			return identity, 0
		}
		if i := present.find(change.Unpublished); i >= 0 {
			weight = -present.publications[i].weight()
			present.publications = slices.Delete(slices.Clone(present.publications), i, i+1)
		}
	}
	return identity, weight
}

// changes returns the changes that create the content, in the order of identities.
func (c content) changes() []Change {
	var all []Change
	for _, identity := range slices.Sorted(maps.Keys(c)) {
		all = append(all, Change{Participant: c[identity].participant})
		for _, p := range c[identity].publications {
			all = append(all, Change{Publisher: identity, Publication: p})
		}
	}
	return all
}

// candidate is a record that competes for an identity.
type candidate struct {
	home Home
	*record
	// live is set if the participant is live and its home is not dead, detached if its mirror is detached.
	live, detached bool
	// peer is nil for a record of this node.
	peer *peer
}

// claim returns the exported form.
func (c *candidate) claim() Claim {
	claim := Claim{Home: c.home, Participant: *c.participant, Live: c.live, Detached: c.detached,
		Publications: make([]Publication, 0, len(c.publications))}
	for _, p := range c.publications {
		claim.Publications = append(claim.Publications, *p)
	}
	return claim
}

// bySession orders claims with the same session: the first wins.
func bySession(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(b.participant.Epoch, a.participant.Epoch),
		before(a.live, b.live),
		cmp.Compare(a.home.Node, b.home.Node),
		cmp.Compare(b.home.Incarnation, a.home.Incarnation),
	)
}

// byJoin orders claims with different sessions: the first wins.
func byJoin(a, b candidate) int {
	return cmp.Or(
		before(a.live, b.live),
		a.participant.Joined.Compare(b.participant.Joined),
		cmp.Compare(a.participant.Session, b.participant.Session),
	)
}

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// choose returns the index of the claim that wins, -1 if there is none. The result does not depend on the order: at
// first the best of each session is chosen, since the two rules together are not transitive.
func choose(claims []candidate) int {
	best := -1
	for i := range claims {
		if claims[i].beatenInSession(claims) {
			continue
		}
		if best < 0 || byJoin(claims[i], claims[best]) < 0 {
			best = i
		}
	}
	return best
}

// beatenInSession reports whether another claim with the same session precedes c.
func (c *candidate) beatenInSession(claims []candidate) bool {
	return slices.ContainsFunc(claims, func(other candidate) bool {
		return other.participant.Session == c.participant.Session && bySession(other, *c) < 0
	})
}

// identities returns the identities in their order.
func (c content) identities() []string { return slices.Sorted(maps.Keys(c)) }
