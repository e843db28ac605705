package egress

import "encoding/binary"

const (
	// maxReportBytes bounds the reports of one receiver that wait for the writer. At 100,000 packets per second they
	// are 12 kB in 100 ms.
	maxReportBytes = 1 << 16
	// reportTime is the size of what stands in front of a report: when it came, in nanoseconds since the engine's
	// start.
	reportTime = 8
	// minRTCP is the size of an RTCP packet's header.
	minRTCP = 4
)

// reportBox holds reports of arrivals, each behind the time when it came. The inbox guards it, but for read, which is
// the writer's.
type reportBox struct {
	queued  bool
	waiting []byte
	read    []byte
}

// rtcpSize is the size in bytes of an RTCP packet, by its header (RFC 3550 section 6.4.1).
func rtcpSize(packet []byte) int { return minRTCP + 4*int(binary.BigEndian.Uint16(packet[2:])) }

// add takes a report that came at a time since the engine's start. It returns how many reports are dropped for want of
// room, the older half of them, which costs little per report however many come, and whether none has waited before.
func (b *reportBox) add(report []byte, at int64) (dropped int, first bool) {
	if len(b.waiting)+reportTime+len(report) > maxReportBytes {
		kept := b.waiting
		for len(kept) > maxReportBytes/2 {
			kept = kept[reportTime+rtcpSize(kept[reportTime:]):]
			dropped++
		}
		b.waiting = append(b.waiting[:0], kept...)
	}
	b.waiting = binary.BigEndian.AppendUint64(b.waiting, uint64(at))
	b.waiting = append(b.waiting, report...)
	first = !b.queued
	b.queued = true
	return dropped, first
}

// open gives the reports that wait, until the next call.
func (b *reportBox) open() []byte {
	b.queued = false
	b.waiting, b.read = b.read[:0], b.waiting
	return b.read
}
