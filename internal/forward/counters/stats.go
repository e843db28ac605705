package counters

import (
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// Traffic counts packets and bytes of RTP payload.
type Traffic struct{ Packets, Bytes uint64 }

// TrafficByKind counts traffic by kind.
type TrafficByKind struct {
	// Media is video without parity, retransmissions and probes. Parity is the redundancy of payload v1.
	Media, Parity, Audio Traffic
	// Retransmission counts RTX packets (RFC 4588). The media packets that received RTX packets carry count as media,
	// too.
	Retransmission Traffic
	// Probe counts packets that only fill probes: unrequested RTX packets to receivers, padding from publishers.
	Probe Traffic
}

// NACKOutcome counts packets requested by receivers, by outcome of the request.
type NACKOutcome struct {
	// Answered packets were retransmitted. Owed packets have not arrived from the publisher and are sent on arrival.
	// Unknown numbers belong to no packet.
	Answered, Owed, Unknown uint64
	// Expired packets have left the cache or would arrive too late. Suppressed packets were sent less than a round trip
	// before or are already queued for retransmission. Limited packets exceed the limits of one receiver. Refused
	// packets had no RTX stream or could not be written.
	Expired, Suppressed, Limited, Refused uint64
}

// Stats holds the counters of an engine since its start, and its gauges.
type Stats struct {
	Received, Sent TrafficByKind
	// FramesReceived counts frames opened on tracks, FramesForwarded frames begun on slots. Neither includes audio.
	FramesReceived, FramesForwarded uint64
	// Dropped counters count frames that a slot did not receive completely.
	//  - DroppedOverrun: the writer fell behind by more than a cache holds.
	//  - DroppedLate: the frame waited for the writer for longer than Config.MaxLag.
	//  - DroppedBudget: the frame waited in the receiver's pacer for longer than Config.QueueBudget.
	//  - DroppedExpired: the frame had begun, and its rest waited in the pacer beyond the receiver's deadline.
	//  - DroppedIncomplete: packets were lost on the way from the publisher, or the frame was left to a selected track
	//    that did not begin.
	//  - DroppedBlocked: the host's send buffer was full, or the receiver had not consented to receive (RFC 7675).
	//  - DroppedUnbound: the slot's media line was not negotiated, or not for the codec.
	DroppedOverrun, DroppedLate, DroppedBudget, DroppedExpired, DroppedIncomplete, DroppedBlocked, DroppedUnbound uint64
	Switches                                                                                                      uint64
	// SwitchDelay is the time from a slot's selection to the first packet of the new track. Residence is the time from
	// a packet's arrival until it was sent, per receiver, without the intended delay of the pacer. PacerHold is that
	// intended delay, most often 0, of every packet except audio and repairs; it is empty unless Paced.
	SwitchDelay, Residence, PacerHold trace.Histogram
	// FrameHold, FrameDistribution and FrameReception are times of frames of payload v1 to traced receivers: from
	// arrival of the first packet to its departure, from there to departure of the last packet, and from arrival of the
	// first packet to arrival of the last. TimesDropped counts frames whose times were not read in time.
	FrameHold, FrameDistribution, FrameReception trace.Histogram
	TimesDropped                                 uint64
	// Paced reports whether frames are spread (Config.Pacing).
	Paced       bool
	WriteErrors uint64

	// NACKsReceived and NACKsSent count RTCP packets. Requested counts the sequence numbers in the NACKs sent,
	// including repeated requests.
	NACKsReceived, NACKsSent, Requested uint64
	// Recovered, Delayed and Lost count packets of publishers, each once: retransmitted on request, requested but
	// arrived without retransmission, and given up.
	Recovered, Delayed, Lost uint64
	// RequestsLimited counts due requests for packets of publishers that were not sent, because the publisher had more
	// losses than packets sent.
	RequestsLimited uint64
	NACKed          NACKOutcome
	// TransportReports counts reports of arrivals from receivers, TransportReportsSent reports to publishers.
	// TransportDropped counts reports from receivers that were not read: they arrived faster than the writer read them,
	// or than feedback.MaxReportRate.
	TransportReports, TransportReportsSent, TransportDropped uint64
	// TransportReceived and TransportLost count packets to receivers by reported outcome. A packet that arrived after
	// it was reported lost counts as both. TransportUnmatched counts packets that were reported as received and do not
	// wait for a report: never sent, already reported, or given up. TransportMarked counts those of TransportReceived
	// that were reported with ECN-CE. TransportFalseMarks counts those that were reported with ECN-CE although they
	// left without ECT: these marks are ignored.
	TransportReceived, TransportLost, TransportUnmatched, TransportMarked, TransportFalseMarks uint64
	// Probes counts clusters of packets sent above a receiver's estimate, ProbesMeasured the clusters that yielded a
	// rate. Overuses counts detected overuses of receivers' paths, Silences the reductions of an estimate due to
	// missing feedback.
	Probes, ProbesMeasured, Overuses, Silences uint64
	// ECNFallbacks counts the ends of L4S on paths to receivers, by reason.
	ECNFallbacks [congestion.Fallbacks]uint64
	// Copied counts packets to receivers that left on a second path, too, by reason, with their bytes on the wire.
	// Outages counts outages of the primary paths of such receivers.
	Copied  [redundancy.Classes]Traffic
	Outages uint64
	// KeyFramesAsked counts PLI and FIR from receivers, KeyFramesAbsorbed the requests among them that need no key
	// frame, KeyFramesRequested PLI to publishers. KeyFramesLimited counts requests that were ignored because one
	// receiver asked too often; KeyFramesAsked does not include them.
	KeyFramesAsked, KeyFramesAbsorbed, KeyFramesRequested, KeyFramesLimited uint64
	// Malformed input is dropped. MalformedPayload counts packets of payload v1 with an invalid descriptor.
	MalformedRTP, MalformedPayload, MalformedRTCP uint64
	// UnknownSSRC counts packets of streams that were not bound when the packets arrived. Those of a new connection
	// count as received, too, if the stream is bound soon. Duplicates counts repeated packets, Late packets that are
	// too old to classify.
	UnknownSSRC, Duplicates, Late uint64

	Tracks, Slots, Receivers, Ingresses int
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of a track; the other slots are idle.
	ActiveSlots, WaitingSlots int
	// CacheBytes is the memory of the packet caches and of chunked frames.
	CacheBytes int64
}

// Take sets the counters from c.
func (s *Stats) Take(c *Counts) {
	traffic := func(packets, bytes Counter, k packetlog.Class) Traffic {
		return Traffic{Packets: c[packets+Counter(k)], Bytes: c[bytes+Counter(k)]}
	}
	kinds := func(packets, bytes Counter) TrafficByKind {
		return TrafficByKind{
			Media:          traffic(packets, bytes, packetlog.Media),
			Parity:         traffic(packets, bytes, packetlog.Parity),
			Audio:          traffic(packets, bytes, packetlog.Audio),
			Probe:          traffic(packets, bytes, packetlog.Probe),
			Retransmission: traffic(packets, bytes, packetlog.Retransmission),
		}
	}
	s.Received, s.Sent = kinds(ReceivedPackets, ReceivedBytes), kinds(SentPackets, SentBytes)
	s.FramesReceived, s.FramesForwarded = c[FramesReceived], c[FramesForwarded]
	s.DroppedOverrun, s.DroppedLate, s.DroppedBudget, s.DroppedUnbound = c[DroppedOverrun], c[DroppedLate],
		c[DroppedBudget], c[DroppedUnbound]
	s.DroppedExpired, s.DroppedIncomplete, s.DroppedBlocked = c[DroppedExpired], c[DroppedIncomplete], c[DroppedBlocked]
	s.Switches, s.WriteErrors, s.TimesDropped = c[Switches], c[WriteErrors], c[TimesDropped]
	s.NACKsReceived, s.NACKsSent = c[NacksReceived], c[NacksSent]
	s.Requested, s.RequestsLimited = c[RequestedPackets], c[RequestsLimited]
	s.Recovered, s.Delayed, s.Lost = c[RecoveredPackets], c[DelayedPackets], c[LostPackets]
	s.NACKed = NACKOutcome{
		Answered: c[NackedAnswered], Owed: c[NackedOwed], Unknown: c[NackedUnknown], Expired: c[NackedExpired],
		Suppressed: c[NackedSuppressed], Limited: c[NackedLimited], Refused: c[NackedRefused],
	}
	s.TransportReports, s.TransportReportsSent, s.TransportDropped = c[TransportReports], c[TransportReportsSent],
		c[TransportDropped]
	s.TransportReceived, s.TransportLost = c[TransportReceived], c[TransportLost]
	s.TransportUnmatched, s.TransportMarked, s.TransportFalseMarks = c[TransportUnmatched], c[TransportMarked],
		c[TransportFalseMarks]
	s.Probes, s.ProbesMeasured, s.Overuses, s.Silences = c[ProbesSent], c[ProbesMeasured], c[Overuses], c[Silences]
	copy(s.ECNFallbacks[:], c[ECNFallbacks:])
	for class := range s.Copied {
		s.Copied[class] = Traffic{Packets: c[int(CopiedPackets)+class], Bytes: c[int(CopiedBytes)+class]}
	}
	s.Outages = c[Outages]
	s.KeyFramesAsked, s.KeyFramesAbsorbed, s.KeyFramesRequested, s.KeyFramesLimited =
		c[KeyFramesAsked], c[KeyFramesAbsorbed], c[KeyFramesRequested], c[KeyFramesLimited]
	s.MalformedRTP, s.MalformedPayload, s.MalformedRTCP = c[MalformedRTP], c[MalformedPayload], c[MalformedRTCP]
	s.UnknownSSRC, s.Duplicates, s.Late = c[UnknownSSRC], c[DuplicatePackets], c[LatePackets]
}
