package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

const (
	// minStep is the shortest time between two searches for missing packets, so that one NACK requests the losses of a
	// burst. It is short against the 10 ms after which requests are repeated.
	minStep = 2 * time.Millisecond
	// requestRate is the number of packets per second that may be requested from a publisher that sends nothing: 5 % of
	// 10,000 packets/s, 95 Mbit/s.
	requestRate = 500
	// requestBurst is the number of requests beyond requestRate and one per packet received: the packets of 200 ms at
	// 195 Mbit/s. Only an outage loses more at once, and it lasts longer than repairs are useful.
	requestBurst = 4096
)

// requester requests missing packets and key frames from one publisher. The ingress's mutex guards it.
type requester struct {
	// ssrc is the server's SSRC in RTCP to the publisher.
	ssrc  uint32
	stats *counters.Shard
	// budget bounds the requests, noticed the packets that are recorded as missing.
	budget  requestBudget
	noticed *feedback.MissingBudget
	// searched is the time of the last search for missing packets, scheduled the time of the next search, zero if there
	// is none.
	searched, scheduled time.Time
	// stall is used if the publisher is another server. postponed is set while the scheduled search waits because the
	// path may have stalled.
	stall     stall
	postponed bool
}

func newRequester(ssrc uint32, stats *counters.Shard) requester {
	return requester{
		ssrc: ssrc, stats: stats, budget: newRequestBudget(),
		noticed: feedback.NewMissingBudget(requestRate, requestBurst),
	}
}

// earn adds the credit of a received packet.
func (r *requester) earn() {
	r.budget.earn()
	r.noticed.Earn()
}

// schedule schedules a search at the given time, unless an earlier search is scheduled. schedule reports whether the
// time of the next search has changed. The zero time schedules nothing.
func (r *requester) schedule(at time.Time) (sooner bool) {
	if at.IsZero() {
		return false
	}
	if earliest := r.searched.Add(minStep); at.Before(earliest) {
		at = earliest
	}
	if !r.scheduled.IsZero() && !at.Before(r.scheduled) {
		return false
	}
	r.scheduled = at
	return true
}

// arrived records the arrival of a packet of another server. The first packet after a silence ends the wait of a
// postponed search, also if that packet belongs to another stream than the missing ones. arrived reports whether the
// time of the next search has changed.
func (r *requester) arrived(at time.Time) (sooner bool) {
	return r.stall.arrived(at) && r.postponed && r.schedule(at.Add(settleTime))
}

// due reports whether the scheduled search is due.
func (r *requester) due(now time.Time) bool { return !r.scheduled.IsZero() && !now.Before(r.scheduled) }

// begin returns the time with which to search. begin reports false if no search is due, also if it was postponed
// because the path may have stalled.
func (r *requester) begin(now time.Time, rtt time.Duration, cfg *feedback.NACKConfig) (at time.Time, ok bool) {
	if !r.due(now) {
		return time.Time{}, false
	}
	if !cfg.OncePerTrip {
		return now, true
	}
	at, r.postponed = r.stall.search(r.scheduled, now, rtt, cfg)
	if r.postponed {
		r.scheduled = at
	}
	return at, !r.postponed
}

// overlook counts missing packets that were not recorded because they exceeded the budget.
func (r *requester) overlook() {
	if n := r.noticed.TakeRefused(); n > 0 {
		r.stats.Add(counters.RequestsLimited, uint64(n))
	}
}

// search appends NACKs for the missing packets of the streams, and schedules the next search.
func (r *requester) search(packets []rtcp.Packet, streams map[uint32]*stream, now time.Time,
	rtt time.Duration) []rtcp.Packet {
	r.searched, r.scheduled = now, time.Time{}
	r.budget.step(now)
	for _, s := range streams {
		if s.missing == nil {
			continue
		}
		ask, lost := s.missing.Due(now, rtt, nil, nil)
		r.overlook()
		r.stats.Add(counters.LostPackets, uint64(len(lost)))
		if s.track.Framed() && len(lost) > 0 && s.lose(lost) {
			s.track.TellGaps()
		}
		// The budget leaves out the newest packets. They count as requested, and are requested again a round trip
		// later, like packets whose request was lost.
		granted := r.budget.take(len(ask))
		r.stats.Add(counters.RequestsLimited, uint64(len(ask)-granted))
		if ask = ask[:granted]; len(ask) > 0 {
			before := len(packets)
			packets = feedback.AppendNACKs(packets, r.ssrc, s.ssrc, ask)
			r.stats.Add(counters.NacksSent, uint64(len(packets)-before))
			r.stats.Add(counters.RequestedPackets, uint64(len(ask)))
		}
		r.scheduled = earliest(r.scheduled, s.missing.Next())
	}
	if at := now.Add(minStep); !r.scheduled.IsZero() && r.scheduled.Before(at) {
		r.scheduled = at
	}
	return packets
}

// keyFrames appends PLI for the streams with a pending key frame request, at most one per interval and stream, and
// returns the time of the next PLI.
func (r *requester) keyFrames(packets []rtcp.Packet, streams map[uint32]*stream, now time.Time,
	interval time.Duration) (_ []rtcp.Packet, next time.Time) {
	for _, s := range streams {
		ask, at := s.keyFrameDue(now, interval)
		if ask {
			packets = append(packets, &rtcp.PictureLossIndication{SenderSSRC: r.ssrc, MediaSSRC: s.ssrc})
			r.stats.Add(counters.KeyFramesRequested, 1)
		}
		next = earliest(next, at)
	}
	return packets, next
}

// requestBudget bounds the packets requested from one publisher. A loss of 5 % needs 0.06 requests per packet received,
// including repetitions. A publisher whose sequence numbers jump at random would need thousands: each jump is a loss of
// up to 16,384 packets, each requested up to 8 times.
type requestBudget struct {
	credit float64
	// stepped is the time up to which credit is counted.
	stepped time.Time
}

func newRequestBudget() requestBudget { return requestBudget{credit: requestBurst} }

// earn adds the credit of a received packet.
func (b *requestBudget) earn() { b.credit = min(b.credit+1, requestBurst) }

// step adds the credit of the time since the last call.
func (b *requestBudget) step(now time.Time) {
	if !b.stepped.IsZero() {
		b.credit = min(b.credit+max(now.Sub(b.stepped), 0).Seconds()*requestRate, requestBurst)
	}
	b.stepped = now
}

// take spends up to n requests and returns the number granted.
func (b *requestBudget) take(n int) int {
	granted := min(n, int(b.credit))
	b.credit -= float64(granted)
	return granted
}

// earliest returns the earlier of two times. The zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
