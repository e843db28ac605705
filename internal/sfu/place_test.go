package sfu

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/race"
)

// lastOffer is an outbox that keeps the last offer until it is taken, and no other message.
type lastOffer struct {
	mu    sync.Mutex
	offer *signal.Offer
}

// Send implements Outbox.
func (o *lastOffer) Send(m signal.Message) bool {
	if offer, is := m.(*signal.Offer); is {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.offer = offer
	}
	return true
}

// Close implements Outbox.
func (o *lastOffer) Close(signal.Code, string) {}

func (o *lastOffer) take() *signal.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	offer := o.offer
	o.offer = nil
	return offer
}

// inUse returns the bytes of objects and of stacks in use after a collection.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestPlacesAreSmall takes places in rooms of three participants. An attacker with one token may take a thousand places
// (Config.BearerPlaces), and may answer the offers. The bounds are some 30 % above the memory of a place on amd64.
func TestPlacesAreSmall(t *testing.T) {
	if race.Enabled {
		t.Skip("memory is counted without the race detector only")
	}
	const (
		places, perRoom           = 120, 3
		mostOffered, mostAnswered = 66_000, 147_000
	)
	n := newTestNode(t, mediaOnLoopback(), func(c *Config) { c.AnswerTimeout, c.ConnectTimeout = time.Hour, time.Hour })
	sessions := make([]*Session, places)
	outboxes := make([]*lastOffer, places)
	before := inUse()
	for i := range places {
		outboxes[i] = &lastOffer{}
		s, refused := n.Join(JoinRequest{
			Join: &signal.Join{Version: signal.Version, Receive: true}, Room: fmt.Sprint("room ", i/perRoom),
			Identity: fmt.Sprint("mallory ", i), OwnsIdentity: true, Grants: Grants{Subscribe: true},
			Outbox: outboxes[i], At: time.Now(),
		})
		if refused != nil {
			t.Fatal(refused)
		}
		sessions[i] = s
	}
	answers := make([]string, places)
	for i, o := range outboxes {
		eventually(t, func() bool {
			offer := o.take()
			if offer != nil {
				answers[i] = intruder.Answer(offer.SDP, nil)
			}
			return offer != nil
		}, "an offer")
	}
	kept := 0
	for _, text := range answers {
		kept += len(text)
	}
	check := func(state string, kept int, most int64) {
		t.Helper()
		each := (inUse() - before - int64(kept)) / places
		t.Logf("a participant that has %s takes %d bytes", state, each)
		if each > most {
			t.Errorf("a participant that has %s takes %d bytes, expected at most %d", state, each, most)
		}
	}
	check("an offer", kept, mostOffered)
	for i, s := range sessions {
		handle(s, &signal.Answer{Offer: 1, SDP: answers[i]})
		answers[i] = ""
	}
	for _, s := range sessions {
		eventually(t, func() (taken bool) {
			inRoom(t, s, func(*Room) { taken = s.participant.pendingOffer == nil })
			return taken
		}, "the answer to be taken")
	}
	check("answered its offer", 0, mostAnswered)
	runtime.KeepAlive(outboxes)
}
