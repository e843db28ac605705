package forward

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// counter names one count. Those by class of packet begin a range of four.
type counter int

const (
	receivedPackets = counter(0)
	receivedBytes   = receivedPackets + counter(classes)
	sentPackets     = receivedBytes + counter(classes)
	sentBytes       = sentPackets + counter(classes)
)

const (
	framesReceived = sentBytes + counter(classes) + iota
	framesForwarded
	droppedOverrun
	droppedLate
	droppedUnbound
	switches
	writeErrors

	nackedAnswered
	nackedOwed
	nackedUnknown
	nackedExpired
	nackedSuppressed
	nackedLimited
	nackedRefused

	nacksReceived
	nacksSent
	requestedPackets
	requestsLimited
	recoveredPackets
	lostPackets

	keyFramesAsked
	keyFramesAbsorbed
	keyFramesRequested

	malformedRTP
	malformedPayload
	malformedRTCP
	unknownSSRC
	duplicatePackets
	latePackets

	counters
)

// counts is a set of counts that one goroutine owns.
type counts [counters]uint64

// shard is a set of counts that any goroutine may read, and add to.
type shard [counters]atomic.Uint64

func (s *shard) add(c counter, n uint64) { s[c].Add(n) }

// addTo sums the shard into a set of counts.
func (s *shard) addTo(sum *counts) {
	for i := range s {
		sum[i] += s[i].Load()
	}
}

// merge adds counts to the shard and sets them back.
func (s *shard) merge(c *counts) {
	for i, n := range c {
		if n != 0 {
			s[i].Add(n)
			c[i] = 0
		}
	}
}

// Buckets of a histogram: bucket i counts durations up to 2^i microseconds, the last one all that are longer. 2^24 µs are 17 s.
const histogramBuckets = 26

// histogram counts durations: for the one goroutine that observes until publish, then for all.
type histogram struct {
	pending [histogramBuckets]uint32
	sum     time.Duration

	buckets [histogramBuckets]atomic.Uint64
	total   atomic.Int64
}

func (h *histogram) observe(d time.Duration) {
	// At least one nanosecond, so that a sum above 0 tells that there is something to publish.
	d = max(d, 1)
	// The number of bits of (µs rounded up) - 1 is the smallest i with µs ≤ 2^i.
	i := 0
	if d > time.Microsecond {
		i = bits.Len64(uint64((d+time.Microsecond-1)/time.Microsecond - 1))
	}
	h.pending[min(i, histogramBuckets-1)]++
	h.sum += d
}

// publish makes what was observed visible.
func (h *histogram) publish() {
	if h.sum == 0 {
		return
	}
	for i, n := range h.pending {
		if n != 0 {
			h.buckets[i].Add(uint64(n))
			h.pending[i] = 0
		}
	}
	h.total.Add(int64(h.sum))
	h.sum = 0
}

// addTo sums what is published.
func (h *histogram) addTo(sum *Histogram) {
	for i := range h.buckets {
		sum.Counts[i] += h.buckets[i].Load()
	}
	sum.Sum += time.Duration(h.total.Load())
}

// writerStats are what one writer counts: for itself while it forwards, for others whenever it rests.
type writerStats struct {
	counts      counts
	residence   histogram
	switchDelay histogram
	public      shard
	// active and waiting are the numbers of slots, up to a tenth of a second ago.
	active, waiting atomic.Int64
}

func (s *writerStats) publish() {
	s.public.merge(&s.counts)
	s.residence.publish()
	s.switchDelay.publish()
}

// Histogram counts durations: Counts[i] those of at most Bounds()[i] that exceed the bound before, the last one those beyond every bound.
type Histogram struct {
	Counts [histogramBuckets]uint64
	Sum    time.Duration
}

// Bounds are the upper bounds of all buckets but the last: 1 µs, 2 µs, 4 µs and so on to 17 s.
func (h *Histogram) Bounds() []time.Duration {
	bounds := make([]time.Duration, histogramBuckets-1)
	for i := range bounds {
		bounds[i] = time.Microsecond << i
	}
	return bounds
}

// Count is the number of durations.
func (h *Histogram) Count() uint64 {
	var n uint64
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Traffic counts packets, and bytes of RTP payload.
type Traffic struct{ Packets, Bytes uint64 }

// TrafficByKind counts traffic by what it is.
type TrafficByKind struct {
	// Media is video without what follows, Parity the redundancy of payload v1.
	Media, Parity, Audio Traffic
	// Retransmission counts RTX packets (RFC 4588); what they carried counts as media, too, where it is received.
	Retransmission Traffic
	// Probe counts packets of padding only.
	Probe Traffic
}

// NACKOutcome counts packets that receivers asked for, by what became of the request.
type NACKOutcome struct {
	// Answered were retransmitted. Owed have not come from the publisher and go out when they do. Unknown numbers stand for no packet.
	Answered, Owed, Unknown uint64
	// Expired have left the cache. Suppressed were sent less than a round trip before. Limited exceed what one receiver may ask
	// for. Refused had no RTX stream to go by, or could not be written.
	Expired, Suppressed, Limited, Refused uint64
}

// Stats are the counts of an engine since its start, and its gauges.
type Stats struct {
	Received, Sent TrafficByKind
	// FramesReceived counts frames opened on tracks, FramesForwarded frames begun on slots, both without audio.
	FramesReceived, FramesForwarded uint64
	// DroppedOverrun and DroppedLate count frames that slots did not get whole: because a writer fell behind by more than a cache holds, or
	// because the frame waited longer than Config.MaxLag. DroppedUnbound counts frames for slots whose line is not negotiated, or not for the codec.
	DroppedOverrun, DroppedLate, DroppedUnbound uint64
	Switches                                    uint64
	// SwitchDelay is from a slot's selection to the first packet of the new track; Residence from a packet's arrival until it was sent to the last receiver of a writer.
	SwitchDelay, Residence Histogram
	WriteErrors            uint64

	// NACKsReceived and NACKsSent count RTCP packets, Requested, Recovered and Lost packets of publishers: asked for, come after that, given up.
	NACKsReceived, NACKsSent, Requested, Recovered, Lost uint64
	// RequestsLimited counts packets of publishers that were not asked for when it was time, because one publisher missed more than it sent.
	RequestsLimited uint64
	NACKed          NACKOutcome
	// KeyFramesAsked counts PLI and FIR from receivers, KeyFramesAbsorbed those of them that need no key frame, KeyFramesRequested PLI to publishers.
	KeyFramesAsked, KeyFramesAbsorbed, KeyFramesRequested uint64
	// Malformed input is dropped. Payload counts packets of payload v1 whose descriptor is wrong.
	MalformedRTP, MalformedPayload, MalformedRTCP uint64
	// UnknownSSRC counts packets of streams that are not bound, Duplicates packets that had come before, Late packets too old to tell.
	UnknownSSRC, Duplicates, Late uint64

	Tracks, Slots, Receivers, Ingresses int
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of one; the other slots are idle.
	ActiveSlots, WaitingSlots int
	// CacheBytes is what the packet caches hold.
	CacheBytes int64
}

// Stats sums the counts of all writers and ingresses.
func (e *Engine) Stats() Stats {
	var sum counts
	s := Stats{
		Slots:     int(e.slots.Load()),
		Receivers: int(e.receivers.Load()),
	}
	for _, w := range e.writers {
		w.stats.public.addTo(&sum)
		w.stats.residence.addTo(&s.Residence)
		w.stats.switchDelay.addTo(&s.SwitchDelay)
		s.ActiveSlots += int(w.stats.active.Load())
		s.WaitingSlots += int(w.stats.waiting.Load())
	}
	e.mu.Lock()
	e.control.addTo(&sum)
	for i := range e.ingresses {
		i.stats.addTo(&sum)
	}
	s.Ingresses = len(e.ingresses)
	e.mu.Unlock()
	e.tracks.Range(func(_, t any) bool {
		s.Tracks++
		s.CacheBytes += t.(*Track).log.bytes.Load()
		return true
	})
	s.take(&sum)
	return s
}

// take names the counts.
func (s *Stats) take(c *counts) {
	traffic := func(packets, bytes counter, k class) Traffic {
		return Traffic{Packets: c[packets+counter(k)], Bytes: c[bytes+counter(k)]}
	}
	kinds := func(packets, bytes counter) TrafficByKind {
		return TrafficByKind{
			Media:          traffic(packets, bytes, classMedia),
			Parity:         traffic(packets, bytes, classParity),
			Audio:          traffic(packets, bytes, classAudio),
			Probe:          traffic(packets, bytes, classProbe),
			Retransmission: traffic(packets, bytes, classRetransmission),
		}
	}
	s.Received, s.Sent = kinds(receivedPackets, receivedBytes), kinds(sentPackets, sentBytes)
	s.FramesReceived, s.FramesForwarded = c[framesReceived], c[framesForwarded]
	s.DroppedOverrun, s.DroppedLate, s.DroppedUnbound = c[droppedOverrun], c[droppedLate], c[droppedUnbound]
	s.Switches, s.WriteErrors = c[switches], c[writeErrors]
	s.NACKsReceived, s.NACKsSent = c[nacksReceived], c[nacksSent]
	s.Requested, s.Recovered, s.Lost, s.RequestsLimited = c[requestedPackets], c[recoveredPackets], c[lostPackets], c[requestsLimited]
	s.NACKed = NACKOutcome{
		Answered: c[nackedAnswered], Owed: c[nackedOwed], Unknown: c[nackedUnknown], Expired: c[nackedExpired],
		Suppressed: c[nackedSuppressed], Limited: c[nackedLimited], Refused: c[nackedRefused],
	}
	s.KeyFramesAsked, s.KeyFramesAbsorbed, s.KeyFramesRequested = c[keyFramesAsked], c[keyFramesAbsorbed], c[keyFramesRequested]
	s.MalformedRTP, s.MalformedPayload, s.MalformedRTCP = c[malformedRTP], c[malformedPayload], c[malformedRTCP]
	s.UnknownSSRC, s.Duplicates, s.Late = c[unknownSSRC], c[duplicatePackets], c[latePackets]
}
