package probe

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMatch: parts of the path are computed from their timestamps, and missing timestamps are marked.
func TestMatch(t *testing.T) {
	departures := []Departure{
		{Sequence: 0, Size: 128, Sent: 1000, Software: 1100, Hardware: 1150},
		{Sequence: 1, Size: 128, Sent: 2000, Software: 2200}, {Sequence: 2, Size: 128, Sent: 3000},
	}
	arrivals := []Arrival{{Sequence: 1, Software: 2500, Received: 2600},
		{Sequence: 0, Hardware: 1400, Software: 1450, Received: 1500}}
	got := Match(departures, arrivals)
	want := []Passage{
		{TxSoftware: 100, TxHardware: 50, RxHardware: 250, RxSoftware: 50, Wire: 350, Total: 500},
		{TxSoftware: 200, TxHardware: Missing, RxHardware: Missing, RxSoftware: 100, Wire: 300, Total: 600},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestPlans(t *testing.T) {
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for _, p := range []Plan{
		{Size: 128, Count: 1}, {To: netip.MustParseAddrPort("[::1]:9"), Size: 128, Count: 1},
		{To: to, Size: 31, Count: 1}, {To: to, Size: 1501, Count: 1}, {To: to, Size: 128},
		{To: to, Size: 128, Count: 1, Interval: -1},
	} {
		if err := p.Validate(); !errors.Is(err, ErrProbe) {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

// TestLoopback: on this host every packet arrives, the timestamps of the kernel are between those of the programs, and
// there are no timestamps of a network card.
func TestLoopback(t *testing.T) {
	const count = 20
	listening, received := make(chan netip.AddrPort, 1), make(chan []Arrival, 1)
	go func() {
		arrivals, err := Receive(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"), count, 10*time.Second,
			func(at netip.AddrPort) { listening <- at })
		if err != nil && !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
		close(listening)
		received <- arrivals
	}()
	at, ok := <-listening
	if !ok {
		t.Skip(ErrUnsupported)
	}
	departures, err := Send(t.Context(), Plan{To: at, Size: 512, Count: count, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	arrivals := <-received
	if len(departures) != count || len(arrivals) != count {
		t.Fatalf("%d sent, %d received, want %d", len(departures), len(arrivals), count)
	}
	stamped := 0
	for i, d := range departures {
		a := arrivals[i]
		if d.Sequence != uint32(i) || a.Sequence != uint32(i) || a.Size != 512 {
			t.Errorf("packet %d: sent %+v, received %+v", i, d, a)
		}
		if d.Hardware != 0 || a.Hardware != 0 {
			t.Errorf("packet %d has stamps of a network card", i)
		}
		if d.Software != 0 && a.Software != 0 {
			stamped++
			if d.Sent > d.Software || a.Software > a.Received {
				t.Errorf("packet %d: sent %+v, received %+v", i, d, a)
			}
		}
	}
	if stamped == 0 {
		t.Error("the kernel stamped no packet")
	}
}
