package bridge

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

var (
	home    = netip.MustParseAddrPort("127.0.0.1:8001")
	other   = netip.MustParseAddrPort("127.0.0.1:40000")
	another = netip.MustParseAddrPort("127.0.0.1:50000")
)

func TestReadyIsRepeatedUntilAnswered(t *testing.T) {
	h := NewHandshake(home)
	told := 0
	for now := start; now.Before(start.Add(time.Second)); now = now.Add(10 * time.Millisecond) {
		to := h.Ready(now, nil)
		told += len(to)
		if len(to) > 0 && to[0] != home {
			t.Errorf("%v is told, expected %v", to, home)
		}
	}
	if told != 10 {
		t.Errorf("told %d times in a second, expected 10", told)
	}
	if _, ok := h.Peer(); ok {
		t.Error("the connector is known before it answered")
	}
	if !h.Received(home, start.Add(time.Second)) {
		t.Error("the answer is not the connector's")
	}
	if to := h.Ready(start.Add(2*time.Second), nil); len(to) != 0 {
		t.Errorf("%v is told after the answer", to)
	}
}

func TestConnectorAddressIsThatOfTheAnswer(t *testing.T) {
	h := NewHandshake(home)
	if !h.Received(other, start) || h.Received(another, start.Add(time.Second)) ||
		!h.Received(other, start.Add(2*time.Second)) {
		t.Error("expected the first to answer to be the connector, and nobody else")
	}
	if peer, ok := h.Peer(); !ok || peer != other {
		t.Errorf("the connector is at %v, expected %v", peer, other)
	}
}

func TestSilentConnectorIsProbed(t *testing.T) {
	h := NewHandshake(home)
	h.Received(other, start)
	now := start.Add(silenceTimeout)
	if to := h.Ready(now, nil); !slices.Equal(to, []netip.AddrPort{other, home}) {
		t.Errorf("%v are told, expected the connector where it was and where it is expected", to)
	}
	if to := h.Ready(now.Add(probeInterval/2), nil); len(to) != 0 {
		t.Errorf("%v are told too soon", to)
	}
	if !h.Received(another, now.Add(probeInterval)) {
		t.Error("a connector that took the place of a silent one is not taken")
	}
	if peer, _ := h.Peer(); peer != another {
		t.Errorf("the connector is at %v, expected %v", peer, another)
	}
	if to := h.Ready(now.Add(2*probeInterval), nil); len(to) != 0 {
		t.Errorf("%v are told after an answer", to)
	}
}

// TestConnectorIsProbedBeforeItIsSilent uses a connector that only answers ready datagrams.
func TestConnectorIsProbedBeforeItIsSilent(t *testing.T) {
	h := NewHandshake(home)
	h.Received(other, start)
	asked := 0
	for now := start; now.Before(start.Add(time.Minute)); now = now.Add(20 * time.Millisecond) {
		if _, ok := h.Receiver(now); !ok {
			t.Fatalf("%v after the first answer nothing is sent to a connector that answers", now.Sub(start))
		}
		for _, to := range h.Ready(now, nil) {
			if to != other {
				t.Fatalf("%v is asked, expected %v", to, other)
			}
			// Two of three ready datagrams are lost.
			if asked++; asked%3 == 0 {
				h.Received(other, now)
			}
		}
	}
	if asked == 0 {
		t.Error("a connector that sends nothing is not asked")
	}
}

func TestNothingIsSentToASilentConnector(t *testing.T) {
	h := NewHandshake(home)
	if _, ok := h.Receiver(start); ok {
		t.Error("media is sent before there is a connector")
	}
	h.Received(other, start)
	if to, ok := h.Receiver(start.Add(silenceTimeout - 1)); !ok || to != other {
		t.Errorf("media is sent to %v, %v, expected %v", to, ok, other)
	}
	if _, ok := h.Receiver(start.Add(silenceTimeout)); ok {
		t.Error("media is sent to a silent connector")
	}
	h.Received(other, start.Add(time.Hour))
	if to, ok := h.Receiver(start.Add(time.Hour)); !ok || to != other {
		t.Errorf("after a silence media is sent to %v, %v, expected %v", to, ok, other)
	}
}
