package feedback

import "time"

// TransportRecorderStats are the counters of a TransportRecorder.
type TransportRecorderStats struct {
	// Received counts recorded packets, Duplicates packets recorded before, Old packets too late to be recorded.
	Received, Duplicates, Old uint64
	// Dropped counts packets recorded and never reported, because numbers jumped too far.
	Dropped uint64
	// Restarts counts the restarts of the numbers.
	Restarts uint64
	// Reports counts the RTCP packets made.
	Reports uint64
}

// TransportRecorder is the receiving side of transport-wide congestion control
// (draft-holmer-rmcat-transport-wide-cc-extensions-01): it records the arrivals of the packets of one transport, and
// reports them to their sender.
//
// A number is reported as lost once, when a later one has arrived. If its packet arrives after all, a following report
// includes it, as in libwebrtc. That takes a report of its own unless the number is close to others: otherwise every
// report would be repeated on a path with jitter.
//
// Memory is 4.25 bytes per number in a window that covers unreported packets and the packets of the last 500 ms: 4.4 kB
// at first, 139 kB at most, from 32,768 packets per second on, or after a jump of that size. Recording a packet takes
// constant time for any number.
type TransportRecorder struct {
	cfg   TransportFeedbackConfig
	epoch time.Time // origin of ticks and times below
	stats TransportRecorderStats

	ticks    []uint32  // arrival of packet n, in units of 250 µs, at index n mod len
	received numberSet // of the numbers from begin to below next
	fresh    numberSet // packets of received that were not reported
	started  bool
	begin    int64 // lower numbers are too old
	next     int64 // one after the highest number that arrived
	covered  int64 // one after the highest number reported, as received or lost
	stale    int   // consecutive packets that were too old

	waiting  int           // size of fresh
	bytes    int           // received since the last report
	first    time.Duration // arrival of the first packet since the last report
	last     time.Duration // time of the last report
	draining bool          // a due report is not complete
	count    uint8         // reports so far, modulo 256
	encoder  transportEncoder
}

const (
	// deltaTick is the unit of arrival times in feedback; 256 of them are the unit of reference times.
	deltaTick = 250 * time.Microsecond
	// minWindow numbers are 500 ms at 20 Mbit/s.
	minWindow = 1 << 10
	// maxWindow is half of the range of 16-bit numbers.
	maxWindow = 1 << 15
	// maxLateness is the maximum age of packets that are kept to distinguish late packets from losses, as in libwebrtc.
	// Estimators have forgotten older ones.
	maxLateness = 500 * time.Millisecond
	// firstReordering bounds the numbers of packets that arrive after the first one and precede it: the maximum
	// distance of two packets at a start for an Unwrapper.
	firstReordering = maxConfirm
	// maxStale is the number of consecutive packets older than the window that count as late. More show that the sender
	// has restarted: no path delivers so many old packets without a new one.
	maxStale = 64
	// maxMerge is the largest gap of numbers between two late ones that is reported again rather than omitted with a
	// report of its own: each number takes 1.15 bytes (a delta and a seventh of a chunk), a report 20 for its header, 2
	// for a chunk and padding.
	maxMerge = 20
	// minReports is a limit that every packet fits: a header of 20 bytes, 9 chunks for a jump over the whole window,
	// and a delta are 40 bytes.
	minReports = 64
	// reportOverhead is the size of a report on the wire without its statuses: 48 bytes for IPv6 and UDP, 20 for SRTCP,
	// 20 for its header.
	reportOverhead = 88
)

// NewTransportRecorder returns a recorder for one transport.
func NewTransportRecorder(cfg TransportFeedbackConfig) *TransportRecorder {
	cfg.MaxBytes = max(cfg.MaxBytes, minReports)
	return &TransportRecorder{cfg: cfg}
}

// Stats returns the counters.
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

// begins starts the window at a number that arrived.
func (r *TransportRecorder) begins(number int64, now time.Time) {
	if !r.started {
		r.started, r.epoch = true, now
		// The first report need not wait for a previous one.
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

// drop moves the start of the window up.
func (r *TransportRecorder) drop(begin int64) {
	dropped := r.waiting
	if begin >= r.next {
		// A peer that jumps this far with every packet would cause the whole window to be counted each time.
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

// makeRoom extends the window to a number higher than all before: it removes old numbers, grows, or gives up the lowest
// numbers.
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

// expire removes the lowest numbers that were reported and whose packets are old.
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
