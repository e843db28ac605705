package sfu

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// inboxLimit is the number of events of other nodes that may wait for a room: the participants and publications of
	// a full room, several times. Above inboxLossy, poses and lossy data messages are dropped.
	inboxLimit = 4096
	inboxLossy = inboxLimit / 2
	// eventsPerTurn is the number of events of other nodes that a room applies between two requests: some milliseconds
	// of work in a room of 100, so that requests of its own clients do not wait longer.
	eventsPerTurn = 64
)

// inbox has the events of other nodes that wait for the room's goroutine. The methods are safe for concurrent use.
type inbox struct {
	mu     sync.Mutex
	events []remoteEvent
	// filled has an entry if there are events.
	filled chan struct{}
}

// remoteEvent is an event of a node.
type remoteEvent struct {
	node  string
	event roomevent.Event
}

// lossy reports whether an event may be dropped: a pose, which the next pose replaces, times of frames, or a lossy data
// message.
func (q remoteEvent) lossy() bool {
	switch e := q.event.(type) {
	case roomevent.Posed, roomevent.Relayed:
		return true
	case roomevent.Sent:
		return e.Data != nil && e.Data.Lossy
	}
	return false
}

// put adds an event. put reports false if the inbox has no place for the event.
func (b *inbox) put(e remoteEvent) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.events); n >= inboxLimit || n >= inboxLossy && e.lossy() {
		return false
	}
	b.events = append(b.events, e)
	b.signal()
	return true
}

// signal notes that there are events. The caller holds the mutex.
func (b *inbox) signal() {
	select {
	case b.filled <- struct{}{}:
	default:
	}
}

// take returns the next events, at most eventsPerTurn.
func (b *inbox) take() []remoteEvent {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.events), eventsPerTurn)
	events := b.events[:n:n]
	if b.events = b.events[n:]; len(b.events) == 0 {
		b.events = nil
	} else {
		b.signal()
	}
	return events
}

// remoteEvents applies the next events in the inbox.
type remoteEvents struct{}

// apply implements request.
func (remoteEvents) apply(r *Room) {
	for _, e := range r.span.inbox.take() {
		e.apply(r)
	}
}

// Remote queues an event of another node for the room, if this node has the room. Remote does not wait. If too many
// events wait, Remote drops poses and lossy data messages. For other events Remote then reports false, and they must be
// passed again. The node must have a Cluster.
func (n *Node) Remote(room, node string, e roomevent.Event) bool {
	if k, ok := e.(roomevent.Kick); ok && !k.Until.IsZero() {
		now := time.Now()
		ban := admission.Ban{Room: room, Identity: k.Identity, TokenID: k.TokenID, Until: k.Until}
		if err := n.exclusions.Ban(ban, now); err != nil {
			n.log.Warn("the ban of another node is not in force on this node", errorField(err))
		}
	}
	r, exists := n.rooms.Room(room)
	event := remoteEvent{node, e}
	switch {
	case !exists || r.span.inbox.put(event):
		return true
	case event.lossy():
		if _, data := e.(roomevent.Sent); data {
			n.losses.Queue.Add(1)
		}
		return true
	}
	return false
}

// tell passes an event of the node's operator on.
func (n *Node) tell(room string, e roomevent.Event) {
	if n.config.Cluster != nil {
		n.config.Cluster.Tell(room, e)
	}
}

// apply applies the event.
func (q remoteEvent) apply(r *Room) {
	switch e := q.event.(type) {
	case roomevent.Exited:
		q.exited(r)
	case roomevent.Present:
		q.present(r, e)
	case roomevent.Left:
		q.left(r, e)
	case roomevent.Detached:
		q.detached(r, e)
	case roomevent.Published:
		q.published(r, e)
	case roomevent.Unpublished:
		q.unpublished(r, e)
	case roomevent.Take:
		q.taken(r, e)
	case roomevent.Rates:
		q.rates(r, e)
	case roomevent.GaveUp:
		q.gaveUp(r, e)
	case roomevent.Masked:
		q.masked(r, e)
	case roomevent.Relayed:
		q.relayed(r, e)
	case roomevent.Posed:
		q.posed(r, e)
	case roomevent.Sent:
		q.sent(r, e)
	case roomevent.Operate:
		q.operate(r, e)
	case roomevent.Shared:
		q.shared(r, e)
	case roomevent.Superseded:
		q.superseded(r, e)
	case roomevent.Kick:
		q.kick(r, e)
	case roomevent.Close:
		q.closed(r, e)
	case roomevent.Entered, roomevent.Released, roomevent.SessionState, roomevent.Mirrored, roomevent.Unmirrored:
		// These events are for the nodes, their trunks and their entries, and have no effect on a room.
	default:
		panic(fmt.Sprintf("room events are the values of package roomevent, and %T has no effect", e))
	}
}

func (q remoteEvent) exited(r *Room) {
	for _, p := range r.participants {
		for _, publication := range p.Publications {
			publication.Demand.SetTake(q.node, demand.Take{})
		}
	}
}

func (q remoteEvent) present(r *Room, e roomevent.Present) {
	s := r.span
	if p := r.participants[e.Identity]; p != nil && p.Session == e.Session {
		if e.Epoch > p.epoch {
			s.release(p, q.node, e.Participant)
			s.mirrors[e.Identity].presented = true
		}
		return
	}
	m := s.mirrors[e.Identity]
	switch {
	case m == nil:
	case m.state.Session != e.Session:
		s.remove(m, "rejoined")
		m = nil
	case e.Epoch < m.state.Epoch:
		return
	}
	if m != nil {
		if e.Epoch > m.state.Epoch || m.node != q.node {
			m.presented = false
			for _, d := range m.remotes {
				d.former = true
			}
		}
		m.move(s, q.node)
		m.update(s, e.Participant)
		if m.presented && e.Complete {
			// All publications of the home are between two events.
			m.complete(s)
		}
		m.presented = true
		return
	}
	if limit := mirrorsPerPlace * r.node.config.ParticipantsPerRoom; len(s.mirrors) >= limit {
		r.log.Warn("a participant of another node is left out", zap.String("participant", e.Identity),
			zap.Int("limit", limit))
		return
	}
	m = &mirror{
		Presence: presence.Presence{Identity: e.Identity, Session: e.Session, Audience: e.Audience},
		node:     q.node, presented: true, offers: subscriber.NewOfferLimit(),
	}
	s.mirrors[e.Identity] = m
	m.update(s, e.Participant)
	if r.participants[e.Identity] == nil {
		m.show(s)
	}
}

func (q remoteEvent) left(r *Room, e roomevent.Left) {
	if m := r.span.mirrored(e.Identity, q.node); m != nil && m.Session == e.Session {
		r.span.remove(m, e.Reason)
	}
}

func (q remoteEvent) detached(r *Room, e roomevent.Detached) {
	if m := r.span.mirrored(e.Identity, q.node); m != nil {
		m.Detached = true
	}
}

func (q remoteEvent) published(r *Room, e roomevent.Published) {
	if m := r.span.mirrored(e.Ref.Participant, q.node); m != nil {
		m.publish(r.span, e)
	}
}

func (q remoteEvent) unpublished(r *Room, e roomevent.Unpublished) {
	m := r.span.mirrored(e.Ref.Participant, q.node)
	if m == nil {
		return
	}
	if d := m.find(e.Ref.Publication); d != nil && d.id == e.ID {
		m.unpublish(r.span, e.Ref.Publication)
	}
}

func (q remoteEvent) taken(r *Room, e roomevent.Take) {
	owner := r.participants[e.Ref.Participant]
	if owner == nil {
		return
	}
	if p := owner.Publication(e.Ref.Publication); p != nil && p.ID == e.ID {
		take := demand.Take{Tiles: e.Tiles, Near: e.Near, Parity: min(max(e.Parity, 0), signal.MaxParity)}
		if !p.Demand.HasTake(q.node) {
			// The node has received no pose of the publication.
			r.span.posed(p, q.node)
		}
		if !p.Demand.SetTake(q.node, take) {
			r.log.Warn("the demand of another node does not fit the publication", zap.String("node", q.node),
				zap.Stringer("publication", e.Ref))
		}
		r.wakeBy(r.now.Add(unwatchedInterval))
	}
}

func (q remoteEvent) rates(r *Room, e roomevent.Rates) {
	if m := r.span.mirrored(e.Ref.Participant, q.node); m != nil {
		m.rated(r, e)
	}
}

func (q remoteEvent) gaveUp(r *Room, e roomevent.GaveUp) {
	if m := r.span.mirrored(e.Ref.Participant, q.node); m != nil {
		if d := m.find(e.Ref.Publication); d.fits(e.ID, e.Tiles) {
			d.gaveUp = e.Tiles
			if m.limit(r, d) {
				r.wakeBy(r.scheduler.OffersChanged(r.now, m.offers))
			}
		}
	}
}

func (q remoteEvent) masked(r *Room, e roomevent.Masked) {
	if m := r.span.mirrored(e.Ref.Participant, q.node); m != nil {
		if d := m.find(e.Ref.Publication); d.fits(e.ID, e.Tiles) {
			d.masked = e.Tiles
			if m.limit(r, d) {
				r.scheduler.Changes.Offered++
			}
		}
	}
}

// relayed sends the times of frames in other nodes to the participants that want times.
func (q remoteEvent) relayed(r *Room, e roomevent.Relayed) {
	m := r.span.mirrored(e.Ref.Participant, q.node)
	if m == nil || !m.shown {
		return
	}
	d := m.find(e.Ref.Publication)
	if d == nil || d.id != e.ID {
		return
	}
	clock := r.node.clock()
	for _, p := range r.participants.others(nil) {
		if !p.frameTimes.Wanted {
			continue
		}
		for _, message := range clock.Relayed(p.subscriber.Slots, len(d.Qualities), &e) {
			p.send(message)
		}
	}
}

func (q remoteEvent) posed(r *Room, e roomevent.Posed) {
	if m := r.span.mirrored(e.Ref.Participant, q.node); m != nil && e.Pose != nil {
		m.pose(r, e)
	}
}

func (q remoteEvent) sent(r *Room, e roomevent.Sent) {
	losses := &r.node.losses
	if e.Data == nil || e.Data.Validate() != nil {
		losses.Invalid.Add(1)
		return
	}
	if e.From != "" {
		// A mirror that others do not see has the identity of a local participant.
		m := r.span.mirrored(e.From, q.node)
		if m == nil || !m.shown {
			losses.Sender.Add(1)
			return
		}
		if seq := e.Data.Seq; !e.Data.Lossy && seq != 0 {
			if seq <= m.received {
				// The client has repeated a message on its next home.
				return
			}
			m.received = seq
		}
	}
	recipients := r.participants.others(nil)
	if len(e.Data.To) > 0 {
		recipients = slices.DeleteFunc(recipients, func(p *participant) bool {
			return !slices.Contains(e.Data.To, p.Identity)
		})
	}
	if !r.deliveries.AllowN(r.now, len(recipients)) {
		losses.Limit.Add(uint64(len(recipients)))
		return
	}
	r.fanOut(e.From, recipients, e.Data, e.Data.Seq)
}

func (q remoteEvent) superseded(r *Room, e roomevent.Superseded) {
	switch p := r.participants[e.Identity]; {
	case p == nil || p.Session != e.Session:
	case e.Moved:
		r.span.release(p, q.node, p.shared())
	default:
		r.expel(p, e.Code, e.Reason)
	}
}

func (q remoteEvent) kick(r *Room, e roomevent.Kick) {
	if e.Identity != "" {
		removeRequest{
			identity: e.Identity, session: e.Session, code: signal.CodeKicked, reason: kickedReason, until: e.Until,
		}.remove(r)
	}
}

func (q remoteEvent) closed(r *Room, e roomevent.Close) {
	removeRequest{code: signal.CodeClosed, reason: closedReason, before: e.Before}.remove(r)
}

func (q remoteEvent) shared(r *Room, e roomevent.Shared) {
	s, before := r.span, r.recorder.active()
	if _, known := s.shared[q.node]; !known && len(s.shared) >= maxSharedNodes {
		r.log.Warn("the state of the room on another node is left out", zap.String("node", q.node),
			zap.Int("limit", maxSharedNodes))
		return
	}
	e.MetadataAt = min(e.MetadataAt, maxMetadataAt)
	if e.MetadataAt == 0 && e.Recording == 0 {
		delete(s.shared, q.node)
	} else {
		s.shared[q.node] = e
	}
	if e.MetadataAt > r.metadataAt || e.MetadataAt == r.metadataAt && larger(e.Metadata, r.metadata) {
		r.receiveMetadata(e, q.node)
	}
	r.recorder.follow(e, q.node)
	r.recorder.announce(before)
}

func (q remoteEvent) operate(r *Room, e roomevent.Operate) {
	p := r.participants[e.Identity]
	var refused *signal.Error
	switch {
	case p == nil:
		refused = signal.Errorf(signal.CodeNotFound, "there is no participant %q in the room", e.Identity)
	case e.Mute != nil:
		refused = change{room: r}.mute(p, e.Mute.Publication, e.Mute.Muted)
	case e.Permissions != nil:
		change{room: r}.permissions(p, e.Permissions)
	case e.Attributes != nil:
		refused = change{room: r}.attributes(p, e.Attributes.Attributes)
	}
	if refused != nil {
		r.log.Warn("a change by another node has no effect", zap.String("node", q.node),
			zap.String("participant", e.Identity), errorField(refused))
	}
}

const (
	// maxSharedNodes bounds the nodes whose parts of a room are kept: the nodes of the largest cluster.
	maxSharedNodes = 1024
	// maxMetadataAt bounds the times of other nodes, so that a later change has a later time.
	maxMetadataAt = 1 << 60
)

// larger decides between metadata of the same time.
func larger(a, b map[string]string) bool {
	one, _ := json.Marshal(a)
	other, _ := json.Marshal(b)
	return string(one) > string(other)
}

// receiveMetadata sets the metadata of the room, which an operator has changed on another node.
func (r *Room) receiveMetadata(e roomevent.Shared, node string) {
	metadata, _, refused := mergeAttributes("metadata", nil, e.Metadata)
	if refused != nil {
		r.log.Warn("metadata of another node is left out", zap.String("node", node), errorField(refused))
		return
	}
	r.metadata, r.metadataAt = metadata, e.MetadataAt
	r.participants.share(nil, &signal.Metadata{Metadata: metadata})
	r.recorder.current.Metadata(r.now, r.metadata)
	// A node that enters later may know only this node.
	r.span.changedShared()
}
