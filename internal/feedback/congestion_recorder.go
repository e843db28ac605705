package feedback

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
)

// CongestionRecorderStats are the counters of a CongestionRecorder.
type CongestionRecorderStats struct {
	// Received counts recorded packets, Duplicates packets recorded before, Old packets too late to be recorded,
	// Refused packets that were not recorded because the numbers of the sender jump too often.
	Received, Duplicates, Old, Refused uint64
	// Restarts counts the restarts of a stream's numbers.
	Restarts uint64
	// Reports counts the reports made, Dropped the reports that were not fetched in time.
	Reports, Dropped uint64
}

// CongestionRecorder is the receiving side of congestion control by RFC 8888: it records the arrivals of the packets of
// all streams of one transport, by SSRC and sequence number, and reports them to their sender.
//
// Reports are divided by time: a full report is closed, and later arrivals are in the next one. Each report therefore
// covers all streams of its time, and the sender sees arrivals in order.
//
// A packet is reported as lost once, when a later packet of its stream has arrived. If it arrives after all, the next
// report of the stream includes it.
//
// A report about a packet with ECN-CE leaves MarkedInterval after the report before, if the share of the received rate
// permits its size (see TransportFeedbackConfig). A part of the share that is not used may be used later, for two
// reports of MaxBytes at most: by the marks at the end of a frame.
//
// The sender chooses the numbers. Numbers in reports beyond one for each received packet are losses, and numbers
// repeated because of late packets. On average they are at most 8 for each packet, so that a sender whose numbers jump
// causes little more work than another.
//
// Memory is 16 bytes per number in the window of a stream, which covers the numbers of the next report, and at least
// the last 256 numbers: 4 kB at first. With the default MaxBytes, a report has 540 numbers at most, and a window 1,024:
// 16 kB. With more than 1,024 streams, new ones replace others, which begin again with their next packet.
type CongestionRecorder struct {
	cfg    TransportFeedbackConfig
	sender uint32
	epoch  time.Time // origin of the times below
	clock  int64     // report clock at epoch, in 1/65,536 s
	stats  CongestionRecorderStats

	streams map[uint32]*receivedStream
	// waiting are the streams in the next report, size is the size of that report in bytes.
	waiting []*receivedStream
	size    int
	report  CongestionReport
	// closed are complete reports, one after the other.
	closed []byte

	packets int           // received since the last report
	bytes   int           // bytes of these packets
	marked  bool          // one of these packets has ECN-CE
	first   time.Duration // arrival of the first of these packets
	latest  time.Duration // arrival of the latest of these packets
	last    time.Duration // time of the last report
	// share is the number of bytes on the wire that reports about marks may take now. rate measures the received rate,
	// which decides on the share.
	share float64
	rate  fastRate
	// credit is how many numbers may be reported beyond one for each received packet.
	credit int64
}

// receivedStream is the state of one stream. Numbers are extended.
type receivedStream struct {
	ssrc     uint32
	arrivals []arrivedPacket // packet n is at index n mod len, a power of two
	begin    int64           // lower numbers are unknown
	next     int64           // one after the highest number that arrived
	from     int64           // lowest number in the next report; equal to next if there is none
	stale    int             // consecutive packets that were too old
}

// arrivedPacket is a number of a stream.
type arrivedPacket struct {
	at       time.Duration
	received bool
	ecn      ecn.Codepoint
}

const (
	// maxReportInterval is the maximum time between reports (RFC 8888 section 3 recommends 50 to 200 ms).
	maxReportInterval = 200 * time.Millisecond
	// reportWireOverhead is the size of a report on the wire without its streams: 48 bytes for IPv6 and UDP, 20 for
	// SRTCP, and its own 12.
	reportWireOverhead = 48 + 20 + emptyCongestionReport
	// emptyCongestionReport is the size of a report without streams.
	emptyCongestionReport = congestionHeader + congestionTimestamp
	// minRecorded numbers are 25 ms at 100 Mbit/s, the possible lateness of a packet.
	minRecorded = 1 << 8
	// maxStreamGap is the largest gap of a stream that is reported as lost: more than 500 ms at 50 Mbit/s. After a
	// larger gap the stream restarts.
	maxStreamGap = 1 << 12
	// creditPerPacket is the increase of the credit with each received packet, maxStreamGap its maximum: a loss of 8
	// packets in 9 takes all of it. restartCost is the cost of a restart, which closes a report: a report of one number
	// takes 92 bytes on the wire, and the 8 packets that pay for it take 800 with 50 bytes of payload each.
	creditPerPacket = 8
	restartCost     = 64
	// maxRecordedStreams bounds the streams: 4 MB of windows at first, 16 MB at most. Nine publications with 15 tiles
	// of 3 qualities and retransmissions are 810.
	maxRecordedStreams = 1 << 10
	// rateWindow is the time over which the received rate is measured: three frames.
	rateWindow = 100 * time.Millisecond
	// maxClosed bounds the bytes of reports that wait to be fetched. At 1 Gbit/s they reach 64 kB after 300 ms.
	maxClosed = 1 << 16
	// ntpEpoch is 1970 in NTP time, in seconds.
	ntpEpoch = 2_208_988_800
)

// NewCongestionRecorder returns a recorder for one transport, whose reports have the SSRC sender. Intervals of the
// configuration are limited to 200 ms.
func NewCongestionRecorder(cfg TransportFeedbackConfig, sender uint32) *CongestionRecorder {
	cfg.MaxBytes = max(cfg.MaxBytes, minReports)
	cfg.IntervalMax = min(cfg.IntervalMax, maxReportInterval)
	return &CongestionRecorder{cfg: cfg, sender: sender, streams: make(map[uint32]*receivedStream),
		size: emptyCongestionReport, credit: maxStreamGap}
}

// Stats returns the counters.
func (r *CongestionRecorder) Stats() CongestionRecorderStats { return r.stats }

// Received records a packet with its size on the wire in bytes. codepoint is ecn.NotECT if it is unknown.
func (r *CongestionRecorder) Received(ssrc uint32, sequence uint16, size int, codepoint ecn.Codepoint, now time.Time) {
	if r.epoch.IsZero() {
		r.begins(now)
	}
	at := now.Sub(r.epoch)
	r.credit = min(r.credit+creditPerPacket, maxStreamGap)
	s := r.streams[ssrc]
	if s == nil {
		s = r.open(ssrc, at)
		s.restart(firstCycle + int64(sequence))
	}
	newest := s.next - 1
	number := newest + int64(int16(sequence-uint16(newest)))
	if number < s.next {
		number = r.late(s, number, codepoint, at)
	} else {
		number = r.advance(s, number, at)
	}
	if number < 0 {
		return
	}
	s.stale = 0
	*s.at(number) = arrivedPacket{at: at, received: true, ecn: codepoint}
	if r.packets == 0 {
		r.first = at
	}
	r.packets++
	r.bytes += size
	r.latest = max(r.latest, at)
	r.earn(size, at)
	r.marked = r.marked || codepoint == ecn.CE
	r.stats.Received++
}

// fastRate measures whether packets arrive at FastRateBPS.
type fastRate struct {
	fast  bool
	began time.Duration
	bytes int
}

// earn increases the bytes that reports about marks may take, after a packet has arrived.
func (r *CongestionRecorder) earn(size int, at time.Duration) {
	rate := &r.rate
	rate.bytes += size
	if elapsed := at - rate.began; elapsed >= rateWindow {
		rate.fast = int64(rate.bytes)*8*1e6 >= int64(r.cfg.FastRateBPS)*elapsed.Microseconds()
		rate.began, rate.bytes = at, 0
	}
	share := r.cfg.Share
	if rate.fast {
		share = r.cfg.FastShare
	}
	r.share = min(r.share+share*float64(size), float64(2*r.cfg.MaxBytes))
}

// open adds a stream.
func (r *CongestionRecorder) open(ssrc uint32, at time.Duration) *receivedStream {
	var s *receivedStream
	if len(r.streams) < maxRecordedStreams {
		s = &receivedStream{arrivals: make([]arrivedPacket, minRecorded)}
	} else {
		s = r.remove(at)
	}
	s.ssrc = ssrc
	r.streams[ssrc] = s
	return s
}

// remove removes a stream that is not in the next report, and returns it. At most MaxBytes/12 of the streams are in a
// report.
func (r *CongestionRecorder) remove(at time.Duration) *receivedStream {
	for {
		for ssrc, s := range r.streams {
			if s.from == s.next {
				delete(r.streams, ssrc)
				return s
			}
		}
		r.close(at)
	}
}

// spend spends credit for numbers in reports, and reports whether there was enough.
func (r *CongestionRecorder) spend(numbers int64) bool {
	if numbers > r.credit {
		return false
	}
	r.credit -= numbers
	return true
}

// begins sets the epoch. The report clock starts from the current wall clock and does not follow later changes of it.
func (r *CongestionRecorder) begins(now time.Time) {
	r.epoch = now
	r.clock = (now.Unix()+ntpEpoch)<<16 + int64(now.Nanosecond())*tickRate/int64(time.Second)
	// The first report need not wait for a previous one.
	r.last = -r.cfg.IntervalMax
}

// restart starts a stream at a number.
func (s *receivedStream) restart(number int64) {
	s.begin, s.next, s.from, s.stale = number, number, number, 0
}

func (s *receivedStream) at(number int64) *arrivedPacket {
	return &s.arrivals[int(number)&(len(s.arrivals)-1)]
}

// late prepares the record of a packet that arrived after higher numbers, and returns its number. The number changes if
// the stream restarts; it is -1 for packets that are not recorded. If any copy of a packet has ECN-CE, ECN-CE is
// reported (RFC 8888 section 3.1).
func (r *CongestionRecorder) late(s *receivedStream, number int64, codepoint ecn.Codepoint, at time.Duration) int64 {
	fits := emptyCongestionReport+streamSize(s.next-number) <= r.cfg.MaxBytes
	switch {
	case number < max(s.begin, s.next-int64(len(s.arrivals))) || !fits:
		if s.stale++; s.stale <= maxStale {
			r.stats.Old++
			return -1
		}
		// Many old packets without a new one show that the sender has restarted.
		r.stats.Restarts++
		r.close(at)
		number = s.next - 1 + int64(uint16(number-(s.next-1)))
		s.restart(number)
		r.extend(s, at)
	case s.at(number).received:
		r.stats.Duplicates++
		if codepoint == ecn.CE && number >= s.from {
			s.at(number).ecn, r.marked = codepoint, true
		}
		return -1
	case number < s.from:
		// The numbers between are reported again.
		if !r.spend(s.from - number) {
			r.stats.Refused++
			return -1
		}
		r.reserve(s, number, s.next, at)
		s.from = number
	}
	return number
}

// advance adds the missing numbers before a number that is higher than all before, and the number, to the report. The
// stream restarts if too many are missing. advance returns the number, or -1 if the packet is not recorded.
func (r *CongestionRecorder) advance(s *receivedStream, number int64, at time.Duration) int64 {
	switch gap := number - s.next; {
	case gap <= maxStreamGap && r.spend(gap):
	case r.spend(restartCost):
		r.stats.Restarts++
		r.close(at)
		s.restart(number)
	default:
		r.stats.Refused++
		return -1
	}
	for s.next <= number {
		r.extend(s, at)
	}
	return number
}

// extend adds the next number of a stream, as missing, to the report.
func (r *CongestionRecorder) extend(s *receivedStream, at time.Duration) {
	r.reserve(s, s.next, s.next+1, at)
	if s.next-s.from == int64(len(s.arrivals)) {
		s.grow()
	}
	*s.at(s.next) = arrivedPacket{}
	s.next++
}

// reserve reserves space in the report for the numbers from from to below end of a stream, in addition to those already
// in the report. If there is too little, the current report is closed.
func (r *CongestionRecorder) reserve(s *receivedStream, from, end int64, at time.Duration) {
	gain := func() int { return streamSize(end-min(from, s.from)) - streamSize(s.next-s.from) }
	if r.size+gain() > r.cfg.MaxBytes {
		r.close(at)
	}
	r.size += gain()
	if s.from == s.next {
		r.waiting = append(r.waiting, s)
	}
}

// streamSize returns the size of a stream's numbers in a report.
func streamSize(numbers int64) int {
	if numbers == 0 {
		return 0
	}
	return congestionStream + 4*int((numbers+1)/2)
}

func (s *receivedStream) grow() {
	before := *s
	s.arrivals = make([]arrivedPacket, 2*len(before.arrivals))
	for number := max(s.begin, s.next-int64(len(before.arrivals))); number < s.next; number++ {
		*s.at(number) = *before.at(number)
	}
}

// Next returns the time of the next report, or the zero time if there is nothing to report. Received packets may change
// it. Reports are due as those of a TransportRecorder (see TransportRecorder.Next), at least every 200 ms, and at once
// if a report is full. With a packet that has ECN-CE, the report is due MarkedInterval after the last one, or at once
// if more time has passed, if the received bytes permit its size.
func (r *CongestionRecorder) Next() time.Time {
	switch {
	case len(r.closed) > 0:
		return r.epoch.Add(r.last)
	case r.packets == 0:
		return time.Time{}
	}
	interval := r.cfg.interval(r.bytes, r.cost())
	due := max(r.last+interval, r.first+interval/2)
	if r.marked && r.share >= float64(r.cost()) {
		due = min(due, max(r.last+r.cfg.MarkedInterval, r.latest))
	}
	return r.epoch.Add(due)
}

// cost returns the size of the next report on the wire.
func (r *CongestionRecorder) cost() int { return reportWireOverhead - emptyCongestionReport + r.size }

// AppendReports appends one report of at most MaxBytes to dst if one is due: an RTCP packet that may be a compound of
// reduced size (RFC 5506). The caller repeats the call until nothing is appended.
func (r *CongestionRecorder) AppendReports(dst []byte, now time.Time) []byte {
	if due := r.Next(); due.IsZero() || now.Before(due) {
		return dst
	}
	if len(r.closed) == 0 {
		r.close(now.Sub(r.epoch))
	}
	size := 4 * (int(binary.BigEndian.Uint16(r.closed[2:])) + 1)
	dst = append(dst, r.closed[:size]...)
	r.closed = r.closed[:copy(r.closed, r.closed[size:])]
	r.stats.Reports++
	return dst
}

// close completes the current report, as of now. The time of a report is not before the latest arrival, even if the
// caller read the clock before that arrival: the format has no offset for a later arrival, which would seem to have
// come early. One such packet lowers the sender's estimate of the empty path's delay, so that a queue seems to stand.
func (r *CongestionRecorder) close(now time.Duration) {
	if len(r.waiting) == 0 {
		return
	}
	now = max(now, r.latest)
	if len(r.closed)+r.size > maxClosed {
		r.closed = r.closed[:0]
		r.stats.Dropped++
	}
	report := &r.report
	report.Sender, report.Timestamp = r.sender,
		uint32(r.clock+int64(now/time.Second)<<16+int64(now%time.Second)*tickRate/int64(time.Second))
	report.Streams, report.arrivals = report.Streams[:0], report.arrivals[:0]
	for _, s := range r.waiting {
		first := len(report.arrivals)
		for number := s.from; number < s.next; number++ {
			p := s.at(number)
			report.arrivals = append(report.arrivals,
				PacketArrival{Received: p.received, ECN: p.ecn, Offset: ArrivalOffset(now - p.at)})
		}
		report.Streams = append(report.Streams,
			StreamReport{SSRC: s.ssrc, Begin: uint16(s.from), Packets: report.arrivals[first:]})
		s.from = s.next
	}
	r.share = max(r.share-float64(r.cost()), 0)
	// A stream has fewer packets than MaxBytes, which is far below the limits of the format.
	r.closed, _ = report.Append(r.closed)
	r.waiting, r.size = r.waiting[:0], emptyCongestionReport
	r.packets, r.bytes, r.marked, r.last = 0, 0, false, now
}
