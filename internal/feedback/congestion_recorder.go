package feedback

import (
	"encoding/binary"
	"time"
)

// CongestionRecorderStats counts what a CongestionRecorder saw and did.
type CongestionRecorderStats struct {
	// Received is the number of packets recorded. Duplicates had been, Old ones came too late to be.
	Received, Duplicates, Old uint64
	// Restarts is how often the numbers of a stream began anew.
	Restarts uint64
	// Reports is the number of reports made, Dropped that of those that nobody fetched in time.
	Reports, Dropped uint64
}

// CongestionRecorder is the receiving side of congestion control by RFC 8888: it records when the packets of all streams of one transport arrived, by SSRC and
// sequence number, and reports it to their sender.
//
// Reports are cut by time: one that is full is closed, and what comes later is in the next. So each says everything of its time, whatever stream it came on, and
// the sender sees arrivals in their order.
//
// A packet is reported as lost once, when a later one of its stream has come. If it comes after all, the next report of the stream goes back to it.
//
// Memory is 16 bytes per number in the window of a stream, which holds what the next report says of it, and at least the last 256 numbers: 4 kB at first. Where
// MaxBytes is its default, a report has 540 numbers at most, and a window 1,024: 16 kB.
type CongestionRecorder struct {
	cfg    TransportFeedbackConfig
	sender uint32
	epoch  time.Time // times below count from here
	clock  int64     // what the clock of reports shows then, in 1/65,536 s
	stats  CongestionRecorderStats

	streams map[uint32]*receivedStream
	// waiting are the streams that the next report speaks of, size is that of the report in bytes.
	waiting []*receivedStream
	size    int
	report  CongestionReport
	// closed are full reports, one after the other.
	closed []byte

	packets int           // received since the last report
	bytes   int           // those of them
	first   time.Duration // when the first of them arrived
	last    time.Duration // when the last report was made
}

// receivedStream is what is known of one stream. Numbers are extended.
type receivedStream struct {
	ssrc     uint32
	arrivals []arrivedPacket // the packet with number n at n mod len, a power of two
	begin    int64           // lower numbers are not known
	next     int64           // follows the highest number that arrived
	from     int64           // the lowest number that the next report speaks of, next where it speaks of none
	stale    int             // packets in a row that were too old
}

// arrivedPacket is a number of a stream.
type arrivedPacket struct {
	at       time.Duration
	received bool
	ecn      ECN
}

const (
	// maxReportInterval is how long reports may be apart at most (RFC 8888 section 3 has 50 to 200 ms for them).
	maxReportInterval = 200 * time.Millisecond
	// reportWireOverhead is what a report takes on the wire beside its streams: 48 bytes for IPv6 and UDP, 20 for SRTCP, 12 of its own.
	reportWireOverhead = 48 + 20 + emptyCongestionReport
	// emptyCongestionReport is the size of a report of no stream.
	emptyCongestionReport = congestionHeader + congestionTimestamp
	// minRecorded numbers are 25 ms at 100 Mbit/s: so late a packet may come.
	minRecorded = 1 << 8
	// maxStreamGap is how many numbers a stream may jump over, and have reported as lost: more than half a second at 50 Mbit/s. Beyond, it begins anew.
	maxStreamGap = 1 << 12
	// maxClosed bounds the reports that wait to be fetched. At 1 Gbit/s they are 64 kB after 300 ms.
	maxClosed = 1 << 16
	// ntpEpoch is 1970 in NTP time, in seconds.
	ntpEpoch = 2_208_988_800
)

// NewCongestionRecorder makes a recorder for one transport, whose reports come from the SSRC sender. Of the configuration, no interval exceeds 200 ms.
func NewCongestionRecorder(cfg TransportFeedbackConfig, sender uint32) *CongestionRecorder {
	cfg.MaxBytes = max(cfg.MaxBytes, minReports)
	cfg.IntervalMax = min(cfg.IntervalMax, maxReportInterval)
	return &CongestionRecorder{cfg: cfg, sender: sender, streams: make(map[uint32]*receivedStream), size: emptyCongestionReport}
}

// Stats returns the counts so far.
func (r *CongestionRecorder) Stats() CongestionRecorderStats { return r.stats }

// Received records a packet with its size on the wire in bytes. ecn is NotECT where it is not known.
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

// begins makes times count from now. The clock of reports goes on from the wall clock as that is now, and does not follow it when it is set.
func (r *CongestionRecorder) begins(now time.Time) {
	r.epoch = now
	r.clock = (now.Unix()+ntpEpoch)<<16 + int64(now.Nanosecond())*tickRate/int64(time.Second)
	// The first report does not wait for one before.
	r.last = -r.cfg.IntervalMax
}

// restart makes a stream begin at a number.
func (s *receivedStream) restart(number int64) {
	s.begin, s.next, s.from, s.stale = number, number, number, 0
}

func (s *receivedStream) at(number int64) *arrivedPacket {
	return &s.arrivals[int(number)&(len(s.arrivals)-1)]
}

// late makes room for a packet that came after others with higher numbers, and returns its number. That is another one where the stream begins anew, and -1
// for packets that are not recorded.
func (r *CongestionRecorder) late(s *receivedStream, number int64, at time.Duration) int64 {
	fits := emptyCongestionReport+streamSize(s.next-number) <= r.cfg.MaxBytes
	switch {
	case number < max(s.begin, s.next-int64(len(s.arrivals))) || !fits:
		if s.stale++; s.stale <= maxStale {
			r.stats.Old++
			return -1
		}
		// So many old packets without a new one are those of a sender that began anew.
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

// extend adds the next number of a stream, as one that is missing, to the report.
func (r *CongestionRecorder) extend(s *receivedStream, at time.Duration) {
	r.reserve(s, s.next, s.next+1, at)
	if s.next-s.from == int64(len(s.arrivals)) {
		s.grow()
	}
	*s.at(s.next) = arrivedPacket{}
	s.next++
}

// reserve makes room in the report for the numbers of a stream from from to below end, besides those that it speaks of already. Where there is too little, what
// waits is closed as a report of its own.
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

// streamSize is what a stream with so many numbers takes in a report.
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

// Next is when the next report is due, the zero time while there is nothing to report. It changes with packets received. Reports are due as those of a
// TransportRecorder are (see TransportRecorder.Next), every 200 ms at least, and at once where one is full.
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

// AppendReports appends one report of at most MaxBytes to dst if one is due: an RTCP packet that may be a compound of reduced size (RFC 5506). It is to be
// called until it appends nothing.
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

// close makes the report of what waits, as of now.
func (r *CongestionRecorder) close(now time.Duration) {
	if len(r.waiting) == 0 {
		return
	}
	if len(r.closed)+r.size > maxClosed {
		r.closed = r.closed[:0]
		r.stats.Dropped++
	}
	report := &r.report
	report.Sender, report.Timestamp = r.sender, uint32(r.clock+int64(now/time.Second)<<16+int64(now%time.Second)*tickRate/int64(time.Second))
	report.Streams, report.arrivals = report.Streams[:0], report.arrivals[:0]
	for _, s := range r.waiting {
		first := len(report.arrivals)
		for number := s.from; number < s.next; number++ {
			p := s.at(number)
			report.arrivals = append(report.arrivals, PacketArrival{Received: p.received, ECN: p.ecn, Offset: ArrivalOffset(now - p.at)})
		}
		report.Streams = append(report.Streams, StreamReport{SSRC: s.ssrc, Begin: uint16(s.from), Packets: report.arrivals[first:]})
		s.from = s.next
	}
	// A stream has fewer packets than MaxBytes, which is far below the bounds of the format.
	r.closed, _ = report.Append(r.closed)
	r.waiting, r.size = r.waiting[:0], emptyCongestionReport
	r.packets, r.bytes, r.last = 0, 0, now
}
