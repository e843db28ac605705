package cluster

import (
	"maps"
	"time"

	"golang.org/x/time/rate"
)

// State is the state of another node in the view of this one.
type State string

// The states.
const (
	Alive     State = "alive"
	Suspected State = "suspected"
	Dead      State = "dead"
	// stopped is the state of a node that has announced its end. Late beats of its incarnation are dropped.
	stopped State = "stopped"
)

// Node is another node.
type Node struct {
	Home
	Description
	Status
	Version int
	State   State
	// Beat is the time of the latest beat.
	Beat time.Time
}

// peer is an incarnation of another node.
type peer struct {
	home   Home
	state  State
	latest *Beat
	beat   time.Time
	// deadSince is the time of the node's death or stop.
	deadSince time.Time
	// trunk is set if there is a trunk, received the time of the latest packet on it.
	trunk    bool
	received time.Time

	// digest is the node's digest at the number sequence. agreed is set if its sum is that of the latest beat.
	digest   map[string]uint64
	sum      uint64
	sequence uint64
	agreed   bool
	// mirrors are this node's copies of the rooms that both have, by the name of the room. weight is their weight.
	mirrors map[string]*mirror
	weight  int
	// unchecked are the keys of rooms whose mirror may differ from the digest.
	unchecked map[string]bool
	// asked is the time of the latest request of the digest. askDigest and ask are requests to send, serveDigest and
	// serve replies.
	asked                  time.Time
	askDigest, serveDigest bool
	ask                    []string
	serve                  map[string]bool

	// beatLimits, sessionLimits and otherLimits bound the messages of the node by kind, replied the bytes of replies.
	beatLimits, sessionLimits, otherLimits limits
	replied                                *rate.Limiter
}

// limits bound messages by number and bytes.
type limits struct{ messages, bytes *rate.Limiter }

// newLimits returns limits with rates per second.
func newLimits(messages, messageBurst, bytes, byteBurst int) limits {
	return limits{rate.NewLimiter(rate.Limit(messages), messageBurst), rate.NewLimiter(rate.Limit(bytes), byteBurst)}
}

// allow reports whether a message of a length is within the limits, and counts it.
func (l *limits) allow(now time.Time, size int) bool {
	return l.messages.AllowN(now, 1) && l.bytes.AllowN(now, size)
}

// limitsOf returns the limits of the kind of a message. Each kind has its own, so that none displaces another.
func (p *peer) limitsOf(m *Message) *limits {
	switch {
	case m.Beat != nil:
		return &p.beatLimits
	case m.Session != nil:
		return &p.sessionLimits
	default:
		return &p.otherLimits
	}
}

// mirror is the copy of one node's part of a room.
type mirror struct {
	content  content
	state    *RoomState
	sequence uint64
	// gone is set if the node has left the room with the delta of the number sequence.
	gone bool
	// detached is set while the node is dead, and after its return until the mirror has been checked.
	detached bool
	asked    time.Time
	// parts are the parts of a snapshot with the number partsOf, of which missing have not arrived.
	parts                [][]Change
	partsOf              uint64
	missing, partsWeight int
}

func newPeer(config *Config, home Home) *peer {
	return &peer{
		home: home, state: Alive,
		digest: map[string]uint64{}, mirrors: map[string]*mirror{}, unchecked: map[string]bool{},
		serve: map[string]bool{},
		beatLimits: newLimits(config.BeatRate, config.BeatBurst, config.BeatRate*MaxMessageBytes,
			config.BeatBurst*MaxMessageBytes),
		sessionLimits: newLimits(config.SessionRate, config.SessionBurst, config.SessionByteRate,
			config.SessionByteBurst),
		otherLimits: newLimits(config.MessageRate, config.MessageBurst, config.ByteRate, config.ByteBurst),
		replied:     rate.NewLimiter(rate.Limit(config.ByteRate), config.ByteBurst),
	}
}

// node returns the exported form.
func (p *peer) node() Node {
	return Node{Home: p.home, Description: p.latest.Description, Status: p.latest.Status, Version: p.latest.Version,
		State: p.state, Beat: p.beat}
}

// beats reports whether the node is not dead and has not stopped.
func (p *peer) beats() bool { return p.state == Alive || p.state == Suspected }

// has reports whether the node has a room. A delta may be later than the digest.
func (p *peer) has(room, key string) bool {
	if m := p.mirrors[room]; m != nil && m.sequence > p.sequence {
		return !m.gone
	}
	return p.digest[key] != 0
}

// takeBeat applies the numbers of a beat to the digest, and returns those of rooms, this node's rooms by key, that the
// node has entered or left.
func (p *peer) takeBeat(b *Beat, rooms map[string]*room) (regrouped []string) {
	if b.Sequence < p.sequence {
		// A reply with the whole digest has overtaken the beat.
		return nil
	}
	had := map[*room]bool{}
	for key, sequence := range b.Changed {
		if in := rooms[key]; in != nil {
			had[in] = p.has(in.name, key)
		}
		if p.digest[key] == sequence || sequence != 0 && p.digest[key] == 0 && len(p.digest) >= MaxRooms {
			continue
		}
		p.sum += entrySumOf(key, sequence) - entrySumOf(key, p.digest[key])
		if sequence == 0 {
			delete(p.digest, key)
		} else {
			p.digest[key] = sequence
		}
		if rooms[key] != nil {
			p.unchecked[key] = true
		}
	}
	p.sequence, p.agreed = b.Sequence, p.sum == b.Sum
	return p.regrouped(had)
}

// regrouped returns the names of rooms that the node has entered or left since it had them or not.
func (p *peer) regrouped(had map[*room]bool) (names []string) {
	for in, before := range had {
		if p.has(in.name, in.key) != before {
			names = append(names, in.name)
		}
	}
	return names
}

// entrySumOf returns the contribution of a room, 0 for a room that the node does not have.
func entrySumOf(key string, sequence uint64) uint64 {
	if sequence == 0 {
		return 0
	}
	return entrySum(key, sequence)
}

// takeDigest replaces the digest and reports whether it was not older than the present one. rooms are this node's rooms
// by key; takeDigest returns those that the node has entered or left.
func (p *peer) takeDigest(d *Digest, rooms map[string]*room) (regrouped []string, taken bool) {
	if d.Sequence < p.sequence || d.Sequence == p.sequence && p.agreed {
		return nil, false
	}
	had := make(map[*room]bool, len(rooms))
	for key, in := range rooms {
		had[in] = p.has(in.name, key)
		if d.Rooms[key] != p.digest[key] {
			p.unchecked[key] = true
		}
	}
	p.sum = 0
	for key, sequence := range d.Rooms {
		p.sum += entrySumOf(key, sequence)
	}
	p.digest, p.sequence, p.agreed = maps.Clone(d.Rooms), d.Sequence, true
	maps.DeleteFunc(p.digest, func(_ string, sequence uint64) bool { return sequence == 0 })
	return p.regrouped(had), true
}

// mirror returns the mirror of a room, which is created if it does not exist.
func (p *peer) mirror(room string) *mirror {
	m := p.mirrors[room]
	if m == nil {
		m = &mirror{content: content{}, detached: !p.beats()}
		p.mirrors[room] = m
	}
	return m
}

// forget removes the mirror of a room.
func (p *peer) forget(room string) {
	if m := p.mirrors[room]; m != nil {
		p.replace(m, content{})
		p.setState(m, nil)
		p.dropParts(m)
		delete(p.mirrors, room)
	}
}

// replace replaces the content of a mirror and returns the identities that may have changed.
func (p *peer) replace(m *mirror, with content) map[string]bool {
	identities := make(map[string]bool, len(m.content)+len(with))
	for identity, r := range m.content {
		identities[identity] = true
		p.weight -= r.weight()
	}
	for identity, r := range with {
		identities[identity] = true
		p.weight += r.weight()
	}
	m.content = with
	return identities
}

// contentWeight returns the weight of the content of a mirror.
func (m *mirror) contentWeight() int {
	n := 0
	for _, r := range m.content {
		n += r.weight()
	}
	return n
}

// setState replaces the node's part of the room's state.
func (p *peer) setState(m *mirror, state *RoomState) {
	if m.state != nil {
		p.weight -= m.state.weight()
	}
	if m.state = state; state != nil {
		p.weight += state.weight()
	}
}

// dropParts drops the parts of a snapshot that is not complete.
func (p *peer) dropParts(m *mirror) {
	p.weight -= m.partsWeight
	m.parts, m.partsOf, m.missing, m.partsWeight = nil, 0, 0, 0
}

// takePart adds a part of a snapshot. takePart returns the content and the state of the room when all parts have
// arrived, and otherwise no content.
func (p *peer) takePart(m *mirror, s *Snapshot) (content, *RoomState) {
	if s.Sequence < m.partsOf {
		return nil, nil
	}
	if s.Sequence != m.partsOf || len(m.parts) != s.Parts {
		p.dropParts(m)
		m.parts, m.partsOf, m.missing = make([][]Change, s.Parts), s.Sequence, s.Parts
	}
	if m.parts[s.Part] != nil {
		return nil, nil
	}
	m.parts[s.Part] = append([]Change{}, s.Changes...)
	m.missing--
	for i := range s.Changes {
		m.partsWeight += s.Changes[i].weight()
		p.weight += s.Changes[i].weight()
	}
	if m.missing > 0 {
		return nil, nil
	}
	whole, state := content{}, (*RoomState)(nil)
	for _, changes := range m.parts {
		for i := range changes {
			if changes[i].State != nil {
				state = changes[i].State
			}
			whole.apply(&changes[i])
		}
	}
	p.dropParts(m)
	return whole, state
}
