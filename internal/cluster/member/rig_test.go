package member

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/fabric"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/trunk"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/transcript"
)

// TestRules plays the transcripts: events of rooms, and what the rooms and trunks of all nodes are told. Messages
// arrive at once, and a trunk opens in the step after the first node has connected.
func TestRules(t *testing.T) {
	transcript.PlaySteps(t, "testdata/*.txt", func(t *testing.T) func([]string) string {
		r := &rig{t: t, nodes: map[string]*node{}, off: map[string]bool{}, cut: map[string]bool{}}
		return r.play
	})
}

// rig is a few members in virtual time, without sockets.
type rig struct {
	t     *testing.T
	since time.Duration
	nodes map[string]*node
	// off are the nodes without a fabric, cut the pairs of nodes between which no trunk carries anything.
	off, cut map[string]bool
	out      strings.Builder
}

// node is a member with its fakes.
type node struct {
	*Member
	rig      *rig
	messages *bus
	trunks   *host
	// full are the rooms without a place for events.
	full map[string]bool
	next time.Time
}

// bus implements Messages.
type bus struct {
	node       *node
	subscribed map[string]bool
	queue      []fabric.Message
	notify     chan struct{}
}

func (b *bus) Publish(subject string, data []byte) error {
	if b.node.rig.off[b.node.self.Name] {
		return fabric.ErrDisconnected
	}
	for name, other := range b.node.rig.nodes {
		if other != b.node && !b.node.rig.off[name] && other.messages.subscribed[subject] {
			other.messages.queue = append(other.messages.queue,
				fabric.Message{Subject: subject, Sender: b.node.self.Name, Data: data})
		}
	}
	return nil
}

func (b *bus) Subscribe(subject string) error { b.subscribed[subject] = true; return nil }
func (b *bus) Unsubscribe(subject string)     { delete(b.subscribed, subject) }
func (b *bus) Notify() <-chan struct{}        { return b.notify }
func (b *bus) Connected() bool                { return !b.node.rig.off[b.node.self.Name] }
func (b *bus) RoutePort() int                 { return 0 }
func (b *bus) Stats() fabric.Stats            { return fabric.Stats{} }
func (b *bus) Close()                         {}

func (b *bus) Messages() []fabric.Message {
	messages := b.queue
	b.queue = nil
	return messages
}

// host implements Trunks.
type host struct {
	node *node
	// wanted are the nodes that Connect named, linked the open trunks.
	wanted, linked map[string]bool
	events         []trunk.Event
	// refuse is the number of payloads that Send refuses.
	refuse int
}

func (h *host) log(format string, arguments ...any) {
	h.node.rig.log(h.node.self.Name+" trunks", format, arguments...)
}

func (h *host) Connect(node string, to netip.AddrPort) {
	h.log("connect %s at %v", node, to)
	h.wanted[node] = true
}

func (h *host) Disconnect(node string) {
	h.log("disconnect %s", node)
	delete(h.wanted, node)
	h.unlink(node, "closed by this node")
	if other := h.node.rig.nodes[node]; other != nil {
		other.trunks.unlink(h.node.self.Name, "closed by the other node")
	}
}

func (h *host) unlink(node, reason string) {
	if h.linked[node] {
		delete(h.linked, node)
		h.events = append(h.events, trunk.Unlinked{Node: node, Reason: reason})
	}
}

// link opens the trunks that one of two nodes wants, and closes those that are cut.
func (h *host) link() {
	for _, name := range slices.Sorted(maps.Keys(h.wanted)) {
		other := h.node.rig.nodes[name]
		if other == nil || h.linked[name] || h.node.rig.cut[h.node.self.Name+name] {
			continue
		}
		h.linked[name], other.trunks.linked[h.node.self.Name] = true, true
		h.events = append(h.events, trunk.Linked{Node: name})
		other.trunks.events = append(other.trunks.events, trunk.Linked{Node: h.node.self.Name})
	}
	for name := range h.linked {
		if other := h.node.rig.nodes[name]; other != nil && !h.node.rig.cut[h.node.self.Name+name] {
			h.events = append(h.events, trunk.PacketsReceived{Node: name, Incarnation: other.self.Incarnation})
		}
	}
}

func (h *host) Offer(room string, ref volumetric.PublicationRef, id uint64, qualities int, _ []*track.Track) {
	h.log("offer %s %v %d with %d qualities", room, ref, id, qualities)
}

func (h *host) Withdraw(room string, ref volumetric.PublicationRef, id uint64) {
	h.log("withdraw %s %v %d", room, ref, id)
}

func (h *host) SetRates(string, volumetric.PublicationRef, uint64, []volumetric.Bitrate)   {}
func (h *host) SetGaveUp(string, volumetric.PublicationRef, uint64, []allocate.QualitySet) {}

func (h *host) Mirror(node, room string, ref volumetric.PublicationRef, id uint64, qualities int, _ []*track.Track) {
	h.log("mirror %s %v %d of %s with %d qualities", room, ref, id, node, qualities)
}

func (h *host) Unmirror(node, room string, ref volumetric.PublicationRef, id uint64) {
	h.log("unmirror %s %v %d of %s", room, ref, id, node)
}

func (h *host) Take(node, room string, ref volumetric.PublicationRef, id uint64, d trunk.Demand) {
	if h.linked[node] {
		other := h.node.rig.nodes[node].trunks
		other.events = append(other.events,
			trunk.Took{Node: h.node.self.Name, Room: room, Ref: ref, ID: id, Tiles: d.Tiles})
	}
}

func (h *host) Send(node string, payload []byte) error {
	switch {
	case !h.linked[node]:
		return trunk.ErrUnlinked
	case h.refuse > 0:
		h.refuse--
		return trunk.ErrRate
	}
	other := h.node.rig.nodes[node].trunks
	other.events = append(other.events, trunk.Received{Node: h.node.self.Name, Payload: payload})
	return nil
}

func (h *host) Step(time.Time) []trunk.Event {
	events := h.events
	h.events = nil
	return events
}

func (h *host) Notify() <-chan struct{}  { return nil }
func (h *host) Links() []trunk.LinkState { return nil }
func (h *host) Stats() trunk.Stats       { return trunk.Stats{} }
func (h *host) Close()                   {}

// Remote implements Rooms.
func (n *node) Remote(room, from string, e roomevent.Event) bool {
	if n.full[room] {
		return false
	}
	n.rig.log(n.self.Name+" "+room, "%s", describe(from, e))
	return true
}

// describe describes an event that a room is told.
func describe(from string, e roomevent.Event) string {
	switch e := e.(type) {
	case roomevent.Present:
		text := fmt.Sprintf("present %s %s at %s", e.Identity, e.Session, from)
		if e.Epoch > 0 {
			text += fmt.Sprintf(" epoch %d", e.Epoch)
		}
		if e.Complete {
			text += " complete"
		}
		if !e.Live {
			text += " broken"
		}
		for _, m := range e.Muted {
			text += " muted " + m.Publication
		}
		return text
	case roomevent.Left:
		return fmt.Sprintf("left %s %s at %s: %s", e.Identity, e.Session, from, e.Reason)
	case roomevent.Detached:
		return fmt.Sprintf("detached %s at %s", e.Identity, from)
	case roomevent.Published:
		text := fmt.Sprintf("published %v %d at %s", e.Ref, e.ID, from)
		if e.Mute.Own {
			text += " muted"
		}
		return text
	case roomevent.Unpublished:
		return fmt.Sprintf("unpublished %v %d at %s", e.Ref, e.ID, from)
	case roomevent.Take:
		return fmt.Sprintf("%s takes %v %d: %v", from, e.Ref, e.ID, e.Tiles)
	case roomevent.Exited:
		return from + " takes nothing"
	case roomevent.Sent:
		return fmt.Sprintf("%s says %q", e.From, e.Data.Text)
	case roomevent.Posed:
		return fmt.Sprintf("pose of %v", e.Ref)
	case roomevent.Shared:
		return fmt.Sprintf("state of %s: %v", from, e.Metadata)
	case roomevent.Superseded:
		return fmt.Sprintf("superseded %s %s by %s: %s, moved %v", e.Identity, e.Session, from, e.Code, e.Moved)
	case roomevent.Kick:
		text := fmt.Sprintf("kick %s %s", e.Identity, e.Session)
		if !e.Until.IsZero() {
			text += " with a ban"
		}
		if e.TokenID != "" {
			text += " of token " + e.TokenID
		}
		return text
	case roomevent.Close:
		return "close"
	default:
		return fmt.Sprintf("%s %T", from, e)
	}
}

func (r *rig) log(where, format string, arguments ...any) {
	fmt.Fprintf(&r.out, "%d %s: %s\n", r.since.Milliseconds(), where, fmt.Sprintf(format, arguments...))
}

func (r *rig) now() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC).Add(r.since) }

// play plays a step: a node with a verb, or a verb of the whole.
func (r *rig) play(words []string) string {
	r.out.Reset()
	if n := r.nodes[words[0]]; n != nil {
		n.do(words[1], words[2:])
		r.settle()
		return r.out.String()
	}
	switch words[0] {
	case "start":
		for _, name := range words[1:] {
			r.start(name)
		}
	case "kill":
		delete(r.nodes, words[1])
		for _, other := range r.nodes {
			r.cut[other.self.Name+words[1]], r.cut[words[1]+other.self.Name] = true, true
		}
	case "fabric":
		r.off[words[1]] = words[2] == "off"
	case "trunk":
		r.cut[words[1]+words[2]], r.cut[words[2]+words[1]] = words[3] == "cut", words[3] == "cut"
	case "unlink":
		r.nodes[words[1]].trunks.unlink(words[2], "silent")
	case "pass":
		r.pass(time.Duration(r.number(words[1])) * time.Millisecond)
	default:
		r.t.Fatalf("unknown step %q", words)
	}
	r.settle()
	return r.out.String()
}

func (r *rig) number(word string) int {
	n, err := strconv.Atoi(word)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// start starts a node. Its address is of a documentation network (RFC 5737).
func (r *rig) start(name string) {
	b := &bus{subscribed: map[string]bool{}}
	o := Options{ResumeGrace: 10 * time.Second, Log: zap.NewNop()}
	n := &node{rig: r, messages: b, full: map[string]bool{}, Member: newMember(o, b, name, uint64(r.now().UnixMicro()))}
	n.processorTime = func() time.Duration { return 0 }
	b.node, n.trunks = n, &host{node: n, wanted: map[string]bool{}, linked: map[string]bool{}}
	for _, subject := range []string{subjectOfAll, subjectOfNode(name)} {
		_ = b.Subscribe(subject)
	}
	if err := n.begin(r.now(), n, n.trunks, cluster.Description{Trunk: "192.0.2.1:7883"}); err != nil {
		r.t.Fatal(err)
	}
	r.nodes[name] = n
}

// pass lets time pass in steps of 10 ms.
func (r *rig) pass(d time.Duration) {
	for end := r.since + d; r.since < end; {
		r.since += 10 * time.Millisecond
		r.settle()
	}
}

// settle steps the nodes until nothing waits.
func (r *rig) settle() {
	for _, name := range r.names() {
		r.nodes[name].trunks.link()
	}
	for again := true; again; {
		again = false
		for _, name := range r.names() {
			n := r.nodes[name]
			if len(n.messages.queue)+len(n.trunks.events)+len(n.queue.events) > 0 || !r.now().Before(n.next) {
				n.next = n.step(r.now())
				again = true
			}
		}
	}
}

func (r *rig) names() []string { return slices.Sorted(maps.Keys(r.nodes)) }

// do plays a step of one node: an event of one of its rooms, or a question.
func (n *node) do(verb string, words []string) {
	number := func(i int) uint64 { return uint64(n.rig.number(words[i])) }
	ref := func(i int) volumetric.PublicationRef {
		return volumetric.PublicationRef{Participant: words[i], Publication: words[i+1]}
	}
	switch verb {
	case "enter":
		n.Tell(words[0], roomevent.Entered{})
	case "exit":
		n.Tell(words[0], roomevent.Exited{})
	case "present":
		n.Tell(words[0], roomevent.Present{Participant: n.rig.participant(words[1:])})
	case "publish":
		n.Tell(words[0], roomevent.Published{Ref: ref(1), ID: number(3), Description: bodyOf(words[2]),
			Mute: signal.MuteState{Own: len(words) > 4}})
	case "unpublish":
		n.Tell(words[0], roomevent.Unpublished{Ref: ref(1), ID: number(3)})
	case "leave":
		n.Tell(words[0], roomevent.Left{Identity: words[1], Session: words[2], Reason: "left"})
	case "release":
		n.Tell(words[0], roomevent.Released{Identity: words[1], Session: words[2], Epoch: number(3),
			Publications: []roomevent.Unpublished{{
				Ref: volumetric.PublicationRef{Participant: words[1], Publication: "body"}, ID: number(4),
			}}})
	case "mirrored":
		n.Tell(words[0], roomevent.Mirrored{Ref: ref(1), ID: number(3), Node: words[4], Qualities: 2})
	case "takes":
		n.Tell(words[0], roomevent.Take{Ref: ref(1), ID: number(3), Node: words[4],
			Tiles: []allocate.QualitySet{allocate.QualitySet(number(5))}})
	case "says":
		data := &signal.Data{Text: words[2], Lossy: slices.Contains(words, "lossy")}
		var nodes []string
		for _, word := range words[3:] {
			if to, found := strings.CutPrefix(word, "to="); found {
				nodes = append(nodes, to)
			}
		}
		n.Tell(words[0], roomevent.Sent{From: words[1], Nodes: nodes, Data: data})
	case "poses":
		n.Tell(words[0], roomevent.Posed{Ref: ref(1), Pose: &signal.Pose{}})
	case "state":
		n.Tell(words[0], roomevent.Shared{Metadata: map[string]string{"title": words[1]}})
	case "kick":
		n.Tell(words[0], roomevent.Kick{Identity: words[1]})
	case "ban":
		k := roomevent.Kick{Identity: words[1], Until: n.rig.now().Add(time.Hour)}
		if len(words) > 2 {
			k.TokenID = words[2]
		}
		n.Tell(words[0], k)
	case "close":
		n.Tell(words[0], roomevent.Close{})
	case "record":
		n.Tell(words[0], roomevent.SessionState{Identity: words[1], Session: words[2], Epoch: number(3),
			State: []byte(strconv.Quote(words[4]))})
	case "session":
		home, state, found := n.Session(words[0], words[1])
		n.rig.log(n.self.Name, "session %s: %v, of %s at %s epoch %d state %s", words[1], found, state.Identity,
			home.Node, state.Epoch, state.State)
	case "keepers":
		n.rig.log(n.self.Name, "keepers: %v", n.Keepers(words[0], words[1], words[2]))
	case "nodes":
		n.rig.log(n.self.Name, "nodes of %s: %v", words[0], n.NodesOf(words[0]))
	case "full":
		n.full[words[0]] = words[1] == "on"
	case "refuses":
		n.trunks.refuse = int(number(0))
	case "drain":
		n.Drain()
		n.rig.log(n.self.Name, "draining %v", n.Self().Draining)
	case "lost":
		n.rig.log(n.self.Name, "lost %+v, dropped %d", n.Counts().Lost, n.Counts().Dropped)
	default:
		n.rig.t.Fatalf("unknown step %q of a node", verb)
	}
}

// participant reads IDENTITY SESSION [epoch=N] [broken] [complete] [muted=NAME] [joined=MS].
func (r *rig) participant(words []string) roomevent.Participant {
	p := roomevent.Participant{Identity: words[0], Session: words[1], Joined: r.now(), Live: true}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "epoch":
			p.Epoch = uint64(r.number(value))
		case "joined":
			p.Joined = r.now().Add(time.Duration(r.number(value))*time.Millisecond - r.since)
		case "broken":
			p.Live = false
		case "complete":
			p.Complete = true
		case "muted":
			p.Muted = append(p.Muted, signal.MuteState{Publication: value, Own: true})
		}
	}
	return p
}

func bodyOf(name string) volumetric.Publication {
	return volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: "video/volumetric", ClockRate: 90000},
		Tiles:     []volumetric.Tile{{Label: "whole", Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}}},
		Qualities: []volumetric.QualityLevel{{Name: "low", Bitrate: 1e6}, {Name: "high", Bitrate: 4e6}},
	}
}
