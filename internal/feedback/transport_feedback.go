package feedback

import (
	"encoding/binary"
	"time"
)

// Feedback takes one packet of transport-wide feedback, with its RTCP header (see IsTransportFeedback), and appends to results what is new in it, in the
// order of the numbers. Every packet is given once: as received, or as lost and then, if it came late, as received. Malformed packets are ignored as a
// whole, and so is what they say of numbers that wait for no result. Its cost follows the size of the packet and the number of results.
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

// lost gives the packets from begin to below end as lost, but for those with a result.
func (h *TransportHistory) lost(begin, end int64, results []PacketResult) []PacketResult {
	begin, end = max(begin, h.begin), min(end, h.next)
	for number := h.open.next(begin, end); number < end; number = h.open.next(number+1, end) {
		h.open.remove(number)
		h.stats.Lost++
		results = append(results, h.result(number))
	}
	return results
}

// received gives a packet as received, unless it was given so before.
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
	at        time.Duration // when its report came, by our clock
}

const (
	referenceTick = 256 * deltaTick
	referenceBits = 24
	// maxClockJump is how far the receiver's clock may deviate from ours between two reports: by the longest queue there can be. More is a clock that was
	// set, or stood still while its computer slept.
	maxClockJump = time.Minute
)

// arrived extends the reference time of a report that came at now. Reports may come in another order than they were made. After a jump the remote clock
// goes on from where ours would have it.
func (c *remoteClock) arrived(reference uint32, now time.Duration, stats *TransportHistoryStats) time.Duration {
	if !c.started {
		*c = remoteClock{started: true, reference: reference, extended: time.Duration(reference) * referenceTick, at: now}
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
