package metrics

import "time"

// DataPlane is asked for its numbers when Prometheus scrapes.
type DataPlane interface {
	// Snapshot gives the present numbers. It may be called by several goroutines at once. Counts never fall from one call to the next.
	Snapshot() Snapshot
}

// Snapshot is the data plane in plain numbers. All but Tracks, Slots, Receivers and CacheBytes are counts since the start.
type Snapshot struct {
	Tracks int
	Slots  SlotCounts
	// Received is from publishers, Sent to receivers.
	Received Traffic
	Sent     Traffic
	// FramesForwarded counts per receiver the video frames that were begun to be sent.
	FramesForwarded uint64
	FramesDropped   FrameDrops
	Switches        uint64
	// SwitchDelay is the time from reading a request to sending the first packet of the new quality.
	SwitchDelay Histogram
	// Residence is the time from reading a packet to having written it to a receiver's socket, less what the pacer held it on purpose.
	Residence Histogram
	// PacerHold is what the pacers held packets; Paced says that there are any.
	PacerHold Histogram
	Paced     bool
	// FrameHold, FrameReception and FrameDistribution are from the arrival of a traced frame's first packet to its leaving, to the arrival of the last one, and to the
	// leaving of the last one.
	FrameHold, FrameReception, FrameDistribution Histogram
	// NACKsReceived are receivers', NACKsSent go to publishers.
	NACKsReceived NACKsReceived
	NACKsSent     NACKsSent
	// TransportFeedback tells of the arrivals of packets (draft-holmer-rmcat-transport-wide-cc-extensions-01).
	TransportFeedback TransportFeedback
	// Receivers are the paths of those receivers that report packets' arrivals, in any order.
	Receivers []ReceiverPath
	Probes    Probes
	// Overuses counts how often the queue on the way to a receiver was found to grow, FeedbackSilences how often an estimate was reduced for want of reports.
	Overuses, FeedbackSilences uint64
	// KeyFramesAsked counts PLI and FIR of receivers, KeyFramesRequested those to publishers.
	KeyFramesAsked     uint64
	KeyFramesRequested uint64
	PacketsDropped     PacketDrops
	// CacheBytes is what the packet caches hold.
	CacheBytes int64
	// ReceiveQueueDrops are datagrams that the kernel dropped because the media socket's receive buffer was full.
	ReceiveQueueDrops uint64
	Sockets           Sockets
}

// Sockets is what the media sockets moved.
type Sockets struct {
	Received, Sent Transfers
	// Runs are the runs of datagrams to one address that were handed to the kernel as one.
	Runs uint64
	// SendErrors are datagrams that the system refused to send.
	SendErrors uint64
}

// Transfers are datagrams and the system calls that moved them.
type Transfers struct {
	Datagrams, Calls uint64
}

// SlotCounts are the slots by state.
type SlotCounts struct {
	// Idle slots carry nothing: they have no assignment, or are switched off.
	Idle int
	// Waiting slots have been told what to carry and wait for its first frame.
	Waiting int
	// Active slots carry what they were told.
	Active int
}

// Traffic counts packets and bytes by kind.
type Traffic struct {
	Media, Retransmission, Parity, Probe, Audio Count
}

// Count counts packets and the bytes of their RTP payload.
type Count struct {
	Packets, Bytes uint64
}

// FrameDrops are the video frames that a receiver did not get whole, by reason.
type FrameDrops struct {
	// Late frames waited longer than the latency limit before they were begun.
	Late uint64
	// Overrun frames left the track's cache before the receiver's writer came to them.
	Overrun uint64
	// Budget frames waited longer for their turn than the receiver's latency budget.
	Budget uint64
	// Expired frames had begun, and their rest waited beyond the receiver's deadline.
	Expired uint64
	// Incomplete frames miss packets of the publisher's that did not come.
	Incomplete uint64
	// Blocked frames found no room in the host's send buffer, or their receiver had stopped answering connectivity checks.
	Blocked uint64
}

// NACKsReceived are NACK messages of receivers and what became of the packets that they asked for.
type NACKsReceived struct {
	Messages uint64
	// Answered packets were sent again.
	Answered uint64
	// Owed packets have not come from the publisher, who has been asked for them already; they go out when they come.
	Owed uint64
	// Unknown numbers stand for no packet.
	Unknown uint64
	// Expired packets have left the cache.
	Expired uint64
	// Suppressed packets were sent again just before.
	Suppressed uint64
	// Limited packets exceed what one receiver may ask for.
	Limited uint64
	// Refused packets had no RTX stream to go by, or could not be written.
	Refused uint64
}

// NACKsSent are NACK messages to publishers and what became of the packets that they asked for.
type NACKsSent struct {
	Messages uint64
	// Recovered packets were retransmitted, Delayed ones came by themselves after the request.
	Recovered, Delayed uint64
	// Lost packets did not come in time.
	Lost uint64
	// Limited packets were not asked for when it was time, because one publisher missed more than it sent.
	Limited uint64
}

// TransportFeedback are reports of arrivals.
type TransportFeedback struct {
	// Received reports are receivers', Sent ones go to publishers.
	Received, Sent uint64
	// PacketsReceived and PacketsLost are packets to receivers by what these reported. One that comes after it was reported lost counts as both.
	PacketsReceived, PacketsLost uint64
}

// ReceiverPath is the way to one receiver.
type ReceiverPath struct {
	// Estimate is what it is estimated to take, Wanted what it would be sent if it could take that, Sent what it was sent in the last second. In bit/s on the wire.
	Estimate, Wanted, Sent float64
	// Loss is the share of packets lost on the way, 0 to 1.
	Loss      float64
	RoundTrip time.Duration
}

// Probes are short trains of packets sent above an estimate.
type Probes struct {
	// Sent are all, Measured those whose rate of arrival was measured.
	Sent, Measured uint64
}

// PacketDrops are incoming packets that were of no use, by reason.
type PacketDrops struct {
	// MalformedRTP and MalformedRTCP are not what they should be, MalformedPayload has a wrong descriptor of payload v1.
	MalformedRTP, MalformedRTCP, MalformedPayload uint64
	// UnknownSSRC packets belong to no published track.
	UnknownSSRC uint64
	// Duplicate packets had come before, Late ones are too old to tell.
	Duplicate, Late uint64
	// Feedback are reports of arrivals that came faster than they were read.
	Feedback uint64
}

// Histogram is a distribution of times.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, ascending; what exceeds the last falls into one bucket more.
	Bounds []time.Duration
	// Counts are those of each bucket alone, not cumulated: one more than Bounds.
	Counts []uint64
	// Sum is that of all times.
	Sum time.Duration
}
