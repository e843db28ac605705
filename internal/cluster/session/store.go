// Package session keeps the records of sessions: those of this node's own sessions, which it sends to the nodes that
// continue them if this node dies, and those that other nodes have sent.
//
// The keepers of a record are the other nodes of the session's room, and the first two nodes in the ranking of the
// session. A record is sent when it changes, when a keeper is added or has returned, and every minute, so that a lost
// record or a lost end of a session is repaired. A record that is not repeated for three minutes is removed, and that
// of a dead home after a grace time.
//
// A Store is stepped with an explicit now and belongs to one goroutine or is guarded by its owner.
package session

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/placement"
)

const (
	// ranked is the number of nodes of a session's ranking that keep its record.
	ranked = 2
	// refreshInterval is the time after which a record is sent again, and forgetAfter the time without one after which
	// a record of another node is removed: three refreshes.
	refreshInterval = time.Minute
	forgetAfter     = 3 * refreshInterval
	// sentRate and sentBurst limit the messages of records, 320 per second and 64 at once: the records of a node with
	// 1,000 sessions are with a new keeper after 3 s. bytesRate and bytesBurst limit their bytes: 320 records of 13 kB.
	// A session whose state changes more often than that is sent later, with its latest state. The ends of sessions,
	// which have no state, have the same limit of messages for themselves.
	sentRate, sentBurst   = 320, 64
	bytesRate, bytesBurst = 4 << 20, 1 << 20
	// checkedPerStep is the number of sessions that one Step examines: each examination ranks all nodes, in about 20 µs
	// with 50 nodes.
	checkedPerStep = 64
	// nodeBytes and nodeRecords limit the records of one node, allBytes those of all nodes: 16,384 sessions of a node
	// with 2 kB each, or 512 with the longest record.
	nodeBytes   = 32 << 20
	nodeRecords = 1 << 14
	allBytes    = 256 << 20
	// maxEnds bounds the ends of sessions that wait to be sent: as many sessions as one node keeps of this one. The
	// keepers forget the sessions beyond it after forgetAfter.
	maxEnds = nodeRecords
	// overhead is about the memory of a record besides its state, in bytes.
	overhead = 500
)

// Sending is a record with the nodes to which it is sent.
type Sending struct {
	Nodes  []string
	Record *cluster.SessionRecord
}

// Counts are the numbers of records. Dropped counts records and ends of sessions beyond a limit since the creation.
type Counts struct {
	Own, Foreign, Bytes int
	Dropped             uint64
}

// Store has the records of sessions.
type Store struct {
	self  cluster.Home
	grace time.Duration
	own   map[string]*own
	// queue are own sessions whose keepers may lack the record, in the order in which they are sent. ends are sessions
	// that have ended, in that order. ended has their last records, nil for a session that has returned.
	queue, ends []string
	ended       map[string]*Sending
	// messages and bytesSent limit the records that are sent, endings the ends: records of other sessions do not wait
	// for the end of many sessions.
	messages, bytesSent, endings *rate.Limiter

	foreign map[string]*foreign
	nodes   map[string]*kept
	bytes   int
	dropped uint64
	// swept is the time of the latest search for records to refresh or to remove.
	swept time.Time
}

// own is the record of a session of this node.
type own struct {
	record *cluster.SessionRecord
	// sent has the number of the latest record that each node was sent since the time refreshed, 0 if it was sent an
	// earlier one.
	sent map[string]uint64
	// keepers are nil if they must be determined. next is the node to which the session moves, which is a keeper, too.
	keepers   []string
	next      string
	refreshed time.Time
	queued    bool
}

// foreign is the record of a session of another node.
type foreign struct {
	home    cluster.Home
	record  cluster.SessionRecord
	expires time.Time
}

// kept counts the records of one node.
type kept struct{ records, bytes int }

// New returns a store without records. grace is the time for which the records of a dead node are kept.
func New(self cluster.Home, grace time.Duration) *Store {
	return &Store{self: self, grace: grace, own: map[string]*own{}, ended: map[string]*Sending{},
		foreign: map[string]*foreign{}, nodes: map[string]*kept{}, messages: rate.NewLimiter(sentRate, sentBurst),
		bytesSent: rate.NewLimiter(bytesRate, bytesBurst), endings: rate.NewLimiter(sentRate, sentBurst)}
}

// Set replaces the record of a session of this node. Set gives the record its number.
func (s *Store) Set(record cluster.SessionRecord) {
	o := s.own[record.Session]
	if o == nil {
		o = &own{sent: map[string]uint64{}, record: &cluster.SessionRecord{}}
		if end := s.ended[record.Session]; end != nil {
			// The end must not follow the record of a session that has returned. The nodes have an earlier record, and
			// receive the next end.
			o.record.Number = end.Record.Number
			for _, node := range end.Nodes {
				o.sent[node] = 0
			}
			s.ended[record.Session] = nil
		}
		s.own[record.Session] = o
	}
	record.Number, record.Ended = o.record.Number+1, false
	o.record = &record
	s.enqueue(record.Session, o)
}

func (s *Store) enqueue(session string, o *own) {
	if !o.queued {
		o.queued = true
		s.queue = append(s.queue, session)
	}
}

// End removes the record of a session of this node, at its keepers too.
func (s *Store) End(session string) {
	o := s.own[session]
	if o == nil {
		return
	}
	end := *o.record
	end.Number, end.State, end.Ended = end.Number+1, nil, true
	if len(o.sent) > 0 {
		if _, queued := s.ended[session]; !queued {
			if len(s.ends) == maxEnds && s.takeEnd() != nil {
				s.dropped++
			}
			s.ends = append(s.ends, session)
		}
		s.ended[session] = &Sending{slices.Sorted(maps.Keys(o.sent)), &end}
	}
	delete(s.own, session)
}

// takeEnd removes the first of the sessions that have ended, and returns its last record, nil if the session
// has returned.
func (s *Store) takeEnd() *Sending {
	session := s.ends[0]
	end := s.ended[session]
	delete(s.ended, session)
	s.ends = s.ends[1:]
	return end
}

// Release removes the record of a session that has continued at another node, unless the session has returned with a
// later epoch. That node's record replaces it at the keepers.
func (s *Store) Release(session string, epoch uint64) {
	if o := s.own[session]; o != nil && o.record.Epoch <= epoch {
		delete(s.own, session)
	}
}

// Share returns the record of a session of this node for the node to which the session moves. The node receives the
// later records, too. Share returns false if the node has been sent the present record.
func (s *Store) Share(session, node string) (Sending, bool) {
	o := s.own[session]
	if o == nil || node == s.self.Node {
		return Sending{}, false
	}
	o.next, o.keepers = node, nil
	if o.sent[node] == o.record.Number {
		return Sending{}, false
	}
	o.sent[node] = o.record.Number
	return Sending{[]string{node}, o.record}, true
}

// Receive adds a record of another node. A record replaces those of a lower epoch, and earlier ones of its home. At the
// same epoch, which two nodes have that adopt a session at the same time, the home with the lower name prevails.
func (s *Store) Receive(now time.Time, home cluster.Home, record cluster.SessionRecord) {
	if f := s.foreign[record.Session]; f != nil {
		same := f.home == home
		if record.Epoch < f.record.Epoch || record.Epoch == f.record.Epoch &&
			(same && record.Number < f.record.Number || !same && home.Node > f.home.Node) {
			return
		}
		s.remove(record.Session, f)
	}
	if record.Ended {
		return
	}
	k := s.nodes[home.Node]
	if k == nil {
		k = &kept{}
	}
	size := overhead + len(record.State)
	if k.records >= nodeRecords || k.bytes+size > nodeBytes || s.bytes+size > allBytes {
		s.dropped++
		return
	}
	s.nodes[home.Node] = k
	k.records++
	k.bytes += size
	s.bytes += size
	s.foreign[record.Session] = &foreign{home, record, now.Add(forgetAfter)}
}

func (s *Store) remove(session string, f *foreign) {
	delete(s.foreign, session)
	size := overhead + len(f.record.State)
	s.bytes -= size
	k := s.nodes[f.home.Node]
	k.records--
	if k.bytes -= size; k.records == 0 {
		delete(s.nodes, f.home.Node)
	}
}

// Get returns the record of a session with the highest epoch, and its home. The caller does not change the record.
func (s *Store) Get(session string) (cluster.Home, cluster.SessionRecord, bool) {
	f, o := s.foreign[session], s.own[session]
	switch {
	case o != nil && (f == nil || o.record.Epoch >= f.record.Epoch):
		return s.self, *o.record, true
	case f != nil:
		return f.home, f.record, true
	default:
		return cluster.Home{}, cluster.SessionRecord{}, false
	}
}

// Lost reports that an incarnation of a node is dead or has stopped: its records expire. Returned reports that the node
// is there, or is there again: its records stay, and it receives those of this node.
func (s *Store) Lost(now time.Time, home cluster.Home) {
	for _, f := range s.foreign {
		if f.home == home {
			f.expires = now.Add(s.grace)
		}
	}
}

// Returned is the opposite of Lost.
func (s *Store) Returned(now time.Time, home cluster.Home) {
	for _, f := range s.foreign {
		if f.home == home {
			f.expires = now.Add(forgetAfter)
		}
	}
	for session, o := range s.own {
		if _, known := o.sent[home.Node]; known {
			o.sent[home.Node] = 0
		}
		s.enqueue(session, o)
	}
}

// Check makes the next steps compare the keepers of all sessions: nodes have appeared, died or begun to drain.
func (s *Store) Check() {
	for session, o := range s.own {
		o.keepers = nil
		s.enqueue(session, o)
	}
}

// CheckRooms makes the next steps compare the keepers of the sessions in rooms that nodes have entered or left.
func (s *Store) CheckRooms(rooms []string) {
	if len(rooms) == 0 {
		return
	}
	for session, o := range s.own {
		if slices.Contains(rooms, o.record.Room) {
			o.keepers = nil
			s.enqueue(session, o)
		}
	}
}

// Step returns the records to send, as far as the limits allow. keepers returns the keepers of a session in a room.
func (s *Store) Step(now time.Time, keepers func(room, session string) []string) (sendings []Sending) {
	if now.Sub(s.swept) >= time.Second {
		s.sweep(now)
	}
	for len(s.ends) > 0 {
		if end := s.ended[s.ends[0]]; end != nil {
			if !s.endings.AllowN(now, min(len(end.Nodes), sentBurst)) {
				break
			}
			sendings = append(sendings, *end)
		}
		s.takeEnd()
	}
	for range min(checkedPerStep, len(s.queue)) {
		session := s.queue[0]
		o := s.own[session]
		if o == nil {
			s.queue = s.queue[1:]
			continue
		}
		if o.keepers == nil {
			o.keepers = s.keepersOf(o, keepers)
		}
		if next := o.lacking(); len(next.Nodes) > 0 {
			if !s.allow(now, next) {
				break
			}
			o.mark(now, next.Nodes)
			sendings = append(sendings, next)
		}
		o.queued = false
		s.queue = s.queue[1:]
	}
	return sendings
}

// keepersOf returns the nodes that keep the record of an own session.
func (s *Store) keepersOf(o *own, keepers func(room, session string) []string) []string {
	nodes := keepers(o.record.Room, o.record.Session)
	if o.next != "" && !slices.Contains(nodes, o.next) {
		nodes = append(nodes, o.next)
	}
	if nodes == nil {
		nodes = []string{}
	}
	return nodes
}

// lacking returns the record with the keepers that have not been sent it.
func (o *own) lacking() Sending {
	next := Sending{Record: o.record}
	for _, node := range o.keepers {
		if o.sent[node] != o.record.Number {
			next.Nodes = append(next.Nodes, node)
		}
	}
	return next
}

// mark notes that nodes have been sent the record.
func (o *own) mark(now time.Time, nodes []string) {
	if o.refreshed.IsZero() {
		o.refreshed = now
	}
	for _, node := range nodes {
		o.sent[node] = o.record.Number
	}
}

// allow reports whether the limits allow to send a record, and counts it.
func (s *Store) allow(now time.Time, next Sending) bool {
	messages := min(len(next.Nodes), sentBurst)
	bytes := min(messages*(overhead+len(next.Record.State)), bytesBurst)
	if s.messages.TokensAt(now) < float64(messages) || s.bytesSent.TokensAt(now) < float64(bytes) {
		return false
	}
	s.messages.AllowN(now, messages)
	s.bytesSent.AllowN(now, bytes)
	return true
}

// Waiting reports whether Step has more records to send.
func (s *Store) Waiting() bool { return len(s.queue) > 0 || len(s.ends) > 0 }

// sweep prepares the refresh of own records and removes expired ones of other nodes.
func (s *Store) sweep(now time.Time) {
	s.swept = now
	for session, o := range s.own {
		if now.Sub(o.refreshed) >= refreshInterval {
			o.refreshed = now
			for node := range o.sent {
				o.sent[node] = 0
			}
			s.enqueue(session, o)
		}
	}
	for session, f := range s.foreign {
		if !now.Before(f.expires) {
			s.remove(session, f)
		}
	}
}

// Counts returns the numbers of records.
func (s *Store) Counts() Counts {
	return Counts{Own: len(s.own), Foreign: len(s.foreign), Bytes: s.bytes, Dropped: s.dropped}
}

// Keepers returns the keepers of a session: the nodes of its room, then the first two in the ranking of the session
// among all nodes. inRoom and nodes are names of nodes without the home.
func Keepers(session string, inRoom, nodes []string) []string {
	keepers := slices.Clone(inRoom)
	for _, node := range placement.Rank(session, nodes)[:min(ranked, len(nodes))] {
		if !slices.Contains(keepers, node) {
			keepers = append(keepers, node)
		}
	}
	return keepers
}
