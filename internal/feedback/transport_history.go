package feedback

import "time"

// TransportHistoryStats are the counters of a TransportHistory.
type TransportHistoryStats struct {
	Sent uint64
	// Received and Lost count results, Late those of Received that had been Lost before.
	Received, Lost, Late uint64
	// Unreported counts the packets given up without a result: their reports were lost, too old, or never made.
	Unreported uint64
	// Reports counts the valid reports, Malformed the others.
	Reports, Malformed uint64
	// Unmatched counts packets reported as received that do not wait for a result: already reported, given up, or never
	// sent.
	Unmatched uint64
	// Marked counts packets reported with ECN-CE that left as ECT, FalseMarks those that left without ECT: no queue
	// marks such packets.
	Marked, FalseMarks uint64
	// ClockJumps counts jumps of the receiver's clock by more than a minute relative to the local clock.
	ClockJumps uint64
}

// TransportHistory is the sending side of transport-wide congestion control
// (draft-holmer-rmcat-transport-wide-cc-extensions-01): it numbers the packets of one transport, and derives the fate
// of each from the receiver's reports.
//
// Memory is 8.25 bytes per number from the oldest packet that waits for a result to the newest: 2.1 kB at first, 270 kB
// at most. At 10,000 packets per second, a round trip of 100 ms and reports every 25 ms, 1,250 numbers take 17 kB; with
// losses, which are kept because they may arrive late, the last second takes 135 kB.
type TransportHistory struct {
	epoch time.Time // origin of the times below
	stats TransportHistoryStats

	sent  []sentPacket // packet n is at index n mod len
	kept  numberSet    // packets not known to have arrived, of the numbers from begin to below next
	open  numberSet    // packets of kept without any result
	begin int64
	next  int64 // number of the next packet
	last  int64 // send time of the latest packet, in µs

	settled  int64 // all lower numbers were reported or given up
	inFlight int   // bytes of the packets from settled on
	newest   int64 // send time of the latest packet known to have arrived, in µs

	clock remoteClock
}

// sentPacket is a sent packet. Its time is relative to that of the latest: none is older than an hour.
type sentPacket struct {
	at   uint32 // µs, modulo 2^32
	size uint16
	kind PacketKind
}

const (
	// maxUnreported is the maximum wait of a packet for a result, as in libwebrtc: a longer outage ends the connection.
	maxUnreported = 60 * time.Second
	// maxReportDelay is the time for which a packet sent before a received one may still be reported. The receiver
	// waits for late packets for 500 ms and reports within 250 ms, and the queues of both directions may have grown by
	// as much again.
	maxReportDelay = time.Second
	minSent        = 1 << 8
)

// NewTransportHistory returns a history for one transport. The first packet has the number first.
func NewTransportHistory(first uint16) *TransportHistory {
	number := firstCycle + int64(first)
	return &TransportHistory{
		sent: make([]sentPacket, minSent), kept: newNumberSet(minSent), open: newNumberSet(minSent),
		begin: number, next: number, settled: number,
	}
}

// Stats returns the counters.
func (h *TransportHistory) Stats() TransportHistoryStats { return h.stats }

// InFlight returns the number of bytes sent after all packets covered by reports.
func (h *TransportHistory) InFlight() int { return h.inFlight }

// Sent records a packet sent now, and returns its extended number, which begins at 65,536 or above. The low 16 bits are
// written into the packet (see SetTransportSequence). size is in bytes on the wire, up to 65,535.
func (h *TransportHistory) Sent(size int, kind PacketKind, now time.Time) int64 {
	at := h.since(now)
	h.expire(at)
	number := h.next
	if number-h.begin == int64(len(h.sent)) {
		if len(h.sent) < maxWindow {
			h.grow()
		} else {
			h.giveUp(h.begin)
		}
	}
	// A clock that goes back would make packets older than they are.
	h.last = max(h.last, at)
	size = min(max(size, 0), 1<<16-1)
	*h.packet(number) = sentPacket{at: uint32(h.last), size: uint16(size), kind: kind}
	h.kept.add(number)
	h.open.add(number)
	h.next++
	h.inFlight += size
	h.stats.Sent++
	return number
}

// since converts a time to microseconds since epoch.
func (h *TransportHistory) since(now time.Time) int64 {
	if h.epoch.IsZero() {
		h.epoch = now
	}
	return now.Sub(h.epoch).Microseconds()
}

func (h *TransportHistory) packet(number int64) *sentPacket {
	return &h.sent[int(number)&(len(h.sent)-1)]
}

// sentAt returns the send time of a packet within the window, in µs.
func (h *TransportHistory) sentAt(number int64) int64 {
	return h.last - int64(uint32(h.last)-h.packet(number).at)
}

// expire gives up packets that are too old for a result, and moves the start of the window to the first packet that
// waits for one.
func (h *TransportHistory) expire(now int64) {
	oldest := max(now-maxUnreported.Microseconds(), h.newest-maxReportDelay.Microseconds())
	for h.begin < h.next {
		number := h.kept.next(h.begin, h.next)
		h.begin = number
		if number == h.next || h.sentAt(number) >= oldest {
			break
		}
		h.giveUp(number)
	}
	h.settle(h.begin)
}

// giveUp moves the start of the window behind a number.
func (h *TransportHistory) giveUp(number int64) {
	if h.open.has(number) {
		h.stats.Unreported++
	}
	h.open.remove(number)
	h.kept.remove(number)
	h.settle(number + 1)
	h.begin = number + 1
}

// settle removes the packets below end from those in flight.
func (h *TransportHistory) settle(end int64) {
	for ; h.settled < end; h.settled++ {
		h.inFlight -= int(h.packet(h.settled).size)
	}
}

func (h *TransportHistory) grow() {
	size := 2 * len(h.sent)
	sent, kept, open := make([]sentPacket, size), newNumberSet(size), newNumberSet(size)
	for number := h.begin; number < h.next; number++ {
		sent[int(number)&(size-1)] = *h.packet(number)
	}
	kept.copyFrom(h.kept, h.begin, h.next)
	open.copyFrom(h.open, h.begin, h.next)
	h.sent, h.kept, h.open = sent, kept, open
}
