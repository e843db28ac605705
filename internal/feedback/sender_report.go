package feedback

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/payload"
)

// SenderReporter makes the sender reports of one sent stream (RFC 3550 section 6.4.1), and measures round-trip times
// from the receivers' answers.
type SenderReporter struct {
	ssrc, clockRate uint32
	packets, octets uint32

	// timestamp is the RTP timestamp of the time capture, by the capturing clock, at the local time at.
	mapped      bool
	timestamp   uint32
	capture, at time.Time

	reports [8]sentReport
	next    int
}

// sentReport is a report that receivers may still refer to: reports are sent about once per second, and answers arrive
// within one or two.
type sentReport struct {
	middle uint32 // middle 32 bits of its NTP timestamp
	at     time.Time
}

// maxRoundTrip is the longest plausible round trip: a real one of 10 s would have ended the connection.
const maxRoundTrip = 10 * time.Second

// NewSenderReporter returns a reporter for the stream with the given SSRC and RTP clock rate in Hz.
func NewSenderReporter(ssrc, clockRate uint32) *SenderReporter {
	return &SenderReporter{ssrc: ssrc, clockRate: clockRate}
}

// Count counts a sent packet, with the size of its payload.
func (s *SenderReporter) Count(payloadSize int) {
	s.packets++
	s.octets += uint32(payloadSize)
}

// Map sets the capture time of an RTP timestamp. A publisher passes the capture time as now if both are from one clock.
// A server passes the mapping of a publisher's report, and the arrival time of that report: its own reports then carry
// the publisher's clock, and the mapping is exact whatever the transit time of the report was.
func (s *SenderReporter) Map(timestamp uint32, capture, now time.Time) {
	s.mapped, s.timestamp, s.capture, s.at = true, timestamp, capture, now
}

// Unmap forgets the mapping, for a stream whose content changes: until the next Map there are no reports.
func (s *SenderReporter) Unmap() { s.mapped = false }

// Report returns a report for now. It returns false without a mapping.
func (s *SenderReporter) Report(now time.Time) (*rtcp.SenderReport, bool) {
	if !s.mapped {
		return nil, false
	}
	elapsed := now.Sub(s.at)
	report := &rtcp.SenderReport{
		SSRC:        s.ssrc,
		NTPTime:     payload.NTP64(s.capture.Add(elapsed)),
		RTPTime:     s.timestamp + uint32(ticks(elapsed, s.clockRate)),
		PacketCount: s.packets,
		OctetCount:  s.octets,
	}
	s.reports[s.next%len(s.reports)] = sentReport{middle: uint32(report.NTPTime >> 16), at: now}
	s.next++
	return report, true
}

// RoundTrip returns the round-trip time from a receiver's report block. The send time of the report that the block
// refers to is remembered, not computed from the block, so the clock of the report does not matter. It returns false
// for blocks that refer to no report or to an unknown one, and for impossible times.
func (s *SenderReporter) RoundTrip(block *rtcp.ReceptionReport, now time.Time) (time.Duration, bool) {
	if block.SSRC != s.ssrc || block.LastSenderReport == 0 {
		return 0, false
	}
	for i := range s.reports {
		if report := &s.reports[i]; report.middle == block.LastSenderReport && !report.at.IsZero() {
			return roundTrip(now.Sub(report.at), block.Delay)
		}
	}
	return 0, false
}

// roundTrip subtracts the receiver's delay, in units of 2^-16 s, from the elapsed time.
func roundTrip(passed time.Duration, delay uint32) (time.Duration, bool) {
	// One unit is 15 µs: on a short path rounding alone can make the difference negative. 0 would mean unknown.
	const unit = time.Second / 65536
	rtt := passed - time.Duration(delay)*time.Second/65536
	if rtt < -2*unit || rtt > maxRoundTrip {
		return 0, false
	}
	return max(rtt, unit), true
}

// ticks converts a time to units of an RTP clock, rounded to the nearest. Seconds are converted separately, so that no
// span overflows.
func ticks(d time.Duration, clockRate uint32) int64 {
	seconds, rest := int64(d/time.Second), int64(d%time.Second)
	scaled := rest * int64(clockRate)
	if scaled < 0 {
		scaled -= int64(time.Second / 2)
	} else {
		scaled += int64(time.Second / 2)
	}
	return seconds*int64(clockRate) + scaled/int64(time.Second)
}

// CaptureClock maps the RTP timestamps of one received stream to capture times, by its latest sender report.
type CaptureClock struct {
	clockRate uint32
	known     bool
	timestamp uint32
	capture   time.Time
}

// NewCaptureClock returns a clock for a stream with the given RTP clock rate in Hz.
func NewCaptureClock(clockRate uint32) *CaptureClock { return &CaptureClock{clockRate: clockRate} }

// SenderReport sets the mapping from a report. A report without a wall clock (NTP time 0) is ignored.
func (c *CaptureClock) SenderReport(report *rtcp.SenderReport) {
	if report.NTPTime != 0 {
		c.known, c.timestamp, c.capture = true, report.RTPTime, payload.TimeFromNTP64(report.NTPTime)
	}
}

// Capture returns the capture time of a timestamp. It is exact for timestamps within 2^31 units of the latest report's,
// 6.6 hours at 90 kHz, in both directions. It returns false before the first report.
func (c *CaptureClock) Capture(timestamp uint32) (time.Time, bool) {
	if !c.known || c.clockRate == 0 {
		return time.Time{}, false
	}
	// 2^31 units times 10^9 ns are below 2^63.
	distance := int64(int32(timestamp - c.timestamp))
	return c.capture.Add(time.Duration(distance * int64(time.Second) / int64(c.clockRate))), true
}

// Mapping returns the latest report's timestamp and capture time, for SenderReporter.Map.
func (c *CaptureClock) Mapping() (timestamp uint32, capture time.Time, known bool) {
	return c.timestamp, c.capture, c.known
}

// Reset forgets the mapping, for a stream whose content changes.
func (c *CaptureClock) Reset() { c.known = false }
