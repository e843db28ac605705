package cluster

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/race"
)

// TestSimulation runs 50 nodes in virtual time with lost, reordered and repeated messages, partitions and restarts.
// One second after the healing all nodes in a room have the same view of it, and each identity has one participant.
func TestSimulation(t *testing.T) {
	simulate(t, 0)
}

// TestSimulationManySeeds is TestSimulation with 40 more seeds.
func TestSimulationManySeeds(t *testing.T) {
	long.Test(t)
	race.SkipSequential(t)
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(100+seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, 100+seed)
		})
	}
}

const (
	simulatedNodes      = 50
	simulatedRooms      = 8
	simulatedIdentities = 12
	// faultsFor is the time with faults, settledAfter the time from the healing to the check.
	faultsFor    = 4 * time.Second
	settledAfter = time.Second
	// simulatedGrace is the resume grace. Restarts end restartsEnd before the healing, so that the participants of
	// incarnations that have ended are gone at the check: 650 ms until a node is suspected, 500 ms, and the grace.
	simulatedGrace = time.Second
	restartsEnd    = 2200 * time.Millisecond
)

// simulation is a cluster in virtual time.
type simulation struct {
	t      *testing.T
	random *rand.Rand
	begin  time.Time
	now    time.Time
	queue  deliveries
	nodes  []*simulatedNode
	// group is the part of the partition that each node is in.
	group  []int
	healed bool
	order  int
}

// simulatedNode is a node with the shell around its Replica: the shell closes participants as the events demand.
type simulatedNode struct {
	name        string
	replica     *Replica
	incarnation uint64
	up          bool
	// seen is the view as the events describe it, by room and identity, of remote participants.
	seen  map[string]map[string]Claim
	local map[string]map[string]Participant
}

// delivery is a message, a step or an action that is due.
type delivery struct {
	at    time.Time
	order int
	do    func()
}

type deliveries []delivery

func (d deliveries) Len() int { return len(d) }
func (d deliveries) Less(i, j int) bool {
	if d[i].at.Equal(d[j].at) {
		return d[i].order < d[j].order
	}
	return d[i].at.Before(d[j].at)
}
func (d deliveries) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deliveries) Push(x any)   { *d = append(*d, x.(delivery)) }
func (d *deliveries) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

func simulate(t *testing.T, seed uint64) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	s := &simulation{t: t, random: rand.New(rand.NewPCG(seed, 1)), begin: begin, now: begin,
		group: make([]int, simulatedNodes)}
	for i := range simulatedNodes {
		s.nodes = append(s.nodes, &simulatedNode{name: fmt.Sprintf("node%d", i)})
		s.start(i)
		s.after(100*time.Millisecond, func() { s.ping(i) })
	}
	s.after(time.Second, s.act)
	s.after(1200*time.Millisecond, s.fault)
	heal := time.Second + faultsFor
	s.after(heal, s.heal)
	s.run(heal)
	expected := s.expected()
	s.run(heal + settledAfter)
	s.check(expected)
}

func (s *simulation) after(delay time.Duration, do func()) {
	s.order++
	heap.Push(&s.queue, delivery{s.now.Add(delay), s.order, do})
}

func (s *simulation) run(until time.Duration) {
	end := s.begin.Add(until)
	for len(s.queue) > 0 && !s.queue[0].at.After(end) {
		next := heap.Pop(&s.queue).(delivery)
		s.now = next.at
		next.do()
	}
	s.now = end
}

// start starts an incarnation of a node.
func (s *simulation) start(i int) {
	n := s.nodes[i]
	n.incarnation = uint64(s.now.UnixMicro())
	n.replica = New(Config{ResumeGrace: simulatedGrace}, Self{Name: n.name, Incarnation: n.incarnation}, s.now)
	n.up, n.seen, n.local = true, map[string]map[string]Claim{}, map[string]map[string]Participant{}
	s.after(time.Duration(s.random.IntN(200))*time.Millisecond, func() { s.step(i, n.incarnation) })
}

// step steps an incarnation when it is due.
func (s *simulation) step(i int, incarnation uint64) {
	n := s.nodes[i]
	if !n.up || n.incarnation != incarnation {
		return
	}
	n.replica.Step(s.now)
	s.drain(i)
	// The goroutine of a loaded node is late by up to 10 ms.
	late := time.Duration(s.random.IntN(10)) * time.Millisecond
	s.after(max(n.replica.Wake().Sub(s.now), 0)+late, func() { s.step(i, incarnation) })
}

// ping passes the packets of the trunks of a node: nodes with a common room have a trunk.
func (s *simulation) ping(i int) {
	n := s.nodes[i]
	s.after(100*time.Millisecond, func() { s.ping(i) })
	if !n.up {
		return
	}
	for j, other := range s.nodes {
		if j == i || !other.up || s.group[i] != s.group[j] {
			continue
		}
		for name := range n.seen {
			if other.seen[name] != nil {
				other.replica.TrunkReceived(s.now, n.name, n.incarnation)
				break
			}
		}
	}
}

// drain sends a node's messages and acts on its events.
func (s *simulation) drain(i int) {
	n := s.nodes[i]
	for events := n.replica.Events(); len(events) > 0; events = n.replica.Events() {
		for _, e := range events {
			s.note(n, e)
		}
	}
	for _, out := range n.replica.Messages(s.now) {
		data, err := out.Message.Encode()
		if err != nil {
			s.t.Fatal(err)
		}
		m, err := Decode(data)
		if err != nil {
			s.t.Fatalf("%v in %s", err, data)
		}
		for j, other := range s.nodes {
			if j == i || out.Node != "" && out.Node != other.name || out.Room != "" && other.seen[out.Room] == nil {
				continue
			}
			s.transmit(i, j, m)
		}
	}
}

// transmit passes a message from one node to another.
func (s *simulation) transmit(from, to int, m *Message) {
	copies, delay := 1, 2+s.random.IntN(18)
	if !s.healed {
		switch chance := s.random.IntN(100); {
		case chance < 15:
			copies = 0
		case chance < 25:
			copies = 2
		}
		delay = 1 + s.random.IntN(80)
	}
	if s.group[from] != s.group[to] {
		copies = 0
	}
	for c := range copies {
		s.after(time.Duration(delay+37*c)*time.Millisecond, func() {
			if n := s.nodes[to]; n.up {
				_ = n.replica.Receive(s.now, m)
				s.drain(to)
			}
		})
	}
}

// note applies an event as the rooms of a node do.
func (s *simulation) note(n *simulatedNode, e Event) {
	seen := func(room, identity, session string) (map[string]Claim, Claim) {
		claim, ok := n.seen[room][identity]
		if !ok || claim.Participant.Session != session {
			s.t.Fatalf("%s: %T of %q %q, which has not joined: %+v", n.name, e, identity, session, claim)
		}
		return n.seen[room], claim
	}
	publications := func(room, identity string, change func([]Publication) []Publication) {
		claim, ok := n.seen[room][identity]
		if !ok {
			s.t.Fatalf("%s: %T of %q, which has not joined", n.name, e, identity)
		}
		claim.Publications = change(slices.Clone(claim.Publications))
		n.seen[room][identity] = claim
	}
	index := func(all []Publication, name string) int {
		return slices.IndexFunc(all, func(p Publication) bool { return p.Description.Name == name })
	}
	switch e := e.(type) {
	case ParticipantJoined:
		if present, ok := n.seen[e.Room][e.Claim.Participant.Identity]; ok {
			s.t.Fatalf("%s: %+v joined twice, present %+v", n.name, e, present)
		}
		n.seen[e.Room][e.Claim.Participant.Identity] = e.Claim
	case ParticipantChanged:
		all, claim := seen(e.Room, e.Claim.Participant.Identity, e.Claim.Participant.Session)
		claim.Participant, claim.Live = e.Claim.Participant, e.Claim.Live
		all[e.Claim.Participant.Identity] = claim
	case ParticipantDetached:
		all, claim := seen(e.Room, e.Claim.Participant.Identity, e.Claim.Participant.Session)
		claim.Live, claim.Detached = false, true
		all[e.Claim.Participant.Identity] = claim
	case ParticipantBack:
		all, claim := seen(e.Room, e.Claim.Participant.Identity, e.Claim.Participant.Session)
		claim.Live, claim.Detached = e.Claim.Live, false
		all[e.Claim.Participant.Identity] = claim
	case ParticipantMoved:
		all, claim := seen(e.Room, e.Claim.Participant.Identity, e.Claim.Participant.Session)
		if claim.Home != e.From {
			s.t.Fatalf("%s: moved from %v, was at %v", n.name, e.From, claim.Home)
		}
		all[e.Claim.Participant.Identity] = e.Claim
	case ParticipantLeft:
		all, _ := seen(e.Room, e.Identity, e.Session)
		delete(all, e.Identity)
	case PublicationAdded:
		publications(e.Room, e.Ref.Participant, func(all []Publication) []Publication {
			if index(all, e.Ref.Publication) >= 0 {
				s.t.Fatalf("%s: %v added twice", n.name, e.Ref)
			}
			return append(all, e.Publication)
		})
	case PublicationChanged:
		publications(e.Room, e.Ref.Participant, func(all []Publication) []Publication {
			all[index(all, e.Ref.Publication)] = e.Publication
			return all
		})
	case PublicationRemoved:
		publications(e.Room, e.Ref.Participant, func(all []Publication) []Publication {
			i := index(all, e.Ref.Publication)
			return slices.Delete(all, i, i+1)
		})
	case Superseded:
		s.close(n, e.Room, e.Identity, e.Session)
	case Kicked:
		s.close(n, e.Room, e.Identity, e.Session)
	}
}

// close closes a participant of a node, as the rooms do.
func (s *simulation) close(n *simulatedNode, room, identity, session string) {
	if p, ok := n.local[room][identity]; ok && p.Session == session {
		delete(n.local[room], identity)
		n.replica.Leave(s.now, room, identity, session)
	}
}

// act does something as a client or operator, every 10 ms until the healing.
func (s *simulation) act() {
	if s.healed {
		return
	}
	s.after(10*time.Millisecond, s.act)
	i := s.random.IntN(len(s.nodes))
	n := s.nodes[i]
	if !n.up {
		return
	}
	// The rooms know the events of trunks before they act.
	s.drain(i)
	room := fmt.Sprintf("room%d", s.random.IntN(simulatedRooms))
	identity := fmt.Sprintf("user%d", s.random.IntN(simulatedIdentities))
	if n.seen[room] == nil {
		if err := n.replica.Enter(s.now, room); err != nil {
			s.t.Fatal(err)
		}
		n.seen[room], n.local[room] = map[string]Claim{}, map[string]Participant{}
	}
	p, here := n.local[room][identity]
	switch chance := s.random.IntN(100); {
	case !here:
		s.join(n, room, identity)
	case chance < 15:
		s.close(n, room, identity, p.Session)
	case chance < 25:
		p.Live = !p.Live
		n.local[room][identity] = p
		s.must(n.replica.Change(s.now, room, p))
	case chance < 35:
		p.Attributes = map[string]string{"n": fmt.Sprint(s.random.IntN(100))}
		n.local[room][identity] = p
		s.must(n.replica.Change(s.now, room, p))
	case chance < 60:
		body := bodyOf(fmt.Sprintf("body%d", s.random.IntN(3)), uint64(s.order))
		body.OwnMuted = chance < 45
		s.must(n.replica.Publish(s.now, room, identity, body))
	case chance < 75:
		n.replica.Unpublish(s.now, room, identity, fmt.Sprintf("body%d", s.random.IntN(3)))
	case chance < 78:
		n.replica.Kick(s.now, room, identity, "", time.Time{})
	case chance < 79:
		n.replica.CloseRoom(s.now, room)
	case chance < 81:
		for _, p := range n.local[room] {
			s.close(n, room, p.Identity, p.Session)
		}
		s.drain(i)
		n.replica.Exit(s.now, room)
		delete(n.seen, room)
		delete(n.local, room)
	}
	s.drain(i)
}

// join joins a client as a room does: an identity that is live in the view of the node is taken, a session of a
// detached one is adopted or replaced.
func (s *simulation) join(n *simulatedNode, room, identity string) {
	p := Participant{Identity: identity, Session: fmt.Sprintf("session%d", s.order), Joined: s.now, Live: true,
		Permissions: signal.Permissions{Publish: true}}
	remote, taken := n.seen[room][identity]
	if taken && remote.Live && s.random.IntN(4) > 0 {
		return
	}
	if taken && s.random.IntN(2) == 0 {
		p.Session, p.Epoch, p.Joined = remote.Participant.Session, remote.Participant.Epoch+1, remote.Participant.Joined
		delete(n.seen[room], identity)
	}
	if err := n.replica.Join(s.now, room, p); err != nil {
		// A tombstone covers the adopted session.
		if taken {
			n.seen[room][identity] = remote
		}
		return
	}
	n.local[room][identity] = p
	s.must(n.replica.Publish(s.now, room, identity, bodyOf("body0", uint64(s.order))))
}

func (s *simulation) must(err error) {
	if err != nil {
		s.t.Fatal(err)
	}
}

// fault begins a partition or a restart, every 250 ms until the healing.
func (s *simulation) fault() {
	if s.healed {
		return
	}
	s.after(250*time.Millisecond, s.fault)
	left := s.begin.Add(time.Second + faultsFor).Sub(s.now)
	switch s.random.IntN(3) {
	case 0:
		// One to three parts, so that a partition also ends before the healing.
		parts := 1 + s.random.IntN(3)
		for i := range s.group {
			s.group[i] = s.random.IntN(parts)
		}
	case 1:
		// One node is cut off.
		s.group[s.random.IntN(len(s.group))] = 10 + s.random.IntN(10)
	case 2:
		i := s.random.IntN(len(s.nodes))
		if left < restartsEnd+time.Second || !s.nodes[i].up {
			return
		}
		s.nodes[i].up = false
		s.after(time.Duration(s.random.IntN(1000))*time.Millisecond, func() { s.start(i) })
	}
}

func (s *simulation) heal() {
	s.healed = true
	clear(s.group)
}

// expected returns the identities of each room that must have one participant after the healing: those with a
// participant at any node that no tombstone of any node covers.
func (s *simulation) expected() map[string]bool {
	expected := map[string]bool{}
	for _, n := range s.nodes {
		for room, participants := range n.local {
			for identity, p := range participants {
				if !slices.ContainsFunc(s.nodes, func(other *simulatedNode) bool {
					return other.replica.tombstones.covering(room, &p) != nil
				}) {
					expected[room+" "+identity] = true
				}
			}
		}
	}
	return expected
}

// check compares the views of all nodes.
func (s *simulation) check(expected map[string]bool) {
	homes := map[string][]string{}
	for _, n := range s.nodes {
		for room, participants := range n.local {
			for identity := range participants {
				homes[room+" "+identity] = append(homes[room+" "+identity], n.name)
			}
		}
	}
	for key, names := range homes {
		if len(names) != 1 || !expected[key] {
			s.t.Errorf("%s is at %v, expected one node, before the healing: %v", key, names, expected[key])
		}
	}
	for key := range expected {
		if len(homes[key]) == 0 {
			s.t.Errorf("%s is at no node, expected one", key)
		}
	}
	for i := range simulatedRooms {
		room := fmt.Sprintf("room%d", i)
		var reference []Claim
		var from string
		for _, n := range s.nodes {
			if n.seen[room] == nil {
				continue
			}
			view := n.replica.View(room)
			s.checkSeen(n, room, view)
			if from == "" {
				reference, from = view, n.name
			} else if !reflect.DeepEqual(view, reference) {
				s.t.Errorf("%s: view of %s:\n%v\nview of %s:\n%v", room, from, describe(reference, view), n.name,
					describe(view, reference))
			}
		}
		if got, want := len(reference), countIn(homes, room); from != "" && got != want {
			s.t.Errorf("%s: %d participants in the view of %s, expected %d", room, got, from, want)
		}
	}
}

// checkSeen compares a view with the one that the events describe.
func (s *simulation) checkSeen(n *simulatedNode, room string, view []Claim) {
	remote := map[string]Claim{}
	for _, c := range view {
		if c.Home.Node != n.name {
			remote[c.Participant.Identity] = c
		}
	}
	for identity := range remote {
		got, want := n.seen[room][identity], remote[identity]
		order := func(a, b Publication) int { return int(a.ID) - int(b.ID) }
		slices.SortFunc(got.Publications, order)
		want.Publications = slices.SortedFunc(slices.Values(want.Publications), order)
		same := slices.EqualFunc(got.Publications, want.Publications,
			func(a, b Publication) bool { return reflect.DeepEqual(a, b) })
		got.Publications, want.Publications = nil, nil
		if !same || !reflect.DeepEqual(got, want) {
			s.t.Errorf("%s: events describe %q as\n%+v, the view has\n%+v", n.name, identity, got, want)
		}
	}
	if len(n.seen[room]) != len(remote) {
		s.t.Errorf("%s: events describe %v, the view has %v", n.name, slices.Sorted(maps.Keys(n.seen[room])),
			slices.Sorted(maps.Keys(remote)))
	}
}

func countIn(homes map[string][]string, room string) int {
	count := 0
	for key := range homes {
		if len(key) > len(room) && key[:len(room)+1] == room+" " {
			count++
		}
	}
	return count
}

// describe describes the claims of a view that are not in another.
func describe(view, other []Claim) (lines []string) {
	for _, c := range view {
		if slices.ContainsFunc(other, func(o Claim) bool { return reflect.DeepEqual(c, o) }) {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s at %s/%d session %s epoch %d live %v, %d publications\n",
			c.Participant.Identity, c.Home.Node, c.Home.Incarnation, c.Participant.Session, c.Participant.Epoch, c.Live,
			len(c.Publications)))
	}
	return lines
}
