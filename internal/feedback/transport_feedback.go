package feedback

import (
	"encoding/binary"
	"time"
)

// Feedback processes one packet of transport-wide feedback, with its RTCP header (see IsTransportFeedback), and appends
// the new results to results, in the order of the numbers. Every packet is reported once: as received, or as lost and
// then, if it arrived late, as received. Malformed packets are ignored as a whole. Reports about numbers that do not
// wait for a result are ignored. The cost is proportional to the size of the packet and the number of results.
func (h *TransportHistory) Feedback(packet []byte, now time.Time, results []PacketResult) []PacketResult {
	statuses, err := parseTransportFeedback(packet)
	if err != nil {
		h.stats.Malformed++
		return results
	}
	h.stats.Reports++
	at := h.since(now)
	h.expire(at)
	// The latest number that was sent and has these 16 bits.
	number := h.next - 1 - int64(uint16(h.next-1)-statuses.base)
	end := number + int64(statuses.count)
	arrived := h.clock.arrived(statuses.reference, time.Duration(at)*time.Microsecond, &h.stats)
	deltas := statuses.deltas
	for chunks := statuses.chunks; len(chunks) > 0; chunks = chunks[2:] {
		chunk := readChunk(binary.BigEndian.Uint16(chunks), int(end-number))
		if chunk.run && chunk.symbol == notReceived {
			results = h.lost(number, number+int64(chunk.count), results)
			number += int64(chunk.count)
			continue
		}
		for index := range chunk.count {
			switch chunk.at(index) {
			case notReceived:
				results = h.lost(number, number+1, results)
			case smallDelta:
				arrived += time.Duration(deltas[0]) * deltaTick
				deltas = deltas[1:]
				results = h.received(number, arrived, results)
			case largeDelta:
				arrived += time.Duration(int16(binary.BigEndian.Uint16(deltas))) * deltaTick
				deltas = deltas[2:]
				results = h.received(number, arrived, results)
			}
			number++
		}
	}
	h.settle(min(end, h.next))
	return results
}

// lost appends the packets from begin to below end as lost, except those with a result.
func (h *TransportHistory) lost(begin, end int64, results []PacketResult) []PacketResult {
	begin, end = max(begin, h.begin), min(end, h.next)
	for number := h.open.next(begin, end); number < end; number = h.open.next(number+1, end) {
		h.open.remove(number)
		h.stats.Lost++
		results = append(results, h.result(number))
	}
	return results
}

// received appends a packet as received, unless it was reported before.
func (h *TransportHistory) received(number int64, arrived time.Duration, results []PacketResult) []PacketResult {
	if number < h.begin || number >= h.next || !h.kept.has(number) {
		h.stats.Unmatched++
		return results
	}
	result := h.result(number)
	result.Received, result.Arrived = true, arrived
	if result.Late = !h.open.has(number); result.Late {
		h.stats.Late++
	}
	h.stats.Received++
	h.newest = max(h.newest, h.sentAt(number))
	h.kept.remove(number)
	h.open.remove(number)
	return append(results, result)
}

func (h *TransportHistory) result(number int64) PacketResult {
	packet := h.packet(number)
	return PacketResult{
		Sequence: number, Size: int(packet.size), Kind: packet.kind,
		Sent: h.epoch.Add(time.Duration(h.sentAt(number)) * time.Microsecond),
	}
}

// remoteClock extends the reference times of reports, which wrap around every 2^24 × 64 ms = 12.4 days.
type remoteClock struct {
	started   bool
	reference uint32
	extended  time.Duration // of reference
	at        time.Duration // arrival of its report by the local clock
}

const (
	referenceTick = 256 * deltaTick
	referenceBits = 24
	// maxClockJump bounds the deviation of the receiver's clock from the local one between two reports: the longest
	// possible queue. A larger deviation means that the clock was set, or stopped while the computer slept.
	maxClockJump = time.Minute
)

// arrived extends the reference time of a report that arrived at now. Reports may arrive out of order. After a jump the
// remote clock continues at the expected time.
func (c *remoteClock) arrived(reference uint32, now time.Duration, stats *TransportHistoryStats) time.Duration {
	if !c.started {
		*c = remoteClock{started: true, reference: reference, extended: time.Duration(reference) * referenceTick,
			at: now}
		return c.extended
	}
	expected := int64((now - c.at) / referenceTick)
	// The 24 bits are those of the value nearest to the expected one.
	deviation := int64(int32((reference-c.reference-uint32(expected))<<(32-referenceBits)) >> (32 - referenceBits))
	if deviation > int64(maxClockJump/referenceTick) || deviation < -int64(maxClockJump/referenceTick) {
		stats.ClockJumps++
		deviation = 0
	}
	c.extended += time.Duration(expected+deviation) * referenceTick
	c.reference, c.at = reference, now
	return c.extended
}
