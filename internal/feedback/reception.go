package feedback

import (
	"time"

	"github.com/pion/rtcp"
)

// Reception keeps the statistics of one received stream, for the report blocks of RFC 3550 section 6.4.1 (computed as
// in its appendices A.3 and A.8). Retransmissions have a stream of their own and are not counted here.
type Reception struct {
	clockRate uint32

	started       bool
	base, highest int64
	received      int64
	priorExpected int64
	priorReceived int64
	interval      int64 // packets expected between the last two reports
	lostInterval  int64 // packets of these that did not arrive

	epoch     time.Time
	transit   int64 // arrival minus timestamp of the last frame's first packet, in timestamp units
	timestamp uint32
	timed     bool
	jitter    int64 // in sixteenths of timestamp units

	lastReport   uint32 // middle 32 bits of the latest sender report's NTP timestamp
	lastReportAt time.Time
}

const (
	// A larger change of transit time is a jump of the timestamp, not a late packet.
	maxTransitChange = 5 * time.Second
	// maxLost is the maximum of the signed 24-bit field of lost packets.
	maxLost = 1<<23 - 1
	// The delay since a sender report has a field of 32 bits, in units of 2^-16 s: 18 hours.
	maxDelay = 1 << 16 * time.Second
)

// NewReception returns the statistics of a stream with the given RTP clock rate in Hz.
func NewReception(clockRate uint32) *Reception { return &Reception{clockRate: clockRate} }

// Received counts a packet with its extended sequence number.
func (r *Reception) Received(sequence int64, timestamp uint32, now time.Time) {
	if !r.started {
		r.started = true
		r.base, r.highest = sequence, sequence
		r.epoch = now
	}
	r.received++
	if sequence < r.highest {
		return
	}
	r.highest = sequence
	// Packets of one frame share its timestamp and are spread by pacing, which is not jitter of the path. Therefore
	// only the first packet of each timestamp counts, as in libwebrtc.
	if r.timed && timestamp == r.timestamp {
		return
	}
	transit := ticks(now.Sub(r.epoch), r.clockRate) - int64(timestamp)
	if r.timed {
		// Modulo 2^32, since timestamps wrap around.
		change := int64(int32(transit - r.transit))
		change = max(change, -change)
		if change <= ticks(maxTransitChange, r.clockRate) {
			r.jitter += change - (r.jitter+8)>>4
		}
	}
	r.timed, r.timestamp, r.transit = true, timestamp, transit
}

// SenderReport records the arrival of a sender report.
func (r *Reception) SenderReport(ntp uint64, now time.Time) {
	r.lastReport, r.lastReportAt = uint32(ntp>>16), now
}

// Report returns a report block for the stream with the given SSRC, and begins the next interval. It returns false
// before the first packet.
func (r *Reception) Report(ssrc uint32, now time.Time) (rtcp.ReceptionReport, bool) {
	if !r.started {
		return rtcp.ReceptionReport{}, false
	}
	expected := r.highest - r.base + 1
	lost := min(max(expected-r.received, -maxLost-1), maxLost)
	r.interval = expected - r.priorExpected
	r.lostInterval = r.interval - (r.received - r.priorReceived)
	r.priorExpected, r.priorReceived = expected, r.received
	report := rtcp.ReceptionReport{
		SSRC:      ssrc,
		TotalLost: uint32(lost) & 0xffffff,
		// Cycles are counted from the first packet on.
		LastSequenceNumber: uint32(r.highest - r.base&^0xffff),
		Jitter:             uint32(r.jitter >> 4),
	}
	if r.interval > 0 && r.lostInterval > 0 {
		report.FractionLost = uint8(min(r.lostInterval*256/r.interval, 255))
	}
	if !r.lastReportAt.IsZero() {
		report.LastSenderReport = r.lastReport
		report.Delay = uint32(min(min(max(now.Sub(r.lastReportAt), 0), maxDelay)<<16/time.Second, 1<<32-1))
	}
	return report, true
}

// Interval returns the number of packets expected between the last two reports, and the number of them that did not
// arrive. lost is negative if more packets arrived late that had been counted as lost.
func (r *Reception) Interval() (expected, lost int64) { return r.interval, r.lostInterval }

// Reset restarts the statistics, for a stream whose numbers restart.
func (r *Reception) Reset() { *r = Reception{clockRate: r.clockRate} }
