package egress

import (
	"encoding/binary"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

const (
	// maxReportBytes bounds the reports of one receiver that wait for the writer. At 100,000 packets per second they are 12 kB in 100 ms.
	maxReportBytes = 1 << 16
	// reportTime is the size of what stands in front of a report: when it came, in nanoseconds since the engine's start.
	reportTime = 8
	// minRTCP is the size of an RTCP packet's header.
	minRTCP = 4
)

// reportBox holds reports of arrivals, each behind the time when it came. The inbox guards it, but for read, which is the writer's.
type reportBox struct {
	queued  bool
	waiting []byte
	read    []byte
}

// rtcpSize is the size in bytes of an RTCP packet, by its header (RFC 3550 section 6.4.1).
func rtcpSize(packet []byte) int { return minRTCP + 4*int(binary.BigEndian.Uint16(packet[2:])) }

// arrivals takes a report, as it is, for the writer to read.
func (r *Receiver) arrivals(report []byte, now time.Time) {
	set := r.writer.set
	byStream := r.peer.ReportsByStream()
	switch {
	case feedback.IsCongestionReport(report) != byStream, !byStream && r.peer.TransportSequenceID() == 0:
		// Nothing is known by what it could speak of.
	case rtcpSize(report) != len(report):
		set.control.Add(counters.MalformedRTCP, 1)
	default:
		set.control.Add(counters.TransportDropped, uint64(r.writer.inbox.heard(r, report, set.clock.Since(now))))
	}
}

// heard takes a report that came at a time since the engine's start. It returns how many reports are dropped for want of room: the older half of
// them, which costs little per report however many come.
func (b *inbox) heard(r *Receiver, report []byte, at int64) (dropped int) {
	if len(report) > maxReportBytes/4 {
		return 1
	}
	defer r.writer.turn.Wake()
	b.mu.Lock()
	defer b.mu.Unlock()
	box := &r.reports
	if len(box.waiting)+reportTime+len(report) > maxReportBytes {
		kept := box.waiting
		for len(kept) > maxReportBytes/2 {
			kept = kept[reportTime+rtcpSize(kept[reportTime:]):]
			dropped++
		}
		box.waiting = append(box.waiting[:0], kept...)
	}
	box.waiting = binary.BigEndian.AppendUint64(box.waiting, uint64(at))
	box.waiting = append(box.waiting, report...)
	if !box.queued {
		box.queued = true
		b.orders.heard = append(b.orders.heard, r)
	}
	b.pending.Store(true)
	return dropped
}

// openReports gives the reports that wait of a receiver, until the next call.
func (b *inbox) openReports(r *Receiver) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	box := &r.reports
	box.queued = false
	box.waiting, box.read = box.read[:0], box.waiting
	return box.read
}
