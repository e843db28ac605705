package transport

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// StampNext requests the departure time of the packet that is queued next.
func (p *Peer) StampNext() { p.outbox.stampNext() }

// departed reports the departure of a packet to its peer.
func (m *mediaPort) departed(d *udp.Departure) {
	peer := m.routes.peer(d.Peer)
	if peer == nil || !isMedia(d.Head[:]) || isRTCP(d.Head[:]) {
		return
	}
	kernel, hardware := stampTimes(d.Stamp)
	peer.sink.Sent(binary.BigEndian.Uint32(d.Head[8:]), binary.BigEndian.Uint16(d.Head[2:]), kernel, hardware)
}

const (
	// atomicAhead is the difference between atomic time (TAI) and UTC since 2017. The precision time protocol sets
	// network cards to TAI.
	atomicAhead = 37 * time.Second
	// sameClock is the largest difference between two timestamps of a packet if both clocks are right. A card whose
	// clock is not set counts from power-on.
	sameClock = time.Second
)

// stampTimes converts a timestamp to times of the system's clock. The time of a network card is used only if the card's
// clock is set, to UTC or to TAI. For an arriving packet the kernel reports both times in one timestamp, for a
// departing packet in two. Without a kernel time, the card's time is compared with the present time.
func stampTimes(s udp.Stamp) (kernel, hardware time.Time) {
	if s.Kernel != 0 {
		kernel = time.Unix(0, s.Kernel)
	}
	if s.Hardware == 0 {
		return kernel, hardware
	}
	near := kernel
	if kernel.IsZero() {
		near = time.Now()
	}
	for _, ahead := range []time.Duration{0, atomicAhead} {
		if at := time.Unix(0, s.Hardware).Add(-ahead); at.Sub(near).Abs() < sameClock {
			return kernel, at
		}
	}
	return kernel, hardware
}
