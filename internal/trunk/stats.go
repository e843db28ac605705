package trunk

import (
	"time"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// LinkState is the state of a trunk.
type LinkState struct {
	Node        string
	Incarnation uint64
	Lanes       int
	RTT         time.Duration
	// Offset is added to times of this node to convert them to the other node's clock. Bound is the maximum error.
	// Both are valid if Known is set.
	Offset, Bound time.Duration
	Known         bool
	// Estimate is the sum of the estimates of the lanes, 0 while unknown.
	Estimate volumetric.Bitrate
	Silent   bool
	// Received and Sent are the counts of RTP packets.
	Received, Sent transport.Traffic
}

// Stats are counters since Listen, and present numbers.
type Stats struct {
	// Links and Lanes are the numbers of open trunks and of their lanes. Opened and Closed count trunks, Refused
	// handshakes that failed, among them WrongCertificate with a certificate that does not belong to the cluster.
	Links, Lanes                              int
	Opened, Closed, Refused, WrongCertificate uint64
	// Received and Sent count RTP packets.
	Received, Sent transport.Traffic
	// Untaken counts packets of tracks that were not taken, Malformed refused control messages, Failed control messages
	// that could not be sent, Ignored datagrams that opened no trunk.
	Untaken, Malformed, Failed, Ignored uint64
	// Unlinked, TooLarge, TooMany and Unsent count payloads that Send refused: without a trunk, of a wrong size, above
	// the rate, and while too many bytes wait.
	Unlinked, TooLarge, TooMany, Unsent uint64
	// Publications and Mirrors are the numbers of publications of this node and of other nodes. Takes is the number of
	// publications that other nodes take, Streams that of streams to other nodes, Masked that of taken tracks that the
	// trunks do not carry, Starved that of taken publications for which the streams do not suffice.
	Publications, Mirrors, Takes, Streams, Masked, Starved int
	// Passed is the number of mirrors that this node passes on, Fed that of mirrors that a parent passes on to this
	// node. Copies is the number of nodes that this node sends one publication, of the publication with the most.
	Passed, Fed, Copies int
}
