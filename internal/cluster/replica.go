package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of local writes.
var (
	ErrRoom   = errors.New("the node has not entered the room")
	ErrRooms  = errors.New("the node has the maximum number of rooms")
	ErrKicked = errors.New("the participant was removed")
	ErrEnded  = errors.New("the session has ended")
	ErrPlace  = errors.New("the participant is not in the room")
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
	config Config
	self   Self
	status Status

	journal    journal
	tombstones tombstones
	rooms      map[string]*room
	byKey      map[string]*room
	// peers are the present incarnations of the other nodes, ordered the same in the order of names.
	peers   map[string]*peer
	ordered []*peer
	// former are earlier incarnations, which are dead.
	former []*peer
	// refused has the latest incarnation of each refused node.
	refused map[string]uint64
	// shared are the names of the nodes that have a room with this one, nil if they must be computed.
	shared []string
	// regroupedRooms are rooms whose nodes have changed since the last Regrouped, regrouped is set if nodes have
	// appeared, died or returned.
	regroupedRooms map[string]bool
	regrouped      bool
	// lost is set while no node beats.
	lost bool
	// busy is set if a node has requests or replies to send.
	busy bool

	// number is that of the latest beat, beaten the number of the latest delta when the beat was sent.
	number   uint64
	beaten   uint64
	next     time.Time
	out      []Outgoing
	events   []Event
	counters Counters
}

// New returns the state of a node without rooms. The first Step sends a beat.
func New(config Config, self Self, now time.Time) *Replica {
	return &Replica{
		config: config.withDefaults(), self: self, journal: newJournal(),
		rooms: map[string]*room{}, byKey: map[string]*room{}, peers: map[string]*peer{},
		refused: map[string]uint64{}, regroupedRooms: map[string]bool{}, next: now,
	}
}

// reorder sorts the nodes after one was added or removed.
func (r *Replica) reorder() {
	r.ordered = slices.SortedFunc(maps.Values(r.peers), func(a, b *peer) int {
		return cmp.Compare(a.home.Node, b.home.Node)
	})
}

func (r *Replica) home() Home { return Home{r.self.Name, r.self.Incarnation} }

func (r *Replica) emit(e Event) { r.events = append(r.events, e) }

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

// regroup notes that a node has appeared, died or returned.
func (r *Replica) regroup() { r.shared, r.regrouped = nil, true }

// regroupRoom notes that a node has entered or left a room.
func (r *Replica) regroupRoom(name string) {
	r.shared = nil
	r.regroupedRooms[name] = true
}

// Regrouped returns the rooms whose nodes have changed since the last call, and reports whether nodes have appeared,
// died or returned.
func (r *Replica) Regrouped() (rooms []string, nodes bool) {
	rooms, nodes = slices.Sorted(maps.Keys(r.regroupedRooms)), r.regrouped
	clear(r.regroupedRooms)
	r.regrouped = false
	return rooms, nodes
}

// SetRoomState replaces this node's part of the state of a room that the node has entered. The error wraps ErrRoom.
func (r *Replica) SetRoomState(room string, state RoomState) error {
	l := r.journal.rooms[room]
	if l == nil {
		return fmt.Errorf("%w: %q", ErrRoom, room)
	}
	if err := state.validate(); err != nil {
		return err
	}
	if l.state == nil || !l.state.equal(&state) {
		r.journal.write(l, Change{State: &state})
	}
	return nil
}

// Join adds a participant of this node, without publications. It replaces the node's present record of the identity.
// The error wraps ErrRoom, or ErrKicked or ErrEnded if a tombstone covers the participant.
func (r *Replica) Join(now time.Time, room string, p Participant) error {
	l, in := r.journal.rooms[room], r.rooms[room]
	if l == nil {
		return fmt.Errorf("%w: %q", ErrRoom, room)
	}
	if err := p.validate(); err != nil {
		return err
	}
	if t := r.tombstones.covering(room, &p); t != nil {
		err := ErrKicked
		if t.Kind == TombstoneSession {
			err = ErrEnded
		}
		return fmt.Errorf("%w: %q in %q", err, p.Identity, room)
	}
	if l.content[p.Identity] != nil {
		r.journal.write(l, Change{Left: p.Identity})
	}
	r.journal.write(l, Change{Participant: &p})
	r.refresh(now, in, p.Identity, LeftItself)
	return nil
}

// local returns the log of a room and the record of a participant of this node with the session, or an error.
func (r *Replica) local(room, identity, session string) (*log, *record, error) {
	l := r.journal.rooms[room]
	if l == nil {
		return nil, nil, fmt.Errorf("%w: %q", ErrRoom, room)
	}
	present := l.content[identity]
	if present == nil || session != "" && present.participant.Session != session {
		return nil, nil, fmt.Errorf("%w: %q in %q", ErrPlace, identity, room)
	}
	return l, present, nil
}

// Change changes the record of a participant of this node. A session that returns from another node, with a higher
// epoch, joins again without publications, also if this node has not received the claim of the other node. The error wraps ErrRoom, or ErrPlace if the node has no participant with
// this identity and session.
func (r *Replica) Change(now time.Time, room string, p Participant) error {
	l, present, err := r.local(room, p.Identity, p.Session)
	if err == nil {
		err = p.validate()
	}
	if err != nil {
		return err
	}
	if p.Epoch > present.participant.Epoch {
		return r.Join(now, room, p)
	}
	r.journal.write(l, Change{Participant: &p})
	r.refresh(now, r.rooms[room], p.Identity, LeftItself)
	return nil
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

// Publish adds a publication of a participant of this node, or changes the one with the same name. The errors are those
// of Change.
func (r *Replica) Publish(now time.Time, room, identity string, p Publication) error {
	l, _, err := r.local(room, identity, "")
	if err == nil {
		err = p.Description.Validate()
	}
	if err != nil {
		return err
	}
	r.journal.write(l, Change{Publisher: identity, Publication: &p})
	r.refresh(now, r.rooms[room], identity, LeftItself)
	return nil
}

// Publications returns the publications of a participant of this node, whichever claim has the identity.
func (r *Replica) Publications(room, identity, session string) []Publication {
	_, present, err := r.local(room, identity, session)
	if err != nil {
		return nil
	}
	list := make([]Publication, 0, len(present.publications))
	for _, p := range present.publications {
		list = append(list, *p)
	}
	return list
}

// Unpublish removes a publication of a participant of this node.
func (r *Replica) Unpublish(now time.Time, room, identity, name string) {
	l, present, err := r.local(room, identity, "")
	if err != nil || present.find(name) < 0 {
		return
	}
	r.journal.write(l, Change{Publisher: identity, Unpublished: name})
	r.refresh(now, r.rooms[room], identity, LeftItself)
}

// Kick removes a participant of a room at all nodes, and all claims of the identity that joined before now. This node
// need not have the room. until is the end of a ban for Banned at the other nodes, zero for none; token is the id of the
// token that the ban excludes, empty if this node does not know it.
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
	if lateness := now.Sub(r.next); lateness > late*r.config.Beat {
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
			earlier(p.heard.Add(r.config.TrunkSilence))
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

// Events returns the events since the last call.
func (r *Replica) Events() []Event {
	events := r.events
	r.events = nil
	return events
}

// Nodes returns the other nodes, in the order of names.
func (r *Replica) Nodes() []Node {
	nodes := make([]Node, 0, len(r.peers))
	for _, p := range r.ordered {
		if p.state != stopped {
			nodes = append(nodes, p.node())
		}
	}
	return nodes
}

// NodesOf returns the names of the other nodes that have a room and are not dead. This node need not have the room.
func (r *Replica) NodesOf(room string) []string {
	key := RoomKey(room)
	var names []string
	for _, p := range r.ordered {
		if p.beats() && p.has(room, key) {
			names = append(names, p.home.Node)
		}
	}
	return names
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

// Node returns another node that is not dead.
func (r *Replica) Node(name string) (Node, bool) {
	p := r.peers[name]
	if p == nil || !p.beats() {
		return Node{}, false
	}
	return p.node(), true
}

// Has reports whether this node has entered a room.
func (r *Replica) Has(room string) bool { return r.rooms[room] != nil }

// Counters returns the counts since the creation.
func (r *Replica) Counters() Counters { return r.counters }

func sortedRooms(p *peer) []string { return slices.Sorted(maps.Keys(p.mirrors)) }
