package datamessage

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
)

func numbered(seq int64) *signal.Data { return &signal.Data{Seq: seq} }

func numbers(messages []*signal.Data) []int64 {
	list := []int64{}
	for _, m := range messages {
		list = append(list, m.Seq)
	}
	return list
}

// TestReceiver passes messages from both ways, and expects each number once and in order.
func TestReceiver(t *testing.T) {
	type step struct {
		copied bool
		seq    int64
		ready  []int64
		missed int64
	}
	const copied, ordered = true, false
	for name, steps := range map[string][]step{
		"only the websocket": {{ordered, 1, []int64{1}, 0}, {ordered, 2, []int64{2}, 0}},
		"copies first":       {{copied, 1, []int64{1}, 0}, {copied, 1, nil, 0}, {ordered, 1, nil, 0}},
		"copies out of order": {
			{copied, 2, nil, 0}, {copied, 3, nil, 0}, {copied, 1, []int64{1, 2, 3}, 0}, {ordered, 1, nil, 0},
			{ordered, 2, nil, 0},
		},
		"both copies of 1 lost": {{copied, 2, nil, 0}, {ordered, 1, []int64{1, 2}, 0}, {ordered, 2, nil, 0}},
		"messages lost in an outage": {
			{ordered, 1, []int64{1}, 0}, {copied, 4, nil, 0}, {copied, 7, nil, 0}, {ordered, 6, []int64{4, 6, 7}, 3},
		},
		"a copy far ahead":         {{copied, maxAhead + 1, nil, 0}, {ordered, 1, []int64{1}, 0}},
		"a number far ahead":       {{ordered, signal.MaxSeq, []int64{signal.MaxSeq}, signal.MaxSeq - 1}},
		"messages without numbers": {{ordered, 0, []int64{0}, 0}, {ordered, 0, []int64{0}, 0}, {copied, 0, nil, 0}},
	} {
		r := NewReceiver()
		for i, s := range steps {
			var ready []*signal.Data
			var missed int64
			if s.copied {
				ready = r.Copied(numbered(s.seq))
			} else {
				ready, missed = r.Ordered(numbered(s.seq))
			}
			if !slices.Equal(numbers(ready), s.ready) || missed != s.missed {
				t.Errorf("%s, step %d: got %v and %d missed, expected %v and %d", name, i, numbers(ready), missed,
					s.ready, s.missed)
			}
		}
	}
}

// TestEachMessageOnce loses and reorders copies at random. The websocket follows some messages behind. All messages
// must arrive once and in order, and the Receiver must not keep more than its bound.
func TestEachMessageOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := NewReceiver()
	var got []int64
	const messages, behind = 10_000, 100
	take := func(seq int64) {
		if random.Float64() < 0.9 {
			got = append(got, numbers(r.Copied(numbered(seq)))...)
		}
	}
	for seq := int64(1); seq <= messages+behind; seq++ {
		if seq <= messages {
			take(max(1, seq+random.Int64N(7)-3))
			take(seq)
		}
		if old := seq - behind; old > 0 {
			ready, missed := r.Ordered(numbered(old))
			if missed != 0 {
				t.Fatalf("%d messages missed before %d, expected none", missed, old)
			}
			got = append(got, numbers(ready)...)
		}
		if len(r.copies) > maxAhead {
			t.Fatalf("%d copies are kept, expected at most %d", len(r.copies), maxAhead)
		}
	}
	for i, seq := range got {
		if seq != int64(i+1) {
			t.Fatalf("message %d is number %d", i+1, seq)
		}
	}
	if len(got) < messages {
		t.Errorf("%d messages arrived, expected %d", len(got), messages)
	}
}

// TestNewer passes lossy messages of several topics.
func TestNewer(t *testing.T) {
	r := NewReceiver()
	newer := func(participant, topic string, seq int64) bool {
		t.Helper()
		newer, err := r.Newer(&signal.Data{Participant: participant, Topic: topic, Seq: seq})
		if err != nil {
			t.Fatal(err)
		}
		return newer
	}
	for i, got := range []bool{
		newer("ada", "hand", 2), !newer("ada", "hand", 1), !newer("ada", "hand", 2), newer("ada", "eye", 1),
		newer("grace", "hand", 1), newer("ada", "hand", 3), newer("ada", "hand", 0),
	} {
		if !got {
			t.Errorf("step %d is wrong", i)
		}
	}
	r.Forget("ada")
	if !newer("ada", "hand", 1) {
		t.Error("after the participant's return, number 1 is not newer")
	}
	r.ForgetAll()
	if !newer("ada", "hand", 1) || !newer("grace", "hand", 1) {
		t.Error("after the return of all participants, number 1 is not newer")
	}
	for i := range signal.MaxTopics - 1 {
		newer("ada", strconv.Itoa(i), 1)
	}
	if _, err := r.Newer(&signal.Data{Participant: "ada", Topic: "one more", Seq: 1}); !errors.Is(err, ErrTopics) {
		t.Errorf("one topic too many: got %v, expected ErrTopics", err)
	}
	if !newer("ada", "hand", 2) {
		t.Error("a known topic is refused when the table is full")
	}
}

// TestSender keeps messages within the limits.
func TestSender(t *testing.T) {
	var s Sender
	for range KeptMessages + 10 {
		s.Number(&signal.Data{Text: "x"})
	}
	s.Number(&signal.Data{Lossy: true})
	if got := numbers(s.After(0)); len(got) != KeptMessages || got[0] != 11 {
		t.Errorf("%d messages from %d are kept, expected %d from 11", len(got), got[0], KeptMessages)
	}
	if !s.Full(1) {
		t.Error("the sender is not full")
	}
	if got := numbers(s.After(KeptMessages + 9)); !slices.Equal(got, []int64{KeptMessages + 10}) {
		t.Errorf("got %v, expected the last message", got)
	}
	s.Delivered(KeptMessages + 8)
	if got := numbers(s.After(0)); len(got) != 2 || s.bytes != 2 || s.Full(1) {
		t.Errorf("%v and %d bytes are kept, expected the last two messages", got, s.bytes)
	}
	s.Number(&signal.Data{Text: strings.Repeat("x", KeptBytes)})
	if got := numbers(s.After(0)); len(got) != 1 {
		t.Errorf("%v are kept beside a message of KeptBytes, expected only that message", got)
	}
}

// TestBegin continues a session that others have begun.
func TestBegin(t *testing.T) {
	r := NewReceiver()
	r.Begin(7)
	if ready, missed := r.Ordered(numbered(7)); len(ready) != 0 || missed != 0 {
		t.Errorf("message 7 is delivered twice: %v, %d missed", numbers(ready), missed)
	}
	if ready, missed := r.Ordered(numbered(8)); len(ready) != 1 || missed != 0 || r.Last() != 8 {
		t.Errorf("message 8: %v, %d missed, last %d", numbers(ready), missed, r.Last())
	}
	var s Sender
	s.Begin(7)
	m := numbered(0)
	if s.Number(m); m.Seq != 8 || s.Last() != 8 {
		t.Errorf("the message has the number %d, the last is %d, expected 8", m.Seq, s.Last())
	}
}
