// Package counters names the counters of the data path, and implements the sets of counters of its goroutines and the
// Stats of an engine.
package counters

import (
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// Counter names one count. A count by class of packet is the first of a range with one count per class.
type Counter int

// Counts by class of packet.
const (
	ReceivedPackets = Counter(0)
	ReceivedBytes   = ReceivedPackets + Counter(packetlog.Classes)
	SentPackets     = ReceivedBytes + Counter(packetlog.Classes)
	SentBytes       = SentPackets + Counter(packetlog.Classes)
)

// Other counts.
const (
	FramesReceived = SentBytes + Counter(packetlog.Classes) + iota
	FramesForwarded
	DroppedOverrun
	DroppedLate
	DroppedBudget
	DroppedExpired
	DroppedBlocked
	DroppedIncomplete
	DroppedUnbound
	Switches
	WriteErrors

	NackedAnswered
	NackedOwed
	NackedUnknown
	NackedExpired
	NackedSuppressed
	NackedLimited
	NackedRefused

	NacksReceived
	NacksSent
	RequestedPackets
	RequestsLimited
	RecoveredPackets
	DelayedPackets
	LostPackets

	TransportReports
	TransportReportsSent
	TransportReceived
	TransportLost
	TransportUnmatched
	TransportMarked
	TransportFalseMarks
	TransportDropped

	ProbesSent
	ProbesMeasured
	Overuses
	Silences

	KeyFramesAsked
	KeyFramesAbsorbed
	KeyFramesRequested
	KeyFramesLimited

	TimesDropped

	MalformedRTP
	MalformedPayload
	MalformedRTCP
	UnknownSSRC
	DuplicatePackets
	LatePackets

	// Outages counts outages of the primary path to a receiver with a second path.
	Outages

	// ECNFallbacks is the first of a range with one count per congestion.Fallback. CopiedPackets and CopiedBytes are
	// the first of ranges with one count per redundancy.Class.
	ECNFallbacks
	CopiedPackets = ECNFallbacks + Counter(congestion.Fallbacks)
	CopiedBytes   = CopiedPackets + Counter(redundancy.Classes)
	counters      = CopiedBytes + Counter(redundancy.Classes)
)

// Counts is a set of counts that one goroutine owns.
type Counts [counters]uint64

// Shard is a set of counts that any goroutine may read and increment.
type Shard [counters]atomic.Uint64

// Add adds n to a count.
func (s *Shard) Add(c Counter, n uint64) { s[c].Add(n) }

// AddTo adds the counts of the shard to sum.
func (s *Shard) AddTo(sum *Counts) {
	for i := range s {
		sum[i] += s[i].Load()
	}
}

// Merge adds counts to the shard and sets them to 0.
func (s *Shard) Merge(c *Counts) {
	for i, n := range c {
		if n != 0 {
			s[i].Add(n)
			c[i] = 0
		}
	}
}
