package forward

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// counter names one count. Those by class of packet begin a range with one for each class.
type counter int

const (
	receivedPackets = counter(0)
	receivedBytes   = receivedPackets + counter(packetlog.Classes)
	sentPackets     = receivedBytes + counter(packetlog.Classes)
	sentBytes       = sentPackets + counter(packetlog.Classes)
)

const (
	framesReceived = sentBytes + counter(packetlog.Classes) + iota
	framesForwarded
	droppedOverrun
	droppedLate
	droppedBudget
	droppedExpired
	droppedBlocked
	droppedIncomplete
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
	delayedPackets
	lostPackets

	transportReports
	transportReportsSent
	transportReceived
	transportLost
	transportDropped

	probesSent
	probesMeasured
	overuses
	silences

	keyFramesAsked
	keyFramesAbsorbed
	keyFramesRequested
	keyFramesLimited

	timesDropped

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

// writerStats are what one writer counts: for itself while it forwards, for others whenever it rests.
type writerStats struct {
	counts      counts
	residence   histogram
	hold        histogram
	switchDelay histogram
	// frameHold, frameDistribution and frameReception are those of traced frames.
	frameHold, frameDistribution, frameReception histogram

	public shard
	// active and waiting are the numbers of slots, up to a tenth of a second ago.
	active, waiting atomic.Int64
}

func (s *writerStats) publish() {
	s.public.merge(&s.counts)
	s.residence.publish()
	s.hold.publish()
	s.switchDelay.publish()
	s.frameHold.publish()
	s.frameDistribution.publish()
	s.frameReception.publish()
}

// Traffic counts packets, and bytes of RTP payload.
type Traffic struct{ Packets, Bytes uint64 }

// TrafficByKind counts traffic by what it is.
type TrafficByKind struct {
	// Media is video without what follows, Parity the redundancy of payload v1.
	Media, Parity, Audio Traffic
	// Retransmission counts RTX packets (RFC 4588); what they carried counts as media, too, where it is received.
	Retransmission Traffic
	// Probe counts what is sent to fill probes and is of no use otherwise: RTX packets that nobody asked for to receivers, padding from publishers.
	Probe Traffic
}

// NACKOutcome counts packets that receivers asked for, by what became of the request.
type NACKOutcome struct {
	// Answered were retransmitted. Owed have not come from the publisher and go out when they do. Unknown numbers stand for no packet.
	Answered, Owed, Unknown uint64
	// Expired have left the cache, or would come too late to be of use. Suppressed were sent less than a round trip before, or wait to be. Limited exceed what
	// one receiver may ask for. Refused had no RTX stream to go by, or could not be written.
	Expired, Suppressed, Limited, Refused uint64
}

// Stats are the counts of an engine since its start, and its gauges.
type Stats struct {
	Received, Sent TrafficByKind
	// FramesReceived counts frames opened on tracks, FramesForwarded frames begun on slots, both without audio.
	FramesReceived, FramesForwarded uint64
	// DroppedOverrun, DroppedLate and DroppedBudget count frames that slots did not get whole: because a writer fell behind by more than a cache holds,
	// because the frame waited longer than Config.MaxLag for the writer, or longer than Config.QueueBudget for its receiver's pacer. DroppedExpired frames had begun,
	// and their rest waited there beyond the receiver's deadline; of DroppedIncomplete ones the publisher's packets did not come. DroppedBlocked frames found no room in the host's
	// send buffer, or their receiver did not consent to being sent anything. DroppedUnbound counts frames for slots whose
	// line is not negotiated, or not for the codec.
	DroppedOverrun, DroppedLate, DroppedBudget, DroppedExpired, DroppedIncomplete, DroppedBlocked, DroppedUnbound uint64
	Switches                                                                                                      uint64
	// SwitchDelay is from a slot's selection to the first packet of the new track. Residence is from a packet's arrival until it was sent, for each receiver,
	// without the time that the pacer intended to hold it. That is PacerHold, of every packet but audio and repairs, most often 0; it is empty unless Paced.
	SwitchDelay, Residence, PacerHold Histogram
	// FrameHold, FrameDistribution and FrameReception are those of frames of payload v1 to receivers that are traced: from the first packet's arrival to its leaving,
	// from there to the last packet's leaving, and from the first packet's arrival to the last one's. TimesDropped are frames whose times nobody took in time.
	FrameHold, FrameDistribution, FrameReception Histogram
	TimesDropped                                 uint64
	// Paced tells whether frames are spread (Config.Pacing).
	Paced       bool
	WriteErrors uint64

	// NACKsReceived and NACKsSent count RTCP packets. Requested counts the sequence numbers in those sent, repeated
	// requests included.
	NACKsReceived, NACKsSent, Requested uint64
	// Recovered, Delayed and Lost count packets of publishers, each once: those retransmitted on request, those requested
	// that came by themselves, and those given up.
	Recovered, Delayed, Lost uint64
	// RequestsLimited counts packets of publishers that were not asked for when it was time, because one publisher missed more than it sent.
	RequestsLimited uint64
	NACKed          NACKOutcome
	// TransportReports counts receivers' reports about all packets of their connection (transport-wide feedback), TransportReportsSent those to publishers.
	// TransportDropped came faster than the writer read them.
	TransportReports, TransportReportsSent, TransportDropped uint64
	// TransportReceived and TransportLost count packets to receivers by what was reported of them. One that came after it was reported lost counts as both.
	TransportReceived, TransportLost uint64
	// Probes counts clusters of packets sent above a receiver's estimate, ProbesMeasured those of them that gave a rate. Overuses is how often paths of receivers
	// were found overused, Silences how often an estimate was reduced because no feedback came.
	Probes, ProbesMeasured, Overuses, Silences uint64
	// KeyFramesAsked counts PLI and FIR from receivers, KeyFramesAbsorbed those of them that need no key frame, KeyFramesRequested PLI to publishers. KeyFramesLimited are those
	// that were not looked at, because one receiver asked too often; they are none of those asked.
	KeyFramesAsked, KeyFramesAbsorbed, KeyFramesRequested, KeyFramesLimited uint64
	// Malformed input is dropped. Payload counts packets of payload v1 whose descriptor is wrong.
	MalformedRTP, MalformedPayload, MalformedRTCP uint64
	// UnknownSSRC counts packets of streams that are not bound, Duplicates packets that had come before, Late packets too old to tell.
	UnknownSSRC, Duplicates, Late uint64

	Tracks, Slots, Receivers, Ingresses int
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of one; the other slots are idle.
	ActiveSlots, WaitingSlots int
	// CacheBytes is what the packet caches hold, and frames in pieces.
	CacheBytes int64
}

// Stats sums the counts of all writers and ingresses.
func (e *Engine) Stats() Stats {
	var sum counts
	s := Stats{
		Paced:      e.paced(),
		Slots:      int(e.slots.Load()),
		CacheBytes: e.pieces.used.Load(),
	}
	for _, w := range e.writers {
		w.stats.public.addTo(&sum)
		w.stats.residence.addTo(&s.Residence)
		w.stats.hold.addTo(&s.PacerHold)
		w.stats.switchDelay.addTo(&s.SwitchDelay)
		w.stats.frameHold.addTo(&s.FrameHold)
		w.stats.frameDistribution.addTo(&s.FrameDistribution)
		w.stats.frameReception.addTo(&s.FrameReception)
		s.ActiveSlots += int(w.stats.active.Load())
		s.WaitingSlots += int(w.stats.waiting.Load())
	}
	e.mu.Lock()
	e.control.addTo(&sum)
	for i := range e.ingresses {
		i.stats.addTo(&sum)
	}
	s.Ingresses, s.Receivers = len(e.ingresses), len(e.open)
	e.mu.Unlock()
	e.tracks.Range(func(_, t any) bool {
		s.Tracks++
		s.CacheBytes += t.(*Track).log.Bytes()
		return true
	})
	s.take(&sum)
	return s
}

// take names the counts.
func (s *Stats) take(c *counts) {
	traffic := func(packets, bytes counter, k packetlog.Class) Traffic {
		return Traffic{Packets: c[packets+counter(k)], Bytes: c[bytes+counter(k)]}
	}
	kinds := func(packets, bytes counter) TrafficByKind {
		return TrafficByKind{
			Media:          traffic(packets, bytes, packetlog.Media),
			Parity:         traffic(packets, bytes, packetlog.Parity),
			Audio:          traffic(packets, bytes, packetlog.Audio),
			Probe:          traffic(packets, bytes, packetlog.Probe),
			Retransmission: traffic(packets, bytes, packetlog.Retransmission),
		}
	}
	s.Received, s.Sent = kinds(receivedPackets, receivedBytes), kinds(sentPackets, sentBytes)
	s.FramesReceived, s.FramesForwarded = c[framesReceived], c[framesForwarded]
	s.DroppedOverrun, s.DroppedLate, s.DroppedBudget, s.DroppedUnbound = c[droppedOverrun], c[droppedLate], c[droppedBudget], c[droppedUnbound]
	s.DroppedExpired, s.DroppedIncomplete, s.DroppedBlocked = c[droppedExpired], c[droppedIncomplete], c[droppedBlocked]
	s.Switches, s.WriteErrors, s.TimesDropped = c[switches], c[writeErrors], c[timesDropped]
	s.NACKsReceived, s.NACKsSent = c[nacksReceived], c[nacksSent]
	s.Requested, s.RequestsLimited = c[requestedPackets], c[requestsLimited]
	s.Recovered, s.Delayed, s.Lost = c[recoveredPackets], c[delayedPackets], c[lostPackets]
	s.NACKed = NACKOutcome{
		Answered: c[nackedAnswered], Owed: c[nackedOwed], Unknown: c[nackedUnknown], Expired: c[nackedExpired],
		Suppressed: c[nackedSuppressed], Limited: c[nackedLimited], Refused: c[nackedRefused],
	}
	s.TransportReports, s.TransportReportsSent, s.TransportDropped = c[transportReports], c[transportReportsSent], c[transportDropped]
	s.TransportReceived, s.TransportLost = c[transportReceived], c[transportLost]
	s.Probes, s.ProbesMeasured, s.Overuses, s.Silences = c[probesSent], c[probesMeasured], c[overuses], c[silences]
	s.KeyFramesAsked, s.KeyFramesAbsorbed, s.KeyFramesRequested, s.KeyFramesLimited =
		c[keyFramesAsked], c[keyFramesAbsorbed], c[keyFramesRequested], c[keyFramesLimited]
	s.MalformedRTP, s.MalformedPayload, s.MalformedRTCP = c[malformedRTP], c[malformedPayload], c[malformedRTCP]
	s.UnknownSSRC, s.Duplicates, s.Late = c[unknownSSRC], c[duplicatePackets], c[latePackets]
}
