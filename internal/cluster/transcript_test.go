package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/transcript"
)

// TestRules plays the transcripts: the steps of several nodes, with the events that they report.
func TestRules(t *testing.T) {
	transcript.PlaySteps(t, "testdata/*.txt", func(t *testing.T) func([]string) string {
		c := &trio{t: t, nodes: map[string]*Replica{}, off: map[string]bool{}, trunks: map[string]bool{},
			stopped: map[string][]*Message{}}
		return c.play
	})
}

// trio is a few nodes whose messages arrive at once.
type trio struct {
	t     *testing.T
	since time.Duration
	nodes map[string]*Replica
	// off are the nodes without a fabric, trunks the pairs with packets on a trunk, in both orders.
	off, trunks map[string]bool
	// stopped has the messages for the nodes whose processes are stopped.
	stopped map[string][]*Message
	// lose is the number of deltas to lose. trace writes the messages other than beats to the output.
	lose  int
	trace bool
	out   strings.Builder
}

func (c *trio) now() time.Time {
	return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC).Add(c.since)
}

// play plays a step: a node with a verb, or a verb of the whole.
func (c *trio) play(words []string) string {
	c.out.Reset()
	if r := c.nodes[words[0]]; r != nil {
		c.do(r, words[1], words[2:])
		c.exchange()
		return c.out.String()
	}
	switch words[0] {
	case "start":
		for _, word := range words[1:] {
			c.nodes[word] = New(Config{}, Self{Name: word, Incarnation: uint64(c.now().UnixMicro())}, c.now())
		}
	case "kill":
		delete(c.nodes, words[1])
	case "stop":
		c.stopped[words[1]] = []*Message{}
	case "continue":
		// The timer of the node fires before its messages are read.
		r, waiting := c.nodes[words[1]], c.stopped[words[1]]
		delete(c.stopped, words[1])
		r.Step(c.now())
		for _, m := range waiting {
			_ = r.Receive(c.now(), m)
		}
	case "fabric":
		c.off[words[1]] = words[2] == "off"
	case "trunk":
		on := words[3] == "on"
		c.trunks[words[1]+words[2]], c.trunks[words[2]+words[1]] = on, on
		if words[3] == "closed" {
			c.nodes[words[1]].TrunkClosed(words[2])
			c.nodes[words[2]].TrunkClosed(words[1])
		}
	case "lose":
		c.lose = c.number(words[1])
	case "trace":
		c.trace = words[1] == "on"
	case "pass":
		c.pass(time.Duration(c.number(words[1])) * time.Millisecond)
	default:
		c.t.Fatalf("unknown step %q", words)
	}
	c.exchange()
	return c.out.String()
}

func (c *trio) number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// do plays a step of one node.
func (c *trio) do(r *Replica, verb string, words []string) {
	var err error
	switch verb {
	case "enter":
		err = r.Enter(c.now(), words[0])
	case "exit":
		r.Exit(c.now(), words[0])
	case "join":
		err = r.Join(c.now(), words[0], c.participant(words[1:]))
	case "change":
		err = r.Change(c.now(), words[0], c.participant(words[1:]))
	case "leave":
		r.Leave(c.now(), words[0], words[1], words[2])
	case "publish":
		body := bodyOf(words[2], uint64(c.number(words[3])))
		body.OwnMuted = len(words) > 4
		err = r.Publish(c.now(), words[0], words[1], body)
	case "unpublish":
		r.Unpublish(c.now(), words[0], words[1], words[2])
	case "kick":
		r.Kick(c.now(), words[0], words[1], "", time.Time{})
	case "ban":
		r.Kick(c.now(), words[0], words[1], "", c.now().Add(time.Hour))
	case "close":
		r.CloseRoom(c.now(), words[0])
	case "state":
		name, value, _ := strings.Cut(words[1], "=")
		err = r.SetRoomState(words[0], RoomState{Metadata: map[string]string{name: value}, Recording: 7})
	case "keep":
		r.SendSession(words[:1], &SessionRecord{Room: "r", Identity: "ann", Session: words[1], Number: 1})
	case "shared":
		fmt.Fprintf(&c.out, "%v\n", r.Shared())
	case "drain":
		r.SetStatus(c.now(), Status{Draining: true})
	case "stop":
		r.Stop(c.now())
	case "view":
		for _, claim := range r.View(words[0]) {
			fmt.Fprintf(&c.out, "%s\n", c.claim(claim))
		}
	case "nodes":
		for _, n := range r.Nodes() {
			fmt.Fprintf(&c.out, "%s %s\n", n.Node, n.State)
		}
		fmt.Fprintf(&c.out, "of the room: %s\n", strings.Join(r.NodesOf(words[0]), " "))
	case "receives":
		var m *Message
		if m, err = Decode([]byte(strings.Join(words, " "))); err == nil {
			err = r.Receive(c.now(), m)
		}
	default:
		c.t.Fatalf("unknown step %q of a node", verb)
	}
	if err != nil {
		fmt.Fprintf(&c.out, "error: %v\n", err)
	}
}

// participant reads IDENTITY SESSION [epoch=N] [joined=MS] [detached] [NAME=VALUE].
func (c *trio) participant(words []string) Participant {
	p := Participant{Identity: words[0], Session: words[1], Joined: c.now(), Live: true}
	for _, word := range words[2:] {
		name, value, found := strings.Cut(word, "=")
		switch {
		case word == "detached":
			p.Live = false
		case name == "epoch":
			p.Epoch = uint64(c.number(value))
		case name == "joined":
			p.Joined = c.now().Add(time.Duration(c.number(value))*time.Millisecond - c.since)
		case found:
			p.Attributes = map[string]string{name: value}
		}
	}
	return p
}

// pass lets time pass in steps of 10 ms. Trunks pass a packet in each.
func (c *trio) pass(d time.Duration) {
	for end := c.since + d; c.since < end; {
		c.since += 10 * time.Millisecond
		for _, name := range c.names() {
			r := c.nodes[name]
			if c.stopped[name] != nil {
				continue
			}
			for _, other := range c.names() {
				if c.trunks[other+name] && c.stopped[other] == nil {
					r.TrunkReceived(c.now(), other, c.nodes[other].self.Incarnation)
				}
			}
			if !c.now().Before(r.Wake()) {
				r.Step(c.now())
			}
		}
		c.exchange()
	}
}

func (c *trio) names() []string { return slices.Sorted(maps.Keys(c.nodes)) }

// exchange passes all messages until there are no more, and writes the events.
func (c *trio) exchange() {
	for again := true; again; {
		again = false
		for _, name := range c.names() {
			r := c.nodes[name]
			for _, out := range r.Messages(c.now()) {
				again = true
				c.deliver(name, out)
			}
			for _, e := range r.Events() {
				fmt.Fprintf(&c.out, "%d %s: %s\n", c.since.Milliseconds(), name, c.event(e))
			}
		}
	}
}

func (c *trio) deliver(from string, out Outgoing) {
	data, err := out.Message.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := Decode(data)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.trace && m.Beat == nil {
		fmt.Fprintf(&c.out, "%s sends %s\n", from, c.message(out))
	}
	if m.Delta != nil && c.lose > 0 {
		c.lose--
		return
	}
	for _, name := range c.names() {
		r := c.nodes[name]
		if name == from || c.off[from] || c.off[name] || out.Node != "" && out.Node != name ||
			out.Room != "" && r.rooms[out.Room] == nil {
			continue
		}
		if c.stopped[name] != nil {
			c.stopped[name] = append(c.stopped[name], m)
			continue
		}
		// The counters have the errors.
		_ = r.Receive(c.now(), m)
	}
}

func (c *trio) message(out Outgoing) string {
	to := "all"
	switch {
	case out.Room != "":
		to = "room " + out.Room
	case out.Node != "":
		to = out.Node
	}
	switch m := out.Message; {
	case m.Delta != nil:
		return fmt.Sprintf("delta %d after %d with %d changes to %s", m.Delta.Sequence, m.Delta.Previous,
			len(m.Delta.Changes), to)
	case m.Snapshot != nil:
		return fmt.Sprintf("snapshot %d with %d changes to %s", m.Snapshot.Sequence, len(m.Snapshot.Changes), to)
	case m.Digest != nil:
		return fmt.Sprintf("digest of %d rooms to %s", len(m.Digest.Rooms), to)
	case m.Request != nil:
		return fmt.Sprintf("request for %v, digest %v to %s", m.Request.Rooms, m.Request.Digest, to)
	default:
		return fmt.Sprintf("tombstone %s to %s", out.Message.Tombstones[0].Kind, to)
	}
}

func (c *trio) claim(claim Claim) string {
	p := claim.Participant
	text := fmt.Sprintf("%s %s at %s", p.Identity, p.Session, claim.Home.Node)
	if p.Epoch > 0 {
		text += fmt.Sprintf(" epoch %d", p.Epoch)
	}
	if !claim.Live {
		text += " detached"
	}
	for _, name := range slices.Sorted(maps.Keys(p.Attributes)) {
		text += " " + name + "=" + p.Attributes[name]
	}
	for _, p := range claim.Publications {
		text += " " + p.Description.Name
	}
	return text
}

func (c *trio) event(e Event) string {
	switch e := e.(type) {
	case NodeAppeared:
		return e.Node.Node + " appeared"
	case NodeChanged:
		return fmt.Sprintf("%s changed, draining %v", e.Node.Node, e.Node.Draining)
	case NodeSuspected:
		return e.Home.Node + " suspected"
	case NodeTrusted:
		return e.Home.Node + " trusted"
	case NodeDead:
		return e.Home.Node + " dead"
	case NodeReturned:
		return e.Home.Node + " returned"
	case NodeLeft:
		return e.Home.Node + " left the cluster"
	case NodeRefused:
		return e.Home.Node + " refused: " + e.Reason
	case FabricLost:
		return "fabric lost"
	case FabricReturned:
		return "fabric returned"
	case ParticipantJoined:
		return "joined " + c.claim(e.Claim)
	case ParticipantChanged:
		return "changed " + c.claim(e.Claim)
	case ParticipantDetached:
		return "detached " + c.claim(e.Claim)
	case ParticipantBack:
		return "back " + c.claim(e.Claim)
	case ParticipantMoved:
		return fmt.Sprintf("moved from %s %s", e.From.Node, c.claim(e.Claim))
	case ParticipantLeft:
		return fmt.Sprintf("left %s %s at %s: %s", e.Identity, e.Session, e.Home.Node, e.Reason)
	case PublicationAdded:
		return fmt.Sprintf("added %v, id %d", e.Ref, e.Publication.ID)
	case PublicationChanged:
		return fmt.Sprintf("changed %v, muted %v", e.Ref, e.Publication.OwnMuted)
	case PublicationRemoved:
		return fmt.Sprintf("removed %v", e.Ref)
	case Superseded:
		return fmt.Sprintf("superseded %s %s by %s: %s, moved %v", e.Identity, e.Session, e.By.Node, e.Code, e.Moved)
	case Kicked:
		return fmt.Sprintf("kicked %s %s", e.Identity, e.Session)
	case Banned:
		return fmt.Sprintf("banned %s", e.Identity)
	case RoomClosed:
		return "closed " + e.Room
	case RoomChanged:
		return fmt.Sprintf("state of %s at %s: %v, recording %d", e.Room, e.Home.Node, e.State.Metadata,
			e.State.Recording)
	case SessionReceived:
		return fmt.Sprintf("record %d of %s from %s", e.Record.Number, e.Record.Session, e.Home.Node)
	default:
		c.t.Fatalf("unknown event %T", e)
		return ""
	}
}
