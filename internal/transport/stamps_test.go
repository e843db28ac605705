package transport

import (
	"net/netip"
	"sync"
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
		"nothing": {udp.Stamp{}, 24 * time.Hour, 24 * time.Hour},
		"kernel":  {udp.Stamp{Kernel: now.UnixNano()}, 0, 24 * time.Hour},
		"both": {udp.Stamp{Kernel: now.UnixNano(), Hardware: now.Add(-5 * time.Microsecond).UnixNano()},
			0, -5 * time.Microsecond},
		"card by TAI": {udp.Stamp{Kernel: now.UnixNano(),
			Hardware: now.Add(atomicAhead - 5*time.Microsecond).UnixNano()}, 0, -5 * time.Microsecond},
		"card of no clock":   {udp.Stamp{Kernel: now.UnixNano(), Hardware: 12345}, 0, 24 * time.Hour},
		"card, and it alone": {udp.Stamp{Hardware: now.UnixNano()}, 24 * time.Hour, 0},
	} {
		kernel, hardware := stampTimes(test.stamp)
		for what, pair := range map[string]struct {
			got  time.Time
			want time.Duration
		}{"kernel": {kernel, test.kernel}, "hardware": {hardware, test.hardware}} {
			if none := pair.want == 24*time.Hour; pair.got.IsZero() != none || !none &&
				pair.got.Sub(now.Round(0)) != pair.want {
				t.Errorf("%s: %s is %v, expected %v after %v", name, what, pair.got, pair.want, now)
			}
		}
	}
}

// TestStampsAreCounted: sockets take timestamps while at least one caller wants them.
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
	if first != e.mediaPorts()[0].Sockets()[0].TakeStamps(true) {
		t.Error("the endpoint and its socket disagree on whether the kernel gives stamps")
	}
	// A packet to an unknown address is not reported.
	e.mediaPorts()[0].departed(&udp.Departure{Peer: netip.MustParseAddrPort("192.0.2.1:5"), Head: [12]byte{0x80}})
	dialling, err := Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dialling.Close() }()
	if dialling.TakeStamps(true) {
		t.Error("an endpoint without a socket takes stamps")
	}
}

// infoRecorder is a sink that keeps the info of the last packet.
type infoRecorder struct {
	NoOpSink
	mu   sync.Mutex
	info PacketInfo
}

func (r *infoRecorder) RTP(_ uint32, _ []byte, info *PacketInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info = *info
}

func (r *infoRecorder) last() PacketInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info
}

// TestInfosHaveStamps: packets have the kernel's timestamps while these are wanted, and not afterwards.
func TestInfosHaveStamps(t *testing.T) {
	p := newPair(t)
	sink := &infoRecorder{}
	p.receiveBy(sink)
	outlet, header := p.connectVideo()
	comes := func(what string, stamped bool) (info PacketInfo) {
		t.Helper()
		p.until(what, func() bool {
			header.SequenceNumber++
			_ = outlet.WriteRTP(&header, []byte("x"))
			info = sink.last()
			return !info.At.IsZero() && info.Kernel.IsZero() != stamped
		})
		return info
	}
	comes("a packet comes", false)
	if !p.endpoints[0].TakeStamps(true) {
		t.Skip("the system gives no stamps")
	}
	if info := comes("a packet is stamped", true); info.Kernel.After(info.At) || !info.Hardware.IsZero() {
		t.Errorf("stamped at %v by the kernel, at %v by a card, read at %v", info.Kernel, info.Hardware, info.At)
	}
	p.endpoints[0].TakeStamps(false)
	comes("a packet is not stamped", false)
}
