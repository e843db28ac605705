package feedback

import (
	"cmp"
	"slices"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// CongestionHistory is the sending side of congestion control by RFC 8888: it records the packets of all streams of one
// transport, and derives the fate of each packet from the receiver's reports. Packets are identified by SSRC and
// sequence number; results number packets in the order of sending, as in a TransportHistory, whose bounds apply here
// too.
//
// Memory is that of a TransportHistory, 1 kB for each stream, and 16 bytes for each entry by which the streams' tables
// have grown: 131,072 at most, 2.1 MB, for any number of streams, with or without reports. At 10,000 packets per second
// and a round trip of 100 ms it is 33 kB for a stream with all packets.
type CongestionHistory struct {
	history *TransportHistory
	streams map[uint32]*sentStream
	// grown is the number of entries of all tables beyond minStream each; swept is the number of the next packet at the
	// last sweep.
	grown  int
	swept  int64
	report CongestionReport
	// timestamp is the latest timestamp of reports, and extended the same unwrapped.
	started   bool
	timestamp uint32
	extended  int64
}

const (
	// maxGrown: the tables of all packets that wait for a result, maxWindow at most, have less than twice as many
	// entries, because their sizes are powers of two, and twice that after one more packet has made each table grow.
	maxGrown = 4 * maxWindow
	// sweepInterval is the minimum number of packets between two sweeps: 16 entries are examined per packet then.
	sweepInterval = maxWindow / 4
	// tickRate is the rate of the timestamps of reports, offsetRate that of the offsets, in Hz.
	tickRate   = 1 << 16
	offsetRate = 1 << 10
)

// NewCongestionHistory returns a history for one transport.
func NewCongestionHistory() *CongestionHistory {
	return &CongestionHistory{history: NewTransportHistory(0), streams: make(map[uint32]*sentStream)}
}

// Stats returns the counters.
func (h *CongestionHistory) Stats() TransportHistoryStats { return h.history.Stats() }

// InFlight returns the number of bytes sent after the latest packet that was reported as received.
func (h *CongestionHistory) InFlight() int { return h.history.InFlight() }

// Sent records a packet sent now, and returns its number in the order of sending. size is in bytes on the wire, up to
// 65,535. codepoint is that with which the packet leaves.
func (h *CongestionHistory) Sent(
	ssrc uint32, sequence uint16, size int, kind PacketKind, codepoint ecn.Codepoint, now time.Time,
) int64 {
	s := h.streams[ssrc]
	if s == nil {
		s = &sentStream{packets: make([]sentNumber, minStream)}
		h.streams[ssrc] = s
	}
	number := h.history.Sent(size, kind, now)
	// If the entry is used by a packet that still waits for a result, the table grows. If it cannot grow, because the
	// numbers are far apart, the older packet gets no result.
	for len(s.packets) < maxWindow && s.at(sequence).number >= h.history.begin && s.at(sequence).sequence != sequence &&
		h.room(s) {
		h.grown += len(s.packets)
		s.resize(2 * len(s.packets))
	}
	*s.at(sequence) = sentNumber{number: number, sequence: sequence, ecn: codepoint}
	return number
}

// room reports whether the table of a stream may double, after a sweep of the other tables if necessary.
func (h *CongestionHistory) room(s *sentStream) bool {
	if h.grown+len(s.packets) > maxGrown && h.history.next-h.swept >= sweepInterval {
		h.sweep(s)
	}
	return h.grown+len(s.packets) <= maxGrown
}

// sweep removes the streams without a packet that waits for a result, which may be sent on again, and shrinks the
// tables of the others, except one, to the necessary size.
func (h *CongestionHistory) sweep(but *sentStream) {
	h.swept = h.history.next
	for ssrc, s := range h.streams {
		if s == but {
			continue
		}
		before := len(s.packets)
		switch size := s.needs(h.history.begin); {
		case size == 0:
			delete(h.streams, ssrc)
			h.grown -= before - minStream
		case size < before:
			s.resize(size)
			h.grown -= before - size
		}
	}
}

// Feedback processes one congestion control feedback packet (see IsCongestionReport) and appends the new results to
// results, in the order of sending. Every packet is reported once: as received, or as lost and then, if it arrived
// late, as received. Malformed packets are ignored as a whole. Reports about packets that do not wait for a result are
// ignored, and so are marks of packets that left without ECT.
func (h *CongestionHistory) Feedback(packet []byte, now time.Time, results []PacketResult) []PacketResult {
	if err := h.report.Unmarshal(packet); err != nil {
		h.history.stats.Malformed++
		return results
	}
	h.history.stats.Reports++
	h.history.expire(h.history.since(now))
	made := h.made(h.report.Timestamp)
	first := len(results)
	for i := range h.report.Streams {
		results = h.stream(&h.report.Streams[i], made, results)
	}
	fresh := results[first:]
	slices.SortFunc(fresh, func(a, b PacketResult) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for i := len(fresh) - 1; i >= 0; i-- {
		if fresh[i].Received {
			h.history.settle(fresh[i].Sequence + 1)
			break
		}
	}
	return results
}

// stream appends the results of one stream of a report made at made.
func (h *CongestionHistory) stream(report *StreamReport, made int64, results []PacketResult) []PacketResult {
	s := h.streams[report.SSRC]
	for i, arrival := range report.Packets {
		sequence := report.Begin + uint16(i)
		var sent sentNumber
		if s != nil {
			sent = *s.at(sequence)
		}
		switch known := sent.number > 0 && sent.sequence == sequence; {
		case !known && arrival.Received:
			h.history.stats.Unmatched++
		case !known:
		case !arrival.Received:
			before := len(results)
			results = h.history.lost(sent.number, sent.number+1, results)
			if len(results) > before {
				results[before].SentECN = sent.ecn
			}
		default:
			results = h.received(sent, arrival, made, results)
		}
	}
	return results
}

// received appends a packet as received, unless it was reported before.
func (h *CongestionHistory) received(
	sent sentNumber, arrival PacketArrival, made int64, results []PacketResult,
) []PacketResult {
	before := len(results)
	results = h.history.received(sent.number, arrived(made, arrival.Offset), results)
	if len(results) == before {
		return results
	}
	result := &results[before]
	result.ECN, result.SentECN = arrival.ECN, sent.ecn
	switch {
	case arrival.ECN != ecn.CE:
	case sent.ecn == ecn.NotECT:
		result.ECN = ecn.NotECT
		h.history.stats.FalseMarks++
	default:
		h.history.stats.Marked++
	}
	return results
}

// made unwraps the timestamp of a report. Reports may arrive out of order; less than nine hours pass between two of
// them.
func (h *CongestionHistory) made(timestamp uint32) int64 {
	if !h.started {
		h.started, h.timestamp, h.extended = true, timestamp, int64(timestamp)
	}
	made := h.extended + int64(int32(timestamp-h.timestamp))
	if made > h.extended {
		h.timestamp, h.extended = timestamp, made
	}
	return made
}

// arrived returns the arrival time of a packet by the receiver's clock. If it is unknown, the time of the report is the
// best approximation.
func arrived(made int64, offset uint16) time.Duration {
	if offset == OffsetUnknown {
		offset = 0
	}
	ticks := made - int64(offset)*(tickRate/offsetRate)
	// Seconds and the rest are separate: together they would overflow 64 bits after 39 hours.
	return time.Duration(ticks>>16)*time.Second + time.Duration(ticks&(tickRate-1))*time.Second/tickRate
}
