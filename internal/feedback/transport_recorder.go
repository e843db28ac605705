package feedback

import "time"

// TransportRecorderStats counts what a TransportRecorder saw and did.
type TransportRecorderStats struct {
	// Received is the number of packets recorded. Duplicates had been, Old ones came too late to be.
	Received, Duplicates, Old uint64
	// Dropped is the number of packets recorded and never reported, because numbers jumped too far.
	Dropped uint64
	// Restarts is how often the numbers began anew.
	Restarts uint64
	// Reports is the number of RTCP packets made.
	Reports uint64
}

// TransportRecorder is the receiving side of transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01): it records when the
// packets of one transport arrived, and reports it to their sender.
//
// A number is reported as lost once, when a later one has come. If its packet comes after all, a following report goes back to it, as libwebrtc's do. That
// costs a report of its own unless it lies close to others: a jittery path would have every report repeated otherwise.
//
// Memory is 4.25 bytes per number in a window that holds what was not reported and what came in the last half second: 4.4 kB at first, 139 kB at most, so
// large from 32,768 packets per second on, or when numbers jump so far. Recording a packet takes constant time whatever its number is.
type TransportRecorder struct {
	cfg   TransportFeedbackConfig
	epoch time.Time // ticks and times below count from here
	stats TransportRecorderStats

	ticks    []uint32  // when the packet with number n arrived, in units of 250 µs, at n mod len
	received numberSet // of the numbers from begin to below next
	fresh    numberSet // those of received that were not reported
	started  bool
	begin    int64 // lower numbers are too old
	next     int64 // follows the highest number that arrived
	covered  int64 // follows the highest number reported, whether as received or lost
	stale    int   // packets in a row that were too old

	waiting  int           // the size of fresh
	bytes    int           // received since the last report
	first    time.Duration // when the first packet since then arrived
	last     time.Duration // when the last report was made
	draining bool          // a report that fell due is not complete
	count    uint8         // reports so far, modulo 256
	encoder  transportEncoder
}

const (
	// deltaTick is the unit of arrival times in feedback, and 256 of them that of reference times.
	deltaTick = 250 * time.Microsecond
	// minWindow numbers are half a second at 20 Mbit/s.
	minWindow = 1 << 10
	// maxWindow is what 16 bits tell apart in both directions.
	maxWindow = 1 << 15
	// maxLateness is the age of the oldest packets that late ones are told from losses by, as in libwebrtc. Estimators have forgotten older ones.
	maxLateness = 500 * time.Millisecond
	// firstReordering is how far before the first packet to arrive others may be numbered that come later: as far as two packets of a beginning may lie
	// from each other for an Unwrapper.
	firstReordering = maxConfirm
	// maxStale is how many packets in a row are taken for late ones that are older than the window. More are those of a sender that began anew: a path
	// that delivers so many old packets without a single new one has none.
	maxStale = 64
	// maxMerge is how many numbers between two late ones are reported again rather than leaving them out by a report of its own: each takes 1.15 bytes
	// (a delta and a seventh of a chunk), a report 20 for its header, 2 for a chunk and padding.
	maxMerge = 20
	// minReports is a limit that every packet fits: a header of 20 bytes, 9 chunks for a jump over the whole window, and a delta are 40 bytes.
	minReports = 64
	// reportOverhead is what a report takes on the wire beside its statuses: 48 bytes for IPv6 and UDP, 20 for SRTCP, 20 for its header.
	reportOverhead = 88
)

// NewTransportRecorder makes a recorder for one transport.
func NewTransportRecorder(cfg TransportFeedbackConfig) *TransportRecorder {
	cfg.MaxBytes = max(cfg.MaxBytes, minReports)
	return &TransportRecorder{cfg: cfg}
}

// Stats returns the counts so far.
func (r *TransportRecorder) Stats() TransportRecorderStats { return r.stats }

// Received records a packet with its transport-wide sequence number and its size on the wire in bytes.
func (r *TransportRecorder) Received(sequence uint16, size int, now time.Time) {
	if !r.started {
		r.begins(firstCycle+int64(sequence), now)
	}
	newest := r.next - 1
	number := newest + int64(int16(sequence-uint16(newest)))
	switch {
	case number >= r.next:
		if number-r.begin >= int64(len(r.ticks)) {
			r.makeRoom(number, now)
		}
		r.next = number + 1
	case number < r.begin:
		if r.stale++; r.stale <= maxStale {
			r.stats.Old++
			return
		}
		r.stats.Restarts++
		number = newest + int64(sequence-uint16(newest))
		r.forget()
		r.begins(number, now)
		r.next++
	case r.received.has(number):
		r.stats.Duplicates++
		return
	}
	at := now.Sub(r.epoch)
	r.stale = 0
	r.ticks[int(number)&(len(r.ticks)-1)] = uint32(at / deltaTick)
	r.received.add(number)
	r.fresh.add(number)
	if r.waiting == 0 {
		r.first = at
	}
	r.waiting++
	r.bytes += size
	r.stats.Received++
}

// begins makes the window begin at a number that arrived.
func (r *TransportRecorder) begins(number int64, now time.Time) {
	if !r.started {
		r.started, r.epoch = true, now
		// The first report does not wait for one before.
		r.last = -r.cfg.IntervalMax
		r.ticks = make([]uint32, minWindow)
		r.received, r.fresh = newNumberSet(minWindow), newNumberSet(minWindow)
	}
	r.begin, r.next, r.covered = number-firstReordering, number, number
}

// forget forgets all packets.
func (r *TransportRecorder) forget() {
	r.drop(r.next)
	r.draining, r.bytes, r.stale = false, 0, 0
}

// drop moves the beginning of the window up.
func (r *TransportRecorder) drop(begin int64) {
	dropped := r.waiting
	if begin >= r.next {
		// A peer that jumps so far with every packet would have whole windows counted.
		r.received.clear()
		r.fresh.clear()
	} else {
		r.received.removeRange(r.begin, begin)
		dropped = r.fresh.removeRange(r.begin, begin)
	}
	r.waiting -= dropped
	r.stats.Dropped += uint64(dropped)
	r.begin, r.covered = begin, max(r.covered, begin)
}

// makeRoom makes the window hold a number higher than all before: it leaves out what is old, grows, or gives up the lowest numbers.
func (r *TransportRecorder) makeRoom(number int64, now time.Time) {
	r.expire(now)
	size := len(r.ticks)
	for size < maxWindow && number-r.begin >= int64(size) {
		size *= 2
	}
	if size > len(r.ticks) {
		r.grow(size)
	}
	if begin := number - int64(size) + 1; begin > r.begin {
		r.drop(begin)
		// There may be no packet left below the number.
		r.next = max(r.next, begin)
	}
}

func (r *TransportRecorder) grow(size int) {
	ticks, received, fresh := make([]uint32, size), newNumberSet(size), newNumberSet(size)
	for number := r.received.next(r.begin, r.next); number < r.next; number = r.received.next(number+1, r.next) {
		ticks[int(number)&(size-1)] = r.tick(number)
	}
	received.copyFrom(r.received, r.begin, r.next)
	fresh.copyFrom(r.fresh, r.begin, r.next)
	r.ticks, r.received, r.fresh = ticks, received, fresh
}

// expire leaves out the lowest numbers that were reported and whose packets are old.
func (r *TransportRecorder) expire(now time.Time) {
	oldest := uint32((now.Sub(r.epoch) - maxLateness) / deltaTick)
	for r.begin < r.covered {
		number := r.received.next(r.begin, r.covered)
		if number == r.covered || r.fresh.has(number) || int32(r.tick(number)-oldest) >= 0 {
			return
		}
		r.received.remove(number)
		r.begin = number + 1
	}
}

func (r *TransportRecorder) tick(number int64) uint32 { return r.ticks[int(number)&(len(r.ticks)-1)] }
