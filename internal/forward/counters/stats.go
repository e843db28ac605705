package counters

import (
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/forward/trace"
)

// Traffic counts packets, and bytes of RTP payload.
type Traffic struct{ Packets, Bytes uint64 }

// TrafficByKind counts traffic by what it is.
type TrafficByKind struct {
	// Media is video without what follows, Parity the redundancy of payload v1.
	Media, Parity, Audio Traffic
	// Retransmission counts RTX packets (RFC 4588); what they carried counts as media, too, where it is received.
	Retransmission Traffic
	// Probe counts what is sent to fill probes and is of no use otherwise: RTX packets that nobody asked for to
	// receivers, padding from publishers.
	Probe Traffic
}

// NACKOutcome counts packets that receivers asked for, by what became of the request.
type NACKOutcome struct {
	// Answered were retransmitted. Owed have not come from the publisher and go out when they do. Unknown numbers stand
	// for no packet.
	Answered, Owed, Unknown uint64
	// Expired have left the cache, or would come too late to be of use. Suppressed were sent less than a round trip
	// before, or wait to be. Limited exceed what one receiver may ask for. Refused had no RTX stream to go by, or could
	// not be written.
	Expired, Suppressed, Limited, Refused uint64
}

// Stats are the counts of an engine since its start, and its gauges.
type Stats struct {
	Received, Sent TrafficByKind
	// FramesReceived counts frames opened on tracks, FramesForwarded frames begun on slots, both without audio.
	FramesReceived, FramesForwarded uint64
	// DroppedOverrun, DroppedLate and DroppedBudget count frames that slots did not get whole: because a writer fell
	// behind by more than a cache holds, because the frame waited longer than Config.MaxLag for the writer, or longer
	// than Config.QueueBudget for its receiver's pacer. DroppedExpired frames had begun, and their rest waited there
	// beyond the receiver's deadline; of DroppedIncomplete ones the publisher's packets did not come. DroppedBlocked
	// frames found no room in the host's send buffer, or their receiver did not consent to being sent anything.
	// DroppedUnbound counts frames for slots whose line is not negotiated, or not for the codec.
	DroppedOverrun, DroppedLate, DroppedBudget, DroppedExpired, DroppedIncomplete, DroppedBlocked, DroppedUnbound uint64
	Switches                                                                                                      uint64
	// SwitchDelay is from a slot's selection to the first packet of the new track. Residence is from a packet's arrival
	// until it was sent, for each receiver, without the time that the pacer intended to hold it. That is PacerHold, of
	// every packet but audio and repairs, most often 0; it is empty unless Paced.
	SwitchDelay, Residence, PacerHold trace.Histogram
	// FrameHold, FrameDistribution and FrameReception are those of frames of payload v1 to receivers that are traced:
	// from the first packet's arrival to its leaving, from there to the last packet's leaving, and from the first
	// packet's arrival to the last one's. TimesDropped are frames whose times nobody took in time.
	FrameHold, FrameDistribution, FrameReception trace.Histogram
	TimesDropped                                 uint64
	// Paced reports whether frames are spread (Config.Pacing).
	Paced       bool
	WriteErrors uint64

	// NACKsReceived and NACKsSent count RTCP packets. Requested counts the sequence numbers in those sent, repeated
	// requests included.
	NACKsReceived, NACKsSent, Requested uint64
	// Recovered, Delayed and Lost count packets of publishers, each once: those retransmitted on request, those
	// requested that came by themselves, and those given up.
	Recovered, Delayed, Lost uint64
	// RequestsLimited counts packets of publishers that were not asked for when it was time, because one publisher
	// missed more than it sent.
	RequestsLimited uint64
	NACKed          NACKOutcome
	// TransportReports counts receivers' reports about all packets of their connection (transport-wide feedback),
	// TransportReportsSent those to publishers. TransportDropped came faster than the writer read them.
	TransportReports, TransportReportsSent, TransportDropped uint64
	// TransportReceived and TransportLost count packets to receivers by what was reported of them. One that came after
	// it was reported lost counts as both.
	TransportReceived, TransportLost uint64
	// Probes counts clusters of packets sent above a receiver's estimate, ProbesMeasured those of them that gave a
	// rate. Overuses is how often paths of receivers were found overused, Silences how often an estimate was reduced
	// because no feedback came.
	Probes, ProbesMeasured, Overuses, Silences uint64
	// KeyFramesAsked counts PLI and FIR from receivers, KeyFramesAbsorbed those of them that need no key frame,
	// KeyFramesRequested PLI to publishers. KeyFramesLimited are those that were not looked at, because one receiver
	// asked too often; they are none of those asked.
	KeyFramesAsked, KeyFramesAbsorbed, KeyFramesRequested, KeyFramesLimited uint64
	// Malformed input is dropped. Payload counts packets of payload v1 whose descriptor is wrong.
	MalformedRTP, MalformedPayload, MalformedRTCP uint64
	// UnknownSSRC counts packets of streams that are not bound, Duplicates packets that had come before, Late packets
	// too old to tell.
	UnknownSSRC, Duplicates, Late uint64

	Tracks, Slots, Receivers, Ingresses int
	// ActiveSlots carry a track, WaitingSlots wait for the first frame of one; the other slots are idle.
	ActiveSlots, WaitingSlots int
	// CacheBytes is what the packet caches hold, and frames in pieces.
	CacheBytes int64
}

// Take names the counts.
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
	s.Probes, s.ProbesMeasured, s.Overuses, s.Silences = c[ProbesSent], c[ProbesMeasured], c[Overuses], c[Silences]
	s.KeyFramesAsked, s.KeyFramesAbsorbed, s.KeyFramesRequested, s.KeyFramesLimited =
		c[KeyFramesAsked], c[KeyFramesAbsorbed], c[KeyFramesRequested], c[KeyFramesLimited]
	s.MalformedRTP, s.MalformedPayload, s.MalformedRTCP = c[MalformedRTP], c[MalformedPayload], c[MalformedRTCP]
	s.UnknownSSRC, s.Duplicates, s.Late = c[UnknownSSRC], c[DuplicatePackets], c[LatePackets]
}
