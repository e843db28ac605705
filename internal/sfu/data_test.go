package sfu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/datamessage"
	"github.com/volsfu/volsfu/pkg/signal"
)

// everything is the grant of everything.
var everything = Grants{Publish: true, Subscribe: true, Data: true, Admin: true}

// enterAs adds a participant with grants to the test's room.
func enterAs(t *testing.T, n *Node, identity string, grants Grants, join signal.Join) (*Session, *shelf) {
	t.Helper()
	o := &shelf{}
	join.Version = signal.Version
	s, refused := n.Join(JoinRequest{
		Join: &join, Room: "room", Identity: identity, OwnsIdentity: true, Grants: grants, Outbox: o, At: time.Now(),
	})
	if refused != nil {
		t.Fatal(refused)
	}
	return s, o
}

// replyTo waits for the reply to a request: nil for ok.
func replyTo(t *testing.T, o *shelf, id string) (refused *signal.Error) {
	t.Helper()
	eventually(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.ContainsFunc(o.all, func(m signal.Message) bool {
			refused, _ = m.(*signal.Error)
			return m.Head().ID == id
		})
	}, "the reply to %q", id)
	return refused
}

// texts returns the texts of the data messages of an outbox.
func texts(o *shelf) (list []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range o.all {
		if d, ok := m.(*signal.Data); ok {
			list = append(list, d.Text)
		}
	}
	return list
}

func say(id string, seq int64, text string, to ...string) *signal.Data {
	return &signal.Data{Header: signal.Header{ID: id}, Seq: seq, Text: text, To: to}
}

// TestDataToAllAndToSome sends messages to all participants and to named participants.
func TestDataToAllAndToSome(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	_, graces := enterAs(t, n, "grace", everything, signal.Join{})
	_, linuses := enterAs(t, n, "linus", everything, signal.Join{})
	handle(ada, say("1", 1, "all"), say("2", 2, "grace", "grace", "grace", "ada"),
		say("3", 3, "some", "nobody", "linus"))
	if refused := replyTo(t, adas, "1"); refused != nil {
		t.Error(refused)
	}
	if refused := replyTo(t, adas, "3"); refused == nil || refused.Code != signal.CodeNotFound {
		t.Errorf("a message to an absent participant: got %v, expected not_found", refused)
	}
	for name, check := range map[string]struct {
		o    *shelf
		want []string
	}{
		"ada": {adas, nil}, "grace": {graces, []string{"all", "grace"}}, "linus": {linuses, []string{"all", "some"}},
	} {
		if got := texts(check.o); !slices.Equal(got, check.want) {
			t.Errorf("%s received %q, expected %q", name, got, check.want)
		}
	}
	last, _ := latest[*signal.Data](linuses)
	if last.Participant != "ada" || last.Seq != 2 || last.To != nil {
		t.Errorf("got %+v, expected a message of ada with linus's number 2", last)
	}
	if err := n.SendData(t.Context(), "room", signal.Data{Text: "operator", To: []string{"linus"}}); err != nil {
		t.Error(err)
	}
	if last := expect[*signal.Data](t, linuses, 3); last.Participant != "" || last.Text != "operator" {
		t.Errorf("got %+v, expected the operator's message", last)
	}
	if err := n.SendData(t.Context(), "elsewhere", signal.Data{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a message to a room that does not exist: got %v, expected ErrNotFound", err)
	}
}

// TestCopiesOfDataAreForwardedOnce passes the copies of a message channel and the messages of the websocket.
func TestCopiesOfDataAreForwardedOnce(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	_, graces := enterAs(t, n, "grace", everything, signal.Join{})
	inRoom(t, ada, func(r *Room) {
		c := ada.participant.connection
		dataCopied{c, say("2", 2, "b")}.apply(r)
		if got := texts(graces); len(got) != 0 {
			t.Errorf("received %q before the first message", got)
		}
		dataCopied{c, say("1", 1, "a")}.apply(r)
		dataCopied{c, say("1", 1, "a")}.apply(r)
	})
	handle(ada, say("1", 1, "a"), say("2", 2, "b"), say("3", 3, "c"))
	replyTo(t, adas, "3")
	if got := texts(graces); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("received %q, expected each message once", got)
	}
	if _, replies := latest[*signal.OK](adas); replies != 3 {
		t.Errorf("%d replies, expected one for each message", replies)
	}
}

// TestLossyData expects that an older message of a topic is not forwarded.
func TestLossyData(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	_, graces := enterAs(t, n, "grace", everything, signal.Join{})
	lossy := func(id string, seq int64, topic string) *signal.Data {
		return &signal.Data{Header: signal.Header{ID: id}, Seq: seq, Topic: topic, Text: topic + id, Lossy: true}
	}
	handle(ada, lossy("1", 2, "hand"), lossy("2", 1, "hand"), lossy("3", 1, "eye"), lossy("4", 3, "hand"))
	replyTo(t, adas, "4")
	if got := texts(graces); !slices.Equal(got, []string{"hand1", "eye3", "hand4"}) {
		t.Errorf("received %q, expected no older message", got)
	}
	for i := range signal.MaxTopics {
		handle(ada, lossy("", 9, fmt.Sprint("topic", i)))
	}
	handle(ada, lossy("5", 9, "one more"))
	if refused := replyTo(t, adas, "5"); refused == nil || refused.Code != signal.CodeLimit {
		t.Errorf("one topic too many: got %v, expected limit", refused)
	}
}

// TestDataLimits exceeds the rates, and sends without permission.
func TestDataLimits(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.DataRate, c.DataByteRate = 5, signal.MaxDataBytes })
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	grace, graces := enterAs(t, n, "grace", Grants{Subscribe: true}, signal.Join{})
	var messages []signal.Message
	for i := range 100 {
		messages = append(messages, say(fmt.Sprint(i), int64(i+1), "x"))
	}
	handle(ada, messages...)
	refused := replyTo(t, adas, "99")
	if got := texts(graces); len(got) < 10 || len(got) > 20 || refused == nil || refused.Code != signal.CodeLimit {
		t.Errorf("%d of 100 messages passed and the last had the reply %v, expected 10 and limit", len(got), refused)
	}
	if _, ended := adas.ended(); ended {
		t.Error("the websocket was closed")
	}
	handle(grace, say("1", 1, "x"))
	if refused := replyTo(t, graces, "1"); refused == nil || refused.Code != signal.CodeForbidden {
		t.Errorf("without permission: got %v, expected forbidden", refused)
	}
}

// TestDataAfterAResume sends messages while a websocket is broken, and expects them after the resume.
func TestDataAfterAResume(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	grace, former := enterAs(t, n, "grace", everything, signal.Join{})
	handle(ada, say("1", 1, "a"))
	handle(grace, say("1", 1, "from grace"))
	replyTo(t, former, "1")
	grace.Detach()
	handle(ada, say("2", 2, "b"), say("3", 3, "c"))
	replyTo(t, adas, "3")
	joined := expect[*signal.Joined](t, former, 1)
	received := int64(1)
	_, o := enterAs(t, n, "grace", everything, signal.Join{Resume: &signal.ResumeRequest{
		Session: joined.Session, Secret: joined.Resume.Secret, DataReceived: &received,
	}})
	expect[*signal.Data](t, o, 2)
	if got := texts(o); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("received %q after the resume, expected b and c", got)
	}
	if got := expect[*signal.Joined](t, o, 1).DataReceived; got != 1 {
		t.Errorf("the server has received message %d of grace, expected 1", got)
	}
}

// TestAbsentReceiversKeepLittle sends many messages to a participant whose websocket is broken.
func TestAbsentReceiversKeepLittle(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.DataRate, c.DataByteRate = 1e6, 1<<30 })
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	grace, _ := enterAs(t, n, "grace", everything, signal.Join{})
	grace.Detach()
	for i := range 3 * datamessage.KeptMessages {
		handle(ada, say(fmt.Sprint(i), int64(i+1), "x"))
	}
	replyTo(t, adas, fmt.Sprint(3*datamessage.KeptMessages-1))
	inRoom(t, ada, func(r *Room) {
		if kept := len(r.participants["grace"].data.Sent.After(0)); kept != datamessage.KeptMessages {
			t.Errorf("%d messages are kept, expected %d", kept, datamessage.KeptMessages)
		}
	})
}

// TestAttributesAndMetadata changes both, with and without the grants.
func TestAttributesAndMetadata(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	ada, adas := enterAs(t, n, "ada", everything, signal.Join{})
	grace, graces := enterAs(t, n, "grace", Grants{Subscribe: true, Data: true}, signal.Join{})
	request := func(id string) signal.Header { return signal.Header{ID: id} }
	handle(grace,
		&signal.Attributes{Header: request("1"), Attributes: map[string]string{"name": "Grace", "hand": "up"}},
		&signal.Attributes{Header: request("2"), Attributes: map[string]string{"hand": ""}},
		&signal.Attributes{Header: request("3"), Participant: "ada", Attributes: map[string]string{"name": "?"}},
		&signal.Metadata{Header: request("4"), Metadata: map[string]string{"title": "?"}},
	)
	for id, want := range map[string]signal.Code{
		"1": "", "2": "", "3": signal.CodeForbidden, "4": signal.CodeForbidden,
	} {
		if refused := replyTo(t, graces, id); refused != nil && refused.Code != want || refused == nil && want != "" {
			t.Errorf("request %s: got %v, expected %q", id, refused, want)
		}
	}
	handle(ada,
		&signal.Attributes{Header: request("1"), Participant: "grace", Attributes: map[string]string{"role": "guest"}},
		&signal.Metadata{Header: request("2"), Metadata: map[string]string{"title": "Seminar"}},
	)
	replyTo(t, adas, "2")
	if err := n.SetMetadata(t.Context(), "room", map[string]string{"color": "red"}); err != nil {
		t.Error(err)
	}
	_, o := enterAs(t, n, "linus", everything, signal.Join{})
	joined := expect[*signal.Joined](t, o, 1)
	if joined.Metadata["title"] != "Seminar" || joined.Metadata["color"] != "red" {
		t.Errorf("the metadata is %v", joined.Metadata)
	}
	if a := joined.Participants[1].Attributes; len(a) != 2 || a["name"] != "Grace" || a["role"] != "guest" {
		t.Errorf("the attributes are %v, expected the name and the role", a)
	}
	var tooLarge *signal.Error
	err := n.SetAttributes(t.Context(), "room", "grace", map[string]string{"x": string(make([]byte, 5000))})
	if !errors.As(err, &tooLarge) || tooLarge.Code != signal.CodeInvalid {
		t.Errorf("attributes of 5,000 bytes: got %v, expected invalid", err)
	}
	if err := n.SetAttributes(t.Context(), "room", "nobody", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("attributes of an absent participant: got %v, expected ErrNotFound", err)
	}
}

// TestMute mutes a publication by its publisher and by an operator, and expects idle slots.
func TestMute(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	alice, alices := enterAs(t, n, "alice", Grants{Publish: true, Subscribe: true}, signal.Join{})
	bob, bobs := enterAs(t, n, "bob", everything, signal.Join{Receive: true})
	handle(alice, &signal.Publish{Publication: bodyOf(1, 1)})
	expect[*signal.Assignments](t, bobs, 1)
	assigned := func() (slots int) {
		inRoom(t, bob, func(r *Room) {
			for _, s := range r.participants["bob"].subscriber.Slots.All() {
				if s.Target != nil {
					slots++
				}
			}
		})
		return slots
	}
	mute := func(o *shelf, s *Session, id, participant string, muted bool) *signal.Error {
		t.Helper()
		handle(s, &signal.Mute{
			Header: signal.Header{ID: id}, Participant: participant, Publication: "body", Muted: muted,
		})
		return replyTo(t, o, id)
	}
	for i, step := range []struct {
		o           *shelf
		s           *Session
		participant string
		muted       bool
		state       signal.MuteState
		slots       int
	}{
		{alices, alice, "", true, signal.MuteState{Own: true}, 0},
		{bobs, bob, "alice", true, signal.MuteState{Own: true, Operator: true}, 0},
		{alices, alice, "alice", false, signal.MuteState{Operator: true}, 0},
		{bobs, bob, "alice", false, signal.MuteState{}, 1},
	} {
		if refused := mute(step.o, step.s, fmt.Sprint("step", i), step.participant, step.muted); refused != nil {
			t.Fatalf("step %d: %v", i, refused)
		}
		step.state.Publication = "body"
		for _, o := range []*shelf{alices, bobs} {
			if got := expect[*signal.Muted](t, o, i+1); got.MuteState != step.state || got.Participant != "alice" {
				t.Errorf("step %d: told %+v, expected %+v", i, got, step.state)
			}
		}
		if got := assigned(); got != step.slots {
			t.Errorf("step %d: %d slots are assigned, expected %d", i, got, step.slots)
		}
	}
	if refused := mute(alices, alice, "9", "bob", true); refused == nil || refused.Code != signal.CodeForbidden {
		t.Errorf("muting another without the grant: got %v, expected forbidden", refused)
	}
	if err := n.Mute(t.Context(), "room", "alice", "body", true); err != nil {
		t.Error(err)
	}
	_, o := enterAs(t, n, "carol", everything, signal.Join{Receive: true})
	joined := expect[*signal.Joined](t, o, 1)
	if muted := joined.Participants[0].Muted; len(muted) != 1 || !muted[0].Operator {
		t.Errorf("a new participant is told %+v, expected the muted body", muted)
	}
	expect[*signal.Offer](t, o, 1)
	inRoom(t, bob, func(r *Room) {
		if needed := r.participants["carol"].subscriber.Slots.Needed("video"); needed != 0 {
			t.Errorf("a new receiver needs %d slots, expected none for a muted publication", needed)
		}
	})
	if err := n.Mute(t.Context(), "room", "alice", "voice", true); !errors.Is(err, ErrNotFound) {
		t.Errorf("muting no publication: got %v, expected ErrNotFound", err)
	}
}

// TestPermissions withdraws permissions during a session, and expects that a resume does not restore them.
func TestPermissions(t *testing.T) {
	n := newTestNode(t, mediaOnLoopback(), nil)
	alice, alices := enterAs(t, n, "alice", Grants{Publish: true, Subscribe: true, Data: true},
		signal.Join{Receive: true})
	bob, bobs := enterAs(t, n, "bob", everything, signal.Join{Receive: true})
	handle(bob, &signal.Publish{Publication: bodyOf(1, 1)})
	handle(alice, &signal.Publish{Publication: bodyOf(1, 1)})
	expect[*signal.Assignments](t, alices, 1)
	no := new(bool)
	handle(alice, &signal.SetPermissions{Header: signal.Header{ID: "1"}, Participant: "bob", Publish: no})
	if refused := replyTo(t, alices, "1"); refused == nil || refused.Code != signal.CodeForbidden {
		t.Errorf("permissions without the grant: got %v, expected forbidden", refused)
	}
	handle(bob, &signal.SetPermissions{Header: signal.Header{ID: "1"}, Participant: "alice", Publish: no, Subscribe: no,
		Data: no})
	if refused := replyTo(t, bobs, "1"); refused != nil {
		t.Fatal(refused)
	}
	if got := expect[*signal.PermissionsChanged](t, alices, 1).Permissions; got != (signal.Permissions{}) {
		t.Errorf("told %+v, expected no permission", got)
	}
	if got := expect[*signal.Unpublished](t, bobs, 1); got.Participant != "alice" {
		t.Errorf("told %+v, expected the end of alice's body", got)
	}
	idle := func() (idle bool) {
		inRoom(t, bob, func(r *Room) {
			p := r.participants["alice"]
			idle = len(p.Publications) == 0 && p.subscriber.Slots.Needed("video") == 0
		})
		return idle
	}
	if !idle() {
		t.Error("alice still publishes or receives")
	}
	handle(alice, &signal.Publish{Header: signal.Header{ID: "2"}, Publication: bodyOf(1, 1)}, say("3", 1, "x"))
	for _, id := range []string{"2", "3"} {
		if refused := replyTo(t, alices, id); refused == nil || refused.Code != signal.CodeForbidden {
			t.Errorf("request %s: got %v, expected forbidden", id, refused)
		}
	}
	alice.Detach()
	joined := expect[*signal.Joined](t, alices, 1)
	_, o := enterAs(t, n, "alice", Grants{Publish: true, Subscribe: true, Data: true}, signal.Join{
		Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret},
	})
	if got := expect[*signal.Joined](t, o, 1).Permissions; *got != (signal.Permissions{}) {
		t.Errorf("after a resume the permissions are %+v, expected none", got)
	}
	yes := true
	if err := n.SetPermissions(context.Background(), "room", "alice",
		signal.SetPermissions{Subscribe: &yes}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return !idle() }, "slots for alice, who may receive again")
}
