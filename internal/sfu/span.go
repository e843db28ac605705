package sfu

import (
	"slices"
	"sync"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/pkg/signal"
)

// span connects a room to the same room on other nodes: it has the mirrors of their participants, and tells the events
// of the room's own participants. A nil span does nothing. The span belongs to the room's goroutine, except tell and
// the inbox, which are safe for concurrent use.
type span struct {
	room    *Room
	cluster Cluster
	inbox   inbox
	// mu guards ended, which is set when the node has ended the room. No event of the room follows.
	mu    sync.Mutex
	ended bool
	// mirrors are the participants of other nodes, by identity.
	mirrors map[string]*mirror
	// shared has the parts of other nodes in the state of the room.
	shared map[string]roomevent.Shared
	// ending are the feeds of former homes that have not ended.
	ending map[feed]*feedEnd
	// releasing are the participants that have moved and still have their place.
	releasing map[*participant]roomevent.Released
	unsaved   unsaved
	// traced is set while a participant wants the times of frames.
	traced bool
}

func newSpan(r *Room, c Cluster) *span {
	return &span{
		room: r, cluster: c, inbox: inbox{filled: make(chan struct{}, 1)}, mirrors: make(map[string]*mirror),
		shared:    make(map[string]roomevent.Shared),
		releasing: make(map[*participant]roomevent.Released), ending: make(map[feed]*feedEnd),
	}
}

// ready returns a channel that has an entry if there are events of other nodes.
func (s *span) ready() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.inbox.filled
}

// tell passes an event to the other nodes.
func (s *span) tell(e roomevent.Event) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.cluster.Tell(s.room.name, e)
	}
}

// exited tells that the node has ended the room. A room of the same name may follow at once.
func (s *span) exited() {
	if s == nil {
		return
	}
	s.tell(roomevent.Exited{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
}

// shown returns the mirror with an identity as others see it, nil if there is none.
func (s *span) shown(identity string) *presence.Presence {
	if s == nil {
		return nil
	}
	if m := s.mirrors[identity]; m != nil && m.shown {
		return &m.Presence
	}
	return nil
}

// checkIdentity returns an error if a mirror holds the identity of a client that joins. A live participant keeps its
// identity. The place of another one is kept for its return, and the cluster decides between both if it returns.
func (s *span) checkIdentity(q *JoinRequest) *signal.Error {
	if s.shown(q.Identity) == nil {
		return nil
	}
	m := s.mirrors[q.Identity]
	switch {
	case s.adoptable(q) != nil:
		return nil
	case m.state.Live && !m.Detached:
		return signal.Errorf(signal.CodeIdentityTaken, "%q is in the room", q.Identity)
	case !q.OwnsIdentity:
		return signal.Errorf(signal.CodeIdentityTaken, reserved, q.Identity)
	}
	return nil
}

// joined tells the join of a local participant with its publications.
func (s *span) joined(p *participant) {
	if s == nil {
		return
	}
	p.complete = p.epoch == 0
	s.tell(roomevent.Present{Participant: p.shared()})
	for _, publication := range presence.Announced(p.Publications) {
		s.published(publication)
		if p.epoch > 0 {
			// The rates of an adopted publication are known, and may not change.
			s.measured(publication)
		}
	}
	s.stateChanged(p)
}

// completed tells that all publications of a session that this node has adopted are told.
func (s *span) completed(p *participant) {
	if s != nil && !p.complete {
		p.complete = true
		s.changed(p)
	}
}

// changed tells the state of a local participant, if the participant is in the room.
func (s *span) changed(p *participant) {
	if s != nil && s.room.participants[p.Identity] == p {
		s.tell(roomevent.Present{Participant: p.shared()})
		s.stateChanged(p)
	}
}

// left tells that a local participant with publications has left. The end of the publications follows that of the
// participant, so that the clients of other nodes receive one message.
func (s *span) left(p *participant, publications []*presence.Publication, reason string) {
	if s == nil {
		return
	}
	s.tell(roomevent.Left{Identity: p.Identity, Session: p.Session, Reason: reason})
	for _, publication := range publications {
		s.unpublished(publication)
	}
}

// shared returns the state of the participant for other nodes.
func (p *participant) shared() roomevent.Participant {
	state := roomevent.Participant{
		Identity: p.Identity, Session: p.Session, Epoch: p.epoch, Joined: p.joined, Live: p.outbox != nil,
		Attributes: p.Attributes, Muted: p.Mutings(), Permissions: p.grants.permissions(), Complete: p.complete,
		Audience: p.Audience,
	}
	if p.Numbered {
		number := p.Number
		state.Number = &number
	}
	return state
}

// published tells an announced local publication.
func (s *span) published(p *presence.Publication) {
	if s == nil {
		return
	}
	if p.Description.VR2Gather {
		// The participant may have its number since this publication.
		s.changed(s.room.participants[p.Ref.Participant])
	}
	s.tell(roomevent.Published{
		Ref: p.Ref, ID: p.ID, Description: p.Description, Mute: p.Mute, Tracks: slices.Clone(p.Tracks),
	})
}

// unpublished tells the end of a local publication.
func (s *span) unpublished(p *presence.Publication) {
	if s != nil {
		s.tell(roomevent.Unpublished{Ref: p.Ref, ID: p.ID})
	}
}

// measured tells the rates of a local publication.
func (s *span) measured(p *presence.Publication) {
	if s != nil && !p.Demand.Relayed() {
		s.tell(roomevent.Rates{Ref: p.Ref, ID: p.ID, Rates: p.Levels.Measured()})
	}
}

// gaveUp tells the qualities of a local publication that its publisher cannot send.
func (s *span) gaveUp(p *presence.Publication) {
	if s != nil {
		s.tell(roomevent.GaveUp{Ref: p.Ref, ID: p.ID, Tiles: p.Levels.GaveUp()})
	}
}

// posed tells the latest pose of a local publication to a node, to all nodes if the name is empty.
func (s *span) posed(p *presence.Publication, node string) {
	if pose := p.Place.Latest(); s != nil && pose != nil && !p.Demand.Relayed() {
		s.tell(roomevent.Posed{Ref: p.Ref, Node: node, Pose: pose})
	}
}

// sent tells a data message of a local participant, or of the operator if the sender is empty, if other nodes have
// recipients. seq is the number of the message.
func (s *span) sent(sender string, m *signal.Data, seq int64) {
	if s == nil {
		return
	}
	nodes := s.nodesOf(m.To)
	if len(m.To) > 0 && len(nodes) == 0 {
		return
	}
	s.tell(roomevent.Sent{From: sender, Nodes: nodes, Data: &signal.Data{
		Seq: seq, To: slices.Clone(m.To), Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: slices.Clone(m.Binary),
	}})
}

// nodesOf returns the homes of the named mirrors.
func (s *span) nodesOf(names []string) (nodes []string) {
	for _, name := range names {
		if s.shown(name) != nil && !slices.Contains(nodes, s.mirrors[name].node) {
			nodes = append(nodes, s.mirrors[name].node)
		}
	}
	return nodes
}

// recipients returns the number of mirrors that receive a message for the named participants, all if there are none.
func (s *span) recipients(names []string) (n int) {
	switch {
	case s == nil:
		return 0
	case len(names) == 0:
		return s.room.present.Len() - len(s.room.participants)
	}
	for _, name := range names {
		if s.shown(name) != nil {
			n++
		}
	}
	return n
}

// take tells the demand for the publication of a mirror.
func (s *span) take(p *presence.Publication) {
	m, take := s.mirrors[p.Ref.Participant], p.Demand.Take()
	if m == nil || m.Detached {
		return
	}
	tell := func(f feed) {
		s.tell(roomevent.Take{
			Ref: f.ref, Node: f.node, ID: f.id, Tiles: take.Tiles, Near: take.Near, Parity: take.Parity,
			Trace: s.traced,
		})
	}
	if d := m.find(p.Ref.Publication); d != nil && d.bound {
		tell(m.feed(d))
	}
	for f := range s.ending {
		if f.ref == p.Ref {
			tell(f)
		}
	}
}

// trace sets whether a participant wants the times of frames, which the homes of mirrors then tell.
func (s *span) trace(wanted bool) {
	if s == nil || s.traced == wanted {
		return
	}
	s.traced = wanted
	for _, m := range s.mirrors {
		for _, p := range m.Publications {
			if slices.ContainsFunc(p.Demand.Take().Tiles, func(set allocate.QualitySet) bool { return set != 0 }) {
				s.take(p)
			}
		}
	}
}

// hideMirror hides the mirror with the identity of a participant that joins.
func (s *span) hideMirror(identity string) {
	if s != nil && s.mirrors[identity] != nil {
		s.mirrors[identity].hide(s, "rejoined")
	}
}

// showMirror shows the mirror with the identity of a local participant that has left.
func (s *span) showMirror(identity string) {
	if s != nil && s.mirrors[identity] != nil {
		s.mirrors[identity].show(s)
	}
}

// remove ends a mirror.
func (s *span) remove(m *mirror, reason string) {
	m.hide(s, reason)
	delete(s.mirrors, m.Identity)
}

// end removes all mirrors and closes their tracks when the room ends.
func (s *span) end() {
	if s == nil {
		return
	}
	for _, m := range s.mirrors {
		for _, p := range m.Presence.Publications {
			p.Close()
			m.unbind(s, m.find(p.Ref.Publication))
		}
		m.Presence.Publications = nil
		m.shown = false
		s.room.present.Remove(&m.Presence)
	}
	clear(s.mirrors)
	for p := range s.releasing {
		p.dismiss()
	}
	clear(s.releasing)
}

// mirrorsPerPlace bounds the mirrors of a room in multiples of its places. Nodes that admit participants at the same
// time exceed the limit of the room.
const mirrorsPerPlace = 2

// mirrored returns the mirror that an event of a node is about, nil if its home is another node or if there is none.
func (s *span) mirrored(identity, node string) *mirror {
	if m := s.mirrors[identity]; m != nil && m.node == node {
		return m
	}
	return nil
}

// changedShared tells this node's part of the state of the room.
func (s *span) changedShared() {
	if s == nil {
		return
	}
	r := s.room
	e := roomevent.Shared{Metadata: r.metadata, MetadataAt: r.metadataAt}
	if r.recorder.current != nil {
		e.Recording = r.recorder.current.Since
	}
	e.Ended = r.recorder.ended
	s.tell(e)
}
