package cluster

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of received messages. The state repairs itself; the errors are for counters.
var (
	// ErrOwn reports a message of this node.
	ErrOwn = errors.New("message of this node")
	// ErrStale reports a message of an earlier incarnation, of an unknown node, or one that a later message replaces.
	ErrStale = errors.New("stale message")
	// ErrLimited reports a message beyond a limit of rate or memory.
	ErrLimited = errors.New("message beyond a limit")
	// ErrIncompatible reports a beat of a node with other versions.
	ErrIncompatible = errors.New("incompatible version")
)

// maxFormer is the maximum number of earlier incarnations whose participants are kept.
const maxFormer = 64

// Self is this node.
type Self struct {
	Name string
	// Incarnation identifies the process: the time of its start in microseconds since 1970, so that a later process has
	// a higher one.
	Incarnation uint64
	Description
}

// Validate returns an error if other nodes would refuse the messages of this node.
func (s *Self) Validate() error {
	m := Message{Node: s.Name, Incarnation: s.Incarnation, Beat: &Beat{Description: s.Description}}
	return m.validate()
}

// Replica is the state of one node: its own part of its rooms, and mirrors of the parts of others. After each call with
// a now, the user sends Messages and acts on Events, and calls Step at Wake.
type Replica struct {
	*nodes
	*views
	status Status
	// busy is set if a node has requests or replies to send.
	busy bool

	// number is that of the latest beat, beaten the number of the latest delta when the beat was sent.
	number   uint64
	beaten   uint64
	next     time.Time
	out      []Outgoing
	counters Counters
}

// New returns the state of a node without rooms. The first Step sends a beat.
func New(config Config, self Self, now time.Time) *Replica {
	n := &nodes{
		events: &events{}, config: config.withDefaults(), self: self, peers: map[string]*peer{},
		refused: map[string]uint64{}, regroupedRooms: map[string]bool{},
	}
	return &Replica{
		nodes: n, next: now,
		views: &views{nodes: n, journal: newJournal(), rooms: map[string]*room{}, byKey: map[string]*room{}},
	}
}

// SetStatus changes the status in beats. A change of Draining is sent with the next Step. Loads that are no finite
// number count as 0.
func (r *Replica) SetStatus(now time.Time, status Status) {
	for _, load := range []*float64{&status.Load, &status.JoinLoad} {
		if math.IsNaN(*load) || math.IsInf(*load, 0) {
			*load = 0
		}
	}
	if status.Draining != r.status.Draining {
		r.next = now
	}
	r.status = status
}

// Enter adds a room. The participants that other nodes have in the room are reported by events.
func (r *Replica) Enter(now time.Time, name string) error {
	if r.rooms[name] != nil {
		return nil
	}
	if err := volumetric.ValidateName("room", name); err != nil {
		return err
	}
	if len(r.rooms) >= MaxRooms {
		return fmt.Errorf("%w: %d", ErrRooms, MaxRooms)
	}
	in := &room{name: name, key: RoomKey(name), shown: map[string]shown{}, contests: map[string]time.Time{}}
	r.rooms[name], r.byKey[in.key] = in, in
	r.regroupRoom(name)
	r.journal.enter(name, in.key)
	for _, p := range r.peers {
		if p.digest[in.key] == 0 {
			continue
		}
		p.unchecked[in.key] = true
		if p.beats() {
			r.request(now, p, name)
		}
	}
	return nil
}

// Exit removes a room with this node's participants and the mirrors of others.
func (r *Replica) Exit(now time.Time, name string) {
	in := r.rooms[name]
	if in == nil {
		return
	}
	r.journal.exit(now, name)
	for _, p := range r.peers {
		p.forget(name)
		p.ask = slices.DeleteFunc(p.ask, func(asked string) bool { return asked == name })
	}
	for _, p := range r.former {
		p.forget(name)
	}
	delete(r.rooms, name)
	delete(r.byKey, in.key)
	r.regroupRoom(name)
}

// Leave removes a participant of this node. Another session with the identity is not removed. The end of an adopted
// session leaves a tombstone, since an earlier home that is cut off may have the session, too.
func (r *Replica) Leave(now time.Time, room, identity, session string) {
	l, present, err := r.local(room, identity, session)
	if err != nil {
		return
	}
	p := present.participant
	r.journal.write(l, Change{Left: identity})
	if p.Epoch > 0 && !present.superseded {
		r.addTombstone(now, Tombstone{Kind: TombstoneSession, Room: room, Identity: identity, Session: session,
			Epoch: p.Epoch, At: now})
	}
	r.refresh(now, r.rooms[room], identity, LeftItself)
}

// Kick removes a participant of a room at all nodes, and all claims of the identity that joined before now. This node
// need not have the room. until is the end of a ban for Banned at the other nodes, zero for none; token is the id of
// the token that the ban excludes, empty if this node does not know it.
func (r *Replica) Kick(now time.Time, room, identity, token string, until time.Time) {
	t := Tombstone{Kind: TombstoneKick, Room: room, Identity: identity, At: now, Until: until, TokenID: token}
	if claim, ok := r.Winner(room, identity); ok {
		t.Session = claim.Participant.Session
	}
	r.addTombstone(now, t)
}

// CloseRoom removes all participants of a room that joined before now, at all nodes. This node need not have the room.
func (r *Replica) CloseRoom(now time.Time, room string) {
	r.addTombstone(now, Tombstone{Kind: TombstoneRoom, Room: room, At: now})
}

// addTombstone adds a tombstone of this node and sends it to all.
func (r *Replica) addTombstone(now time.Time, t Tombstone) {
	if t.validate() != nil || !r.tombstones.add(heldTombstone{t, "", now.Add(r.config.Tombstone)}) {
		return
	}
	r.send(Outgoing{Message: &Message{Tombstones: []Tombstone{t}}})
	r.cover(now, &t)
}

// cover applies a tombstone to the room, if this node has it.
func (r *Replica) cover(now time.Time, t *Tombstone) {
	in := r.rooms[t.Room]
	if in == nil {
		return
	}
	if t.Kind != TombstoneRoom {
		r.refresh(now, in, t.Identity, LeftItself)
		return
	}
	r.emit(RoomClosed{in.name, t.At})
	for _, identity := range slices.Sorted(maps.Keys(in.shown)) {
		r.refresh(now, in, identity, LeftClosed)
	}
}

// Stop sends the last beat. The participants should have left before.
func (r *Replica) Stop(now time.Time) {
	r.flush(now)
	m := r.beat(now)
	m.Beat.Gone = true
	r.send(Outgoing{Message: m})
}

func (r *Replica) send(o Outgoing) {
	o.Message.Node, o.Message.Incarnation = r.self.Name, r.self.Incarnation
	r.out = append(r.out, o)
}

// beat returns the next beat. Deltas must have been flushed.
func (r *Replica) beat(now time.Time) *Message {
	r.number++
	r.beaten = r.journal.sequence
	return &Message{
		Beat: &Beat{
			Number: r.number, Version: Version, Oldest: Oldest,
			Description: r.self.Description, Status: r.status, Suspects: r.suspects(),
			Sequence: r.journal.sequence, Sum: r.journal.sum, Changed: r.journal.changed(now),
		},
		Tombstones: r.tombstones.forBeat(),
	}
}

// Step does what is due: the beat, the judgement of silent nodes, and the end of what has expired.
func (r *Replica) Step(now time.Time) {
	if lateness := now.Sub(r.next); lateness > lateIntervals*r.config.Beat {
		r.postpone(now, lateness)
	}
	r.tombstones.expire(now)
	r.checkBeats(now)
	r.forget(now)
	if now.Before(r.next) {
		return
	}
	r.flush(now)
	r.send(Outgoing{Message: r.beat(now)})
	if r.next = r.next.Add(r.config.Beat); !r.next.After(now) {
		r.next = now.Add(r.config.Beat)
	}
}

// Wake returns the time of the next Step.
func (r *Replica) Wake() time.Time {
	wake := r.next
	earlier := func(t time.Time) {
		if t.Before(wake) {
			wake = t
		}
	}
	for _, p := range r.peers {
		switch {
		case p.state == Alive:
			earlier(p.beat.Add(r.config.Suspect))
		case p.state == Suspected && p.trunk:
			earlier(p.received.Add(r.config.TrunkSilence))
		}
	}
	return wake
}

// flush queues the deltas of local writes.
func (r *Replica) flush(now time.Time) {
	for _, d := range r.journal.flush(now) {
		r.send(Outgoing{Room: d.Room, Message: &Message{Delta: d}})
	}
}

// Messages returns the messages to send: the changes of local writes since the last call, requests, and replies.
func (r *Replica) Messages(now time.Time) []Outgoing {
	r.flush(now)
	if r.busy {
		for _, p := range r.ordered {
			r.requests(p)
			r.replies(now, p)
		}
		r.busy = false
	}
	out := r.out
	r.out = nil
	return out
}

// requests queues the requests to a node.
func (r *Replica) requests(p *peer) {
	digest := p.askDigest
	rooms := p.ask
	p.askDigest, p.ask = false, nil
	for digest || len(rooms) > 0 {
		n := min(len(rooms), maxRequested)
		r.send(Outgoing{Node: p.home.Node, Message: &Message{Request: &Request{Digest: digest, Rooms: rooms[:n]}}})
		r.counters.Requested += uint64(n)
		digest, rooms = false, rooms[n:]
	}
}

// replies queues the replies to a node.
func (r *Replica) replies(now time.Time, p *peer) {
	rooms := slices.Sorted(maps.Keys(p.serve))
	if p.serveDigest {
		d := r.journal.whole()
		if p.replied.AllowN(now, 1+len(d.Rooms)*(keyDigits+8)) {
			r.counters.Served++
			r.send(Outgoing{Node: p.home.Node, Message: &Message{Digest: d}})
		}
	}
	p.serveDigest = false
	clear(p.serve)
	for _, name := range rooms {
		l := r.journal.rooms[name]
		if l == nil {
			continue
		}
		weight := 200
		for _, record := range l.content {
			weight += record.weight()
		}
		if !p.replied.AllowN(now, weight) {
			r.counters.Limited++
			continue
		}
		r.counters.Served++
		for _, s := range l.snapshot() {
			r.send(Outgoing{Node: p.home.Node, Message: &Message{Snapshot: s}})
		}
	}
}

// Shared returns the names of the nodes that are not dead and have a room with this node. The caller does not change
// the list.
func (r *Replica) Shared() []string {
	if r.shared != nil {
		return r.shared
	}
	r.shared = []string{}
	for _, p := range r.ordered {
		if !p.beats() {
			continue
		}
		for key, in := range r.byKey {
			if p.has(in.name, key) {
				r.shared = append(r.shared, p.home.Node)
				break
			}
		}
	}
	return r.shared
}

// SendSession queues a record of a session for nodes, as one message. The record does not change afterwards.
func (r *Replica) SendSession(nodes []string, record *SessionRecord) {
	m := &Message{Session: record}
	for _, node := range nodes {
		r.send(Outgoing{Node: node, Message: m})
	}
}

// Counters returns the counts since the creation.
func (r *Replica) Counters() Counters { return r.counters }

func sortedRooms(p *peer) []string { return slices.Sorted(maps.Keys(p.mirrors)) }
