package egress

import "encoding/binary"

const (
	// maxReportBytes bounds the reports of one receiver that wait for the writer. At 100,000 packets per second reports
	// take 12 kB in 100 ms.
	maxReportBytes = 1 << 16
	// reportTime is the size of the arrival time before each report, in nanoseconds since the engine's start.
	reportTime = 8
	// minRTCP is the size of the header of an RTCP packet.
	minRTCP = 4
)

// reportBox holds reports of arrivals, each after its arrival time. The inbox guards it, except for read, which the
// writer owns.
type reportBox struct {
	queued  bool
	waiting []byte
	read    []byte
}

// rtcpSize returns the size in bytes of an RTCP packet from its header (RFC 3550 section 6.4.1).
func rtcpSize(packet []byte) int { return minRTCP + 4*int(binary.BigEndian.Uint16(packet[2:])) }

// add stores a report that arrived at a time since the engine's start. If the box is full, the older half of the
// reports is dropped, at low cost per report. add returns the number of dropped reports, and whether the box was not
// queued before.
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

// open removes and returns the stored reports, valid until the next call.
func (b *reportBox) open() []byte {
	b.queued = false
	b.waiting, b.read = b.read[:0], b.waiting
	return b.read
}
