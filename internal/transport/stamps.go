package transport

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/udp"
)

// TakeStamps makes the system stamp packets that arrive (PacketInfo) and those that leave (Sink.Sent) until no caller
// wants stamps: each call with true must be followed by one with false. It reports whether the system gives stamps on
// all sockets.
func (e *Endpoint) TakeStamps(wanted bool) bool {
	if e.port == nil {
		return false
	}
	e.stamped.Lock()
	defer e.stamped.Unlock()
	change := int32(1)
	if !wanted {
		change = -1
	}
	now := e.stamping.Add(change)
	if before := now - change; (now > 0) == (before > 0) {
		return true
	}
	taken := true
	for _, socket := range e.port.Sockets() {
		taken = socket.TakeStamps(now > 0) && taken
	}
	return taken
}

// StampNext asks for the time at which the packet leaves that is queued next. Without TakeStamps nothing comes of it.
func (p *Peer) StampNext() {
	if p.endpoint.stamping.Load() == 0 {
		return
	}
	p.outbox.stampNext()
}

// departed tells a peer when a packet of its left.
func (e *Endpoint) departed(d *udp.Departure) {
	peer := e.routes.peer(d.Peer)
	if peer == nil || !isMedia(d.Head[:]) || isRTCP(d.Head[:]) {
		return
	}
	kernel, hardware := stampTimes(d.Stamp)
	peer.sink.Sent(binary.BigEndian.Uint32(d.Head[8:]), binary.BigEndian.Uint16(d.Head[2:]), kernel, hardware)
}

const (
	// atomicAhead is how far atomic time (TAI), by which the precision time protocol sets network cards, is ahead of
	// UTC since 2017.
	atomicAhead = 37 * time.Second
	// sameClock is how far apart two stamps of a packet can be if both clocks are right. A card whose clock nobody sets
	// counts from when it was switched on.
	sameClock = time.Second
)

// stampTimes are those of a stamp by the system's clock. A network card's counts only where its clock is set: to UTC,
// or to atomic time. Kernels tell both of what arrives in one stamp, and in two of what leaves: where there is nothing
// to compare a card's with, the present stands in.
func stampTimes(s udp.Stamp) (kernel, hardware time.Time) {
	near := time.Now()
	if s.Kernel != 0 {
		kernel = time.Unix(0, s.Kernel)
		near = kernel
	}
	if s.Hardware == 0 {
		return kernel, hardware
	}
	for _, ahead := range []time.Duration{0, atomicAhead} {
		if at := time.Unix(0, s.Hardware).Add(-ahead); at.Sub(near).Abs() < sameClock {
			return kernel, at
		}
	}
	return kernel, hardware
}
