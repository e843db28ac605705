package feedback

import (
	"cmp"
	"slices"
	"time"
)

// CongestionHistory is the sending side of congestion control by RFC 8888: it remembers the packets of all streams of one transport, and turns the receiver's
// reports into what became of each. Packets are known by SSRC and sequence number; the results count them in the order of their sending, as a TransportHistory
// does, whose bounds hold here too.
//
// Memory is that of a TransportHistory, 1 kB for each stream, and 16 bytes for each entry by which the streams' tables have grown: 131,072 at most, 2.1 MB, however
// many streams there are, and whether or not the receiver reports. At 10,000 packets per second and a round trip of 100 ms it is 33 kB for a stream that has all of them.
type CongestionHistory struct {
	history *TransportHistory
	streams map[uint32]*sentStream
	// grown is by how many entries the tables exceed minStream, all together, and swept what was sent next when they were last made smaller.
	grown  int
	swept  int64
	report CongestionReport
	// timestamp is the latest one of reports, and extended the same unwrapped.
	started   bool
	timestamp uint32
	extended  int64
}

const (
	// maxGrown: the tables of all packets that wait for a result, maxWindow at most, have less than twice as many entries, as their sizes are powers of two, and twice as
	// many again once one more packet of each has made it grow.
	maxGrown = 4 * maxWindow
	// sweepInterval is how many packets are sent between two looks at all tables at least: 16 entries are looked at per packet then.
	sweepInterval = maxWindow / 4
	// tickRate is the rate of the timestamps of reports, offsetRate that of the offsets, in Hz.
	tickRate   = 1 << 16
	offsetRate = 1 << 10
)

// NewCongestionHistory makes a history for one transport.
func NewCongestionHistory() *CongestionHistory {
	return &CongestionHistory{history: NewTransportHistory(0), streams: make(map[uint32]*sentStream)}
}

// Stats returns the counts so far.
func (h *CongestionHistory) Stats() TransportHistoryStats { return h.history.Stats() }

// InFlight is the number of bytes sent after the latest packet that is known to have arrived.
func (h *CongestionHistory) InFlight() int { return h.history.InFlight() }

// Sent records a packet that is sent now, and returns its place in the order of sending. size is in bytes on the wire, up to 65,535.
func (h *CongestionHistory) Sent(ssrc uint32, sequence uint16, size int, kind PacketKind, now time.Time) int64 {
	s := h.streams[ssrc]
	if s == nil {
		s = &sentStream{packets: make([]sentNumber, minStream)}
		h.streams[ssrc] = s
	}
	number := h.history.Sent(size, kind, now)
	// A packet whose place is taken by one that still waits for a result needs more room. Where there is none, because numbers are far apart, the one before gets no result.
	for len(s.packets) < maxWindow && s.at(sequence).number >= h.history.begin && s.at(sequence).sequence != sequence && h.room(s) {
		h.grown += len(s.packets)
		s.resize(2 * len(s.packets))
	}
	*s.at(sequence) = sentNumber{number: number, sequence: sequence}
	return number
}

// room tells whether the table of a stream may grow to twice its size, and takes back from others what they do not need where it could not.
func (h *CongestionHistory) room(s *sentStream) bool {
	if h.grown+len(s.packets) > maxGrown && h.history.next-h.swept >= sweepInterval {
		h.sweep(s)
	}
	return h.grown+len(s.packets) <= maxGrown
}

// sweep forgets the streams none of whose packets waits for a result, which may be sent on again, and makes the tables of the others but one as small as what waits.
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

// Feedback takes one congestion control feedback packet (see IsCongestionReport), and appends to results what is new in it, in the order of sending. Every packet is
// given once: as received, or as lost and then, if it came late, as received. Malformed packets are ignored as a whole, and so is what they say of packets
// that wait for no result.
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

// stream appends what a report says of one stream. made is when the report was.
func (h *CongestionHistory) stream(report *StreamReport, made int64, results []PacketResult) []PacketResult {
	s := h.streams[report.SSRC]
	if s == nil {
		return results
	}
	for i, arrival := range report.Packets {
		sequence := report.Begin + uint16(i)
		sent := s.at(sequence)
		switch known := sent.number > 0 && sent.sequence == sequence; {
		case !known && arrival.Received:
			h.history.stats.Unmatched++
		case !known:
		case !arrival.Received:
			results = h.history.lost(sent.number, sent.number+1, results)
		default:
			before := len(results)
			if results = h.history.received(sent.number, arrived(made, arrival.Offset), results); len(results) > before {
				results[before].ECN = arrival.ECN
			}
		}
	}
	return results
}

// made unwraps the timestamp of a report. Reports may come in another order than they were made; between two of them less than nine hours pass.
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

// arrived is when a packet arrived, by the receiver's clock. Where that is not known, the time of the report is what comes nearest.
func arrived(made int64, offset uint16) time.Duration {
	if offset == OffsetUnknown {
		offset = 0
	}
	ticks := made - int64(offset)*(tickRate/offsetRate)
	// Seconds and the rest apart: together they would overflow 64 bits after 39 hours.
	return time.Duration(ticks>>16)*time.Second + time.Duration(ticks&(tickRate-1))*time.Second/tickRate
}
