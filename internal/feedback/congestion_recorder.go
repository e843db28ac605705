package feedback

import (
	"encoding/binary"
	"time"
)

// CongestionRecorderStats are the counters of a CongestionRecorder.
type CongestionRecorderStats struct {
	// Received counts recorded packets, Duplicates packets recorded before, Old packets too late to be recorded.
	Received, Duplicates, Old uint64
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
// Memory is 16 bytes per number in the window of a stream, which covers the numbers of the next report, and at least
// the last 256 numbers: 4 kB at first. With the default MaxBytes, a report has 540 numbers at most, and a window 1,024:
// 16 kB.
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
	first   time.Duration // arrival of the first of these packets
	last    time.Duration // time of the last report
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
	ecn      ECN
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
		size: emptyCongestionReport}
}

// Stats returns the counters.
func (r *CongestionRecorder) Stats() CongestionRecorderStats { return r.stats }

// Received records a packet with its size on the wire in bytes. ecn is NotECT if it is unknown.
func (r *CongestionRecorder) Received(ssrc uint32, sequence uint16, size int, ecn ECN, now time.Time) {
	if r.epoch.IsZero() {
		r.begins(now)
	}
	at := now.Sub(r.epoch)
	s := r.streams[ssrc]
	if s == nil {
		s = &receivedStream{ssrc: ssrc, arrivals: make([]arrivedPacket, minRecorded)}
		r.streams[ssrc] = s
		s.restart(firstCycle + int64(sequence))
	}
	newest := s.next - 1
	number := newest + int64(int16(sequence-uint16(newest)))
	if number < s.next {
		if number = r.late(s, number, at); number < 0 {
			return
		}
	} else {
		if number-s.next > maxStreamGap {
			r.stats.Restarts++
			r.close(at)
			s.restart(number)
		}
		for s.next < number {
			r.extend(s, at)
		}
		r.extend(s, at)
	}
	s.stale = 0
	*s.at(number) = arrivedPacket{at: at, received: true, ecn: ecn}
	if r.packets == 0 {
		r.first = at
	}
	r.packets++
	r.bytes += size
	r.stats.Received++
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
// the stream restarts; it is -1 for packets that are not recorded.
func (r *CongestionRecorder) late(s *receivedStream, number int64, at time.Duration) int64 {
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
		return -1
	case number < s.from:
		r.reserve(s, number, s.next, at)
		s.from = number
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
// if a report is full.
func (r *CongestionRecorder) Next() time.Time {
	switch {
	case len(r.closed) > 0:
		return r.epoch.Add(r.last)
	case r.packets == 0:
		return time.Time{}
	}
	interval := r.cfg.interval(r.bytes, reportWireOverhead-emptyCongestionReport+r.size)
	return r.epoch.Add(max(r.last+interval, r.first+interval/2))
}

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

// close completes the current report, as of now.
func (r *CongestionRecorder) close(now time.Duration) {
	if len(r.waiting) == 0 {
		return
	}
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
	// A stream has fewer packets than MaxBytes, which is far below the limits of the format.
	r.closed, _ = report.Append(r.closed)
	r.waiting, r.size = r.waiting[:0], emptyCongestionReport
	r.packets, r.bytes, r.last = 0, 0, now
}
