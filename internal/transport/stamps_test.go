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

// TestArrived: the time in the socket is subtracted, unless a clock was set in the meantime.
func TestArrived(t *testing.T) {
	at := time.Now()
	wall := at.Round(0)
	for name, test := range map[string]struct {
		kernel time.Time
		want   time.Time
	}{
		"no stamp":                {time.Time{}, at},
		"read at once":            {wall, at},
		"read late":               {wall.Add(-7 * time.Millisecond), at.Add(-7 * time.Millisecond)},
		"read before the arrival": {wall.Add(time.Millisecond), at},
		"the clock was set":       {wall.Add(-time.Hour), at},
	} {
		// A time with a monotonic reading equals no time without one.
		if got := (&PacketInfo{At: at, Kernel: test.kernel}).Arrived(); got != test.want {
			t.Errorf("%s: arrived at %v, expected %v", name, got, test.want)
		}
	}
}

// TestStampOfStranger: the departure of a packet to an unknown address is not reported.
func TestStampOfStranger(t *testing.T) {
	config := ClientConfig()
	config.Address = "127.0.0.1"
	e, err := Listen(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	e.mediaPorts()[0].departed(&udp.Departure{Peer: netip.MustParseAddrPort("192.0.2.1:5"), Head: [12]byte{0x80}})
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

// TestInfosHaveStamps: packets have the kernel's timestamps. The kernel enables timestamps with a delay.
func TestInfosHaveStamps(t *testing.T) {
	p := newPair(t)
	if !p.endpoints[0].mediaPorts()[0].Sockets()[0].TakeStamps(true) {
		t.Skip("the system gives no stamps")
	}
	sink := &infoRecorder{}
	p.receiveBy(sink)
	outlet, header := p.connectVideo()
	var info PacketInfo
	p.until("a packet is stamped", func() bool {
		header.SequenceNumber++
		_ = outlet.WriteRTP(&header, []byte("x"))
		info = sink.last()
		return !info.Kernel.IsZero()
	})
	if info.Kernel.After(info.At) || !info.Hardware.IsZero() {
		t.Errorf("stamped at %v by the kernel, at %v by a card, read at %v", info.Kernel, info.Hardware, info.At)
	}
}
