package metrics

import "time"

// DataPlane provides the data of the data plane at each scrape.
type DataPlane interface {
	// Snapshot returns the current values. Snapshot may be called by several goroutines at once. Counters never
	// decrease.
	Snapshot() Snapshot
}

// Snapshot is the state of the data plane. All fields except Tracks, Slots, Receivers, CacheBytes, L4SHops,
// PublisherHops and Redundancy.SecondPaths are counters since the start.
type Snapshot struct {
	Tracks int
	Slots  SlotCounts
	// Received is from publishers, Sent to receivers.
	Received Traffic
	Sent     Traffic
	// FramesForwarded counts, per receiver, the video frames of which at least one packet was sent.
	FramesForwarded uint64
	FramesDropped   FrameDrops
	Switches        uint64
	// SwitchDelay is the time from reading a request to sending the first packet of the new quality.
	SwitchDelay Histogram
	// Residence is the time from reading a packet to writing it to a receiver's socket, without pacing delay.
	Residence Histogram
	// PacerHold is the pacing delay of packets; Paced is set if there are pacers.
	PacerHold Histogram
	Paced     bool
	// FrameHold, FrameReception and FrameDistribution are the times from the arrival of a traced frame's first packet
	// to the departure of that packet, to the arrival of the last packet, and to the departure of the last packet.
	FrameHold, FrameReception, FrameDistribution Histogram
	// NACKsReceived come from receivers, NACKsSent go to publishers.
	NACKsReceived NACKsReceived
	NACKsSent     NACKsSent
	// TransportFeedback counts reports of packet arrivals (draft-holmer-rmcat-transport-wide-cc-extensions-01, RFC
	// 8888).
	TransportFeedback TransportFeedback
	// Receivers are the paths of the receivers that report packet arrivals, in any order.
	Receivers []ReceiverPath
	Probes    Probes
	// Overuses counts reductions of an estimate because the queue on the path grew, FeedbackSilences reductions because
	// of missing reports.
	Overuses, FeedbackSilences uint64
	// KeyFramesAsked counts PLI and FIR from receivers, KeyFramesRequested PLI and FIR to publishers.
	KeyFramesAsked     uint64
	KeyFramesRequested uint64
	PacketsDropped     PacketDrops
	// CacheBytes is the size of the packet caches.
	CacheBytes int64
	// ReceiveQueueDrops counts datagrams dropped by the kernel because the media socket's receive buffer was full.
	ReceiveQueueDrops uint64
	Sockets           Sockets
	L4SHops           L4SHops
	PublisherHops     PublisherHops
	ECNFallbacks      ECNFallbacks
	Redundancy        Redundancy
}

// Redundancy describes the second paths of receivers. SecondPaths is a gauge.
type Redundancy struct {
	// Copied counts packets that left on a second path, too, with their bytes on the wire.
	Copied      Copies
	SecondPaths SecondPaths
	// Outages counts outages of first paths.
	Outages uint64
}

// Copies counts copies by class.
type Copies struct {
	Audio, LowestQuality, FrameEnd, Repair, Other Count
}

// SecondPaths counts second paths by state.
type SecondPaths struct {
	Untested, Carrying, Limited, Silent int
}

// Sockets counts the traffic of the media sockets.
type Sockets struct {
	Received, Sent Transfers
	// Runs counts segmented sends: runs of datagrams to one address.
	Runs uint64
	// SendErrors counts datagrams that the kernel refused to send.
	SendErrors uint64
}

// Transfers counts datagrams and the system calls of the transfers.
type Transfers struct {
	Datagrams, Calls uint64
	// Codepoints are the same datagrams by ECN codepoint.
	Codepoints Codepoints
}

// Codepoints counts datagrams by ECN codepoint. Unknown codepoints count as NotECT.
type Codepoints struct {
	NotECT, ECT1, ECT0, CE uint64
}

// L4SHops counts the hops to receivers that were sent packets in the last second by state of L4S.
type L4SHops struct {
	Off, Testing, Capable, Marked, Classic, Failed int
}

// PublisherHops counts the hops from publishers that sent packets in the last second by codepoint: CE if a packet was
// marked, and the most frequent codepoint otherwise.
type PublisherHops struct {
	NotECT, ECT1, ECT0, CE int
}

// ECNFallbacks counts the ends of L4S on hops to receivers by reason.
type ECNFallbacks struct {
	Bleached, Rewritten, AllMarked, Dropped, Classic uint64
}

// SlotCounts counts slots by state.
type SlotCounts struct {
	// Idle slots have no assignment, or are off.
	Idle int
	// Waiting slots wait for the first frame of a track.
	Waiting int
	// Active slots forward a track.
	Active int
}

// Traffic counts packets and bytes by kind.
type Traffic struct {
	Media, Retransmission, Parity, Probe, Audio Count
}

// Count counts packets and the bytes of the RTP payload.
type Count struct {
	Packets, Bytes uint64
}

// FrameDrops counts video frames not sent in full to a receiver, by reason.
type FrameDrops struct {
	// Late frames exceeded the latency limit before the first packet was sent.
	Late uint64
	// Overrun frames left the track's cache before the receiver's writer had read the frame.
	Overrun uint64
	// Budget frames were queued for longer than the receiver's latency budget.
	Budget uint64
	// Expired frames had begun, and the rest waited beyond the receiver's deadline.
	Expired uint64
	// Incomplete frames lack packets that did not arrive from the publisher, or were left to a quality that did not
	// begin.
	Incomplete uint64
	// Blocked frames found the host's send buffer full, or the receiver had stopped answering connectivity checks.
	Blocked uint64
}

// NACKsReceived counts NACK messages from receivers and the requested packets by outcome.
type NACKsReceived struct {
	Messages uint64
	// Answered packets were retransmitted.
	Answered uint64
	// Owed packets have not arrived from the publisher, but have been requested; such packets are sent on arrival.
	Owed uint64
	// Unknown numbers belong to no packet.
	Unknown uint64
	// Expired packets have left the cache.
	Expired uint64
	// Suppressed packets were retransmitted just before.
	Suppressed uint64
	// Limited packets exceed the limit of one receiver.
	Limited uint64
	// Refused packets had no RTX stream, or could not be written.
	Refused uint64
}

// NACKsSent counts NACK messages to publishers and the requested packets by outcome.
type NACKsSent struct {
	Messages uint64
	// Recovered packets were retransmitted, Delayed ones arrived without a retransmission after the request.
	Recovered, Delayed uint64
	// Lost packets did not arrive in time.
	Lost uint64
	// Limited packets were not requested in time, because one publisher missed more packets than the publisher sent.
	Limited uint64
}

// TransportFeedback counts reports of arrivals.
type TransportFeedback struct {
	// Received reports come from receivers, Sent reports go to publishers.
	Received, Sent uint64
	// PacketsReceived and PacketsLost count packets to receivers by the reported outcome. A packet received after a
	// report of its loss counts as both.
	PacketsReceived, PacketsLost uint64
	// PacketsUnmatched counts packets reported as received that wait for no report, PacketsMarked those reported with
	// ECN-CE, FalseMarks marks of packets that left without ECT.
	PacketsUnmatched, PacketsMarked, FalseMarks uint64
}

// ReceiverPath is the path to one receiver.
type ReceiverPath struct {
	// Estimate is the estimated rate, Wanted the rate without a bandwidth limit, Sent the rate of the last second. In
	// bit/s on the wire.
	Estimate, Wanted, Sent float64
	// Loss is the share of packets lost on the path, 0 to 1.
	Loss      float64
	RoundTrip time.Duration
}

// Probes counts probes.
type Probes struct {
	// Sent counts all probes, Measured the probes whose arrival rate was measured.
	Sent, Measured uint64
}

// PacketDrops counts dropped incoming packets, by reason.
type PacketDrops struct {
	// MalformedRTP and MalformedRTCP cannot be parsed, MalformedPayload has an invalid descriptor of payload v1.
	MalformedRTP, MalformedRTCP, MalformedPayload uint64
	// UnknownSSRC packets belonged to no published track when they arrived.
	UnknownSSRC uint64
	// Duplicate packets were received before, Late packets are too old to know.
	Duplicate, Late uint64
	// Feedback are reports of arrivals that arrived faster than the server reads reports.
	Feedback uint64
}

// Histogram is a distribution of times.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, ascending; one more bucket has the values beyond the last.
	Bounds []time.Duration
	// Counts are the counts of each bucket, not cumulative: one more than Bounds.
	Counts []uint64
	// Sum is the sum of all times.
	Sum time.Duration
}
