package transport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

func TestStampTimes(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		stamp            udp.Stamp
		kernel, hardware time.Duration // since now; a day is for none
	}{
		"nothing":            {udp.Stamp{}, 24 * time.Hour, 24 * time.Hour},
		"kernel":             {udp.Stamp{Kernel: now.UnixNano()}, 0, 24 * time.Hour},
		"both":               {udp.Stamp{Kernel: now.UnixNano(), Hardware: now.Add(-5 * time.Microsecond).UnixNano()}, 0, -5 * time.Microsecond},
		"card by TAI":        {udp.Stamp{Kernel: now.UnixNano(), Hardware: now.Add(atomicAhead - 5*time.Microsecond).UnixNano()}, 0, -5 * time.Microsecond},
		"card of no clock":   {udp.Stamp{Kernel: now.UnixNano(), Hardware: 12345}, 0, 24 * time.Hour},
		"card, and it alone": {udp.Stamp{Hardware: now.UnixNano()}, 24 * time.Hour, 0},
	} {
		kernel, hardware := stampTimes(test.stamp)
		for what, pair := range map[string]struct {
			got  time.Time
			want time.Duration
		}{"kernel": {kernel, test.kernel}, "hardware": {hardware, test.hardware}} {
			if none := pair.want == 24*time.Hour; pair.got.IsZero() != none || !none && pair.got.Sub(now.Round(0)) != pair.want {
				t.Errorf("%s: %s is %v, expected %v after %v", name, what, pair.got, pair.want, now)
			}
		}
	}
}

// TestStampsAreCounted: sockets take stamps as long as anybody wants them.
func TestStampsAreCounted(t *testing.T) {
	config := ClientConfig()
	config.Address = "127.0.0.1"
	e, err := Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	first := e.TakeStamps(true)
	if second := e.TakeStamps(true); !second || e.stamping.Load() != 2 {
		t.Errorf("%d want stamps, expected 2", e.stamping.Load())
	}
	e.TakeStamps(false)
	e.TakeStamps(false)
	if e.stamping.Load() != 0 {
		t.Errorf("%d want stamps, expected none", e.stamping.Load())
	}
	if first != e.port.Sockets()[0].TakeStamps(true) {
		t.Error("the endpoint and its socket disagree on whether the kernel gives stamps")
	}
	// Of nobody's packets nothing is told.
	e.departed(&udp.Departure{Peer: netip.MustParseAddrPort("192.0.2.1:5"), Head: [12]byte{0x80}})
	dialling, err := Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dialling.Close() }()
	if dialling.TakeStamps(true) {
		t.Error("an endpoint without a socket takes stamps")
	}
}
