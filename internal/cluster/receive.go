package cluster

import (
	"fmt"
	"slices"
	"time"
)

// Receive applies a message that Decode has checked. The error wraps ErrOwn, ErrStale, ErrLimited or ErrIncompatible.
func (r *Replica) Receive(now time.Time, m *Message) error {
	if m.Node == r.self.Name {
		if m.Incarnation != r.self.Incarnation {
			r.refuse(Home{m.Node, m.Incarnation}, "another process has the name of this node")
		}
		return ErrOwn
	}
	p := r.peers[m.Node]
	switch {
	case m.Beat != nil:
		return r.receiveBeat(now, p, m)
	case p == nil || p.home.Incarnation != m.Incarnation || !p.beats():
		r.counters.Stale++
		return fmt.Errorf("%w of %q", ErrStale, m.Node)
	}
	if err := r.limit(now, p, m); err != nil {
		return err
	}
	switch {
	case m.Delta != nil:
		return r.receiveDelta(now, p, m.Delta)
	case m.Snapshot != nil:
		return r.receiveSnapshot(now, p, m.Snapshot)
	case m.Digest != nil:
		if regrouped, taken := p.takeDigest(m.Digest, r.byKey); taken {
			for _, name := range regrouped {
				r.regroupRoom(name)
			}
			r.counters.Received++
			r.check(now, p)
		}
	case m.Session != nil:
		r.emit(SessionReceived{p.home, *m.Session})
	case m.Request != nil:
		p.serveDigest = p.serveDigest || m.Request.Digest
		r.busy = true
		for _, room := range m.Request.Rooms {
			if r.rooms[room] != nil {
				p.serve[room] = true
			}
		}
	default:
		r.receiveTombstones(now, p, m.Tombstones)
	}
	return nil
}

// limit counts a message against the limits of its node and its kind.
func (r *Replica) limit(now time.Time, p *peer, m *Message) error {
	if !p.limitsOf(m).allow(now, m.size) {
		r.counters.Limited++
		return fmt.Errorf("%w of rate of %q", ErrLimited, p.home.Node)
	}
	return nil
}

// receiveBeat applies a beat. p is the present incarnation of the node, nil if it is unknown.
func (r *Replica) receiveBeat(now time.Time, p *peer, m *Message) error {
	b := m.Beat
	home := Home{m.Node, m.Incarnation}
	if b.Version < Oldest || b.Oldest > Version {
		r.refuse(home, fmt.Sprintf("its versions are %d to %d, expected one of %d to %d", b.Oldest, b.Version, Oldest,
			Version))
		r.counters.RefusedBeats++
		return ErrIncompatible
	}
	if p != nil && (m.Incarnation < p.home.Incarnation ||
		m.Incarnation == p.home.Incarnation && (p.state == stopped || b.Number <= p.latest.Number)) {
		r.counters.Stale++
		return fmt.Errorf("%w of %q", ErrStale, m.Node)
	}
	if p != nil && m.Incarnation == p.home.Incarnation {
		if err := r.limit(now, p, m); err != nil {
			return err
		}
	}
	if b.Gone {
		if p != nil && m.Incarnation == p.home.Incarnation {
			p.latest, p.beat = b, now
			r.markDead(now, p, stopped)
			r.emit(NodeLeft{p.home})
			r.detach(now, p)
		}
		return nil
	}
	if r.lost {
		r.lost = false
		r.emit(FabricReturned{})
	}
	p, err := r.peerOf(now, p, home, b)
	if err != nil {
		return err
	}
	r.counters.Beats++
	for _, name := range p.takeBeat(b, r.byKey) {
		r.regroupRoom(name)
	}
	r.receiveTombstones(now, p, m.Tombstones)
	if !p.agreed && now.Sub(p.asked) >= r.config.Retry {
		p.asked, p.askDigest, r.busy = now, true, true
	}
	r.check(now, p)
	r.settle(now, p)
	return nil
}

// peerOf returns the peer of a beat, which is created for a new incarnation, and changes its state.
func (r *Replica) peerOf(now time.Time, p *peer, home Home, b *Beat) (*peer, error) {
	if p == nil || p.home.Incarnation != home.Incarnation {
		if p == nil && len(r.peers) >= r.config.MaxNodes {
			r.counters.Limited++
			return nil, fmt.Errorf("%w: %d nodes", ErrLimited, len(r.peers))
		}
		fresh := newPeer(&r.config, home)
		fresh.latest, fresh.beat = b, now
		if p != nil {
			r.retire(now, p)
		}
		r.peers[home.Node] = fresh
		r.regroup()
		r.reorder()
		r.emit(NodeAppeared{fresh.node()})
		return fresh, nil
	}
	if now.Sub(p.beat) > r.config.Suspect/2 {
		r.counters.LateBeats++
	}
	former, state := p.latest, p.state
	p.latest, p.beat, p.state = b, now, Alive
	switch state {
	case Suspected:
		r.emit(NodeTrusted{home})
	case Dead:
		r.returned(p)
	}
	if former.Description != b.Description || former.Draining != b.Draining {
		r.emit(NodeChanged{p.node()})
	}
	return p, nil
}

// retire keeps the participants of an incarnation that a later one has ended, detached, for the resume grace.
func (r *Replica) retire(now time.Time, p *peer) {
	delete(r.peers, p.home.Node)
	r.former = append(r.former, p)
	if p.beats() {
		r.markDead(now, p, Dead)
		r.emit(NodeDead{p.home})
		r.detach(now, p)
	}
	if len(r.former) > maxFormer {
		oldest := r.former[0]
		r.former = slices.Delete(r.former, 0, 1)
		r.drop(now, oldest, LeftLost)
	}
}

// receiveTombstones adds tombstones that a node repeats. Tombstones that have expired by the clock of this node are
// ignored: another node that received one later may still repeat it.
func (r *Replica) receiveTombstones(now time.Time, p *peer, received []Tombstone) {
	for i := range received {
		t := &received[i]
		since := now
		if t.At.Before(now) {
			since = t.At
		}
		expires := since.Add(r.config.Tombstone)
		if !now.Before(expires) || !r.tombstones.add(heldTombstone{*t, p.home.Node, expires}) {
			continue
		}
		if !t.Until.IsZero() {
			r.emit(Banned{t.Room, t.Identity, t.TokenID, t.Until})
		}
		r.cover(now, t)
	}
}

// receiveDelta applies a delta if it follows the mirror's number, and requests a snapshot if one is missing.
func (r *Replica) receiveDelta(now time.Time, p *peer, d *Delta) error {
	in := r.rooms[d.Room]
	if in == nil {
		return nil
	}
	m := p.mirror(d.Room)
	if d.Sequence <= m.sequence {
		r.counters.Stale++
		return fmt.Errorf("%w of %q", ErrStale, p.home.Node)
	}
	p.unchecked[in.key] = true
	if d.Previous != 0 && d.Previous != m.sequence {
		r.counters.Gaps++
		r.request(now, p, d.Room)
		return nil
	}
	weight := 0
	for i := range d.Changes {
		weight += d.Changes[i].weight()
	}
	if p.weight+weight > r.config.MirrorBytes {
		r.counters.Limited++
		return fmt.Errorf("%w of memory of %q", ErrLimited, p.home.Node)
	}
	identities := map[string]bool{}
	if d.Previous == 0 || d.Gone {
		identities = p.replace(m, content{})
		r.setState(in, p, m, nil)
	}
	for i := range d.Changes {
		if d.Changes[i].State != nil {
			r.setState(in, p, m, d.Changes[i].State)
			continue
		}
		identity, difference := m.content.apply(&d.Changes[i])
		identities[identity] = true
		p.weight += difference
	}
	if d.Previous == 0 || d.Gone {
		r.regroupRoom(d.Room)
	}
	if own := r.journal.rooms[d.Room]; d.Previous == 0 && own.sequence > r.beaten {
		// The node has just entered the room, and no beat has told that this node has the room.
		p.serve[d.Room], r.busy = true, true
	}
	m.sequence, m.gone = d.Sequence, d.Gone
	r.refreshAll(now, in, identities, LeftItself)
	return nil
}

// receiveSnapshot adds a part of a snapshot and replaces the mirror when all parts have arrived.
func (r *Replica) receiveSnapshot(now time.Time, p *peer, s *Snapshot) error {
	in := r.rooms[s.Room]
	if in == nil {
		return nil
	}
	m := p.mirror(s.Room)
	if s.Sequence <= m.sequence {
		r.counters.Stale++
		return fmt.Errorf("%w of %q", ErrStale, p.home.Node)
	}
	weight := 0
	for i := range s.Changes {
		weight += s.Changes[i].weight()
	}
	// The parts replace the content, which therefore does not count.
	if p.weight-m.contentWeight()+weight > r.config.MirrorBytes {
		r.counters.Limited++
		return fmt.Errorf("%w of memory of %q", ErrLimited, p.home.Node)
	}
	whole, state := p.takePart(m, s)
	if whole == nil {
		return nil
	}
	r.counters.Received++
	if m.detached && m.state != nil && state != nil && m.state.equal(state) {
		// The other rooms were told that a dead node has no state.
		r.emit(RoomChanged{in.name, p.home, *state})
	}
	if !p.has(s.Room, in.key) {
		r.regroupRoom(s.Room)
	}
	m.sequence, m.gone, m.detached = s.Sequence, false, false
	p.unchecked[in.key] = true
	r.setState(in, p, m, state)
	r.refreshAll(now, in, p.replace(m, whole), LeftItself)
	return nil
}

// setState replaces a node's part of the state of a room and reports the change.
func (r *Replica) setState(in *room, p *peer, m *mirror, state *RoomState) {
	if m.state == nil && state == nil || m.state != nil && state != nil && m.state.equal(state) {
		return
	}
	p.setState(m, state)
	if state == nil {
		state = &RoomState{}
	}
	r.emit(RoomChanged{in.name, p.home, *state})
}

// request requests a snapshot of a room unless one was requested a short time ago.
func (r *Replica) request(now time.Time, p *peer, room string) {
	m := p.mirror(room)
	if now.Sub(m.asked) < r.config.Retry {
		return
	}
	m.asked, r.busy = now, true
	p.ask = append(p.ask, room)
}

// check compares mirrors with the digest of a node, and requests snapshots of those that differ.
func (r *Replica) check(now time.Time, p *peer) {
	if !p.agreed {
		return
	}
	for key := range p.unchecked {
		in := r.byKey[key]
		if in == nil {
			delete(p.unchecked, key)
			continue
		}
		sequence := p.digest[key]
		m := p.mirrors[in.name]
		switch {
		case sequence == 0 && m == nil:
			delete(p.unchecked, key)
		case sequence == 0:
			// The node has left the room, unless the mirror is later than the digest.
			if m.sequence <= p.sequence {
				delete(p.unchecked, key)
				p.dropParts(m)
				r.setState(in, p, m, nil)
				r.refreshAll(now, in, p.replace(m, content{}), LeftItself)
			}
		case m == nil || m.sequence < sequence:
			r.request(now, p, in.name)
		default:
			delete(p.unchecked, key)
			if m.detached {
				m.detached = false
				if m.state != nil {
					r.emit(RoomChanged{in.name, p.home, *m.state})
				}
				for _, identity := range m.content.identities() {
					r.refresh(now, in, identity, LeftItself)
				}
			}
		}
	}
}

// settle decides contests that awaited a beat of the node.
func (r *Replica) settle(now time.Time, p *peer) {
	for name := range p.mirrors {
		in := r.rooms[name]
		if len(in.contests) == 0 {
			continue
		}
		for identity := range in.contests {
			r.refresh(now, in, identity, LeftItself)
		}
	}
}
