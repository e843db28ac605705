package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

// minStep is the shortest time between two searches for missing packets, so that one NACK requests the losses of a
// burst. It is short against the 10 ms after which requests are repeated.
const minStep = 2 * time.Millisecond

// wake wakes the ingress's goroutine. wake is safe for any goroutine. The caller may hold the ingress's mutex, but not
// the set's.
func (i *Ingress) wake() {
	if i.start != nil {
		i.starting.Do(i.start)
	}
	select {
	case i.wakeup <- struct{}{}:
	default:
	}
}

// schedule makes the goroutine search for missing packets at the given time, unless an earlier search is scheduled. The
// caller holds the mutex.
func (i *Ingress) schedule(at time.Time) {
	if at.IsZero() {
		return
	}
	if earliest := i.stepped.Add(minStep); at.Before(earliest) {
		at = earliest
	}
	if i.scheduled.IsZero() || at.Before(i.scheduled) {
		i.scheduled = at
		i.wake()
	}
}

// run is the ingress's goroutine.
func (i *Ingress) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-i.stopped:
			return
		case <-i.wakeup:
		case <-timer.C:
		}
		compounds, next := i.Step(i.set.clock.Now())
		for _, compound := range compounds {
			i.write(compound)
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(next.Sub(i.set.clock.Now()))
		}
	}
}

// Step does everything that is due. Step returns the compound RTCP packets to send to the publisher, which are valid
// until the next call, and the time of the next step, zero if there is none before the goroutine is woken. Only the
// goroutine of the ingress calls Step, or the caller of Set.NewStepped.
func (i *Ingress) Step(now time.Time) (compounds [][]rtcp.Packet, next time.Time) {
	reports, reportsDue := i.arrivalReports(now)
	for n := range reports {
		compounds = append(compounds, reports[n:n+1])
	}
	paths, pathsDue := i.pathReport(now)
	if len(paths) > 0 {
		compounds = append(compounds, paths)
	}
	packets, next := i.step(now)
	compounds = append(compounds, feedback.Compounds(packets)...)
	return compounds, earliest(earliest(next, i.takeovers.step(now)), earliest(reportsDue, pathsDue))
}

// write sends RTCP packets as one compound.
func (i *Ingress) write(compound []rtcp.Packet) {
	if err := i.peer.WriteRTCP(compound); err != nil {
		i.stats.Add(counters.WriteErrors, 1)
	}
}

// step steps all streams. step returns the RTCP packets to send and the time of the next step, zero if there is none
// before the goroutine is woken.
func (i *Ingress) step(now time.Time) (packets []rtcp.Packet, next time.Time) {
	rtt := i.peer.RTT()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return nil, time.Time{}
	}
	packets, next = i.due(now, rtt)
	i.end()
	return packets, next
}

// due is step for a caller that holds the mutex.
func (i *Ingress) due(now time.Time, rtt time.Duration) (packets []rtcp.Packet, next time.Time) {
	if len(i.streams) == 0 {
		i.scheduled, i.reportDue = time.Time{}, time.Time{}
		return nil, time.Time{}
	}
	if !i.scheduled.IsZero() && !now.Before(i.scheduled) {
		packets = i.requests(packets, now, rtt)
	}
	packets, next = i.keyFrameRequests(packets, now)
	if !now.Before(i.reportDue) {
		packets = i.reports(packets, now)
		i.protect(rtt)
		i.reportDue = now.Add(i.set.cfg.ReportInterval)
	}
	return packets, earliest(next, earliest(i.scheduled, i.reportDue))
}

// requests appends NACKs for missing packets, and schedules the next search.
func (i *Ingress) requests(packets []rtcp.Packet, now time.Time, rtt time.Duration) []rtcp.Packet {
	i.stepped, i.scheduled = now, time.Time{}
	i.budget.step(now)
	for _, s := range i.streams {
		if s.missing == nil {
			continue
		}
		ask, lost := s.missing.Due(now, rtt, nil, nil)
		i.overlook()
		i.stats.Add(counters.LostPackets, uint64(len(lost)))
		if s.track.Framed() && len(lost) > 0 && s.lose(lost) {
			s.track.TellGaps()
		}
		// The budget leaves out the newest packets. They count as requested, and are requested again a round trip
		// later, like packets whose request was lost.
		granted := i.budget.take(len(ask))
		i.stats.Add(counters.RequestsLimited, uint64(len(ask)-granted))
		if ask = ask[:granted]; len(ask) > 0 {
			before := len(packets)
			packets = feedback.AppendNACKs(packets, i.ssrc, s.ssrc, ask)
			i.stats.Add(counters.NacksSent, uint64(len(packets)-before))
			i.stats.Add(counters.RequestedPackets, uint64(len(ask)))
		}
		i.scheduled = earliest(i.scheduled, s.missing.Next())
	}
	if at := now.Add(minStep); !i.scheduled.IsZero() && i.scheduled.Before(at) {
		i.scheduled = at
	}
	return packets
}

// keyFrameRequests appends PLI for the tracks with a pending key frame request, and returns the time of the next PLI.
func (i *Ingress) keyFrameRequests(packets []rtcp.Packet, now time.Time) (_ []rtcp.Packet, next time.Time) {
	for _, s := range i.streams {
		ask, at := s.keyFrameDue(now, i.set.cfg.KeyFrameInterval)
		if ask {
			packets = append(packets, &rtcp.PictureLossIndication{SenderSSRC: i.ssrc, MediaSSRC: s.ssrc})
			i.stats.Add(counters.KeyFramesRequested, 1)
		}
		next = earliest(next, at)
	}
	return packets, next
}

// reports appends receiver reports. It also frees the expired packets of silent tracks, and incomplete frames of
// injectors.
func (i *Ingress) reports(packets []rtcp.Packet, now time.Time) []rtcp.Packet {
	var blocks []rtcp.ReceptionReport
	for _, s := range i.streams {
		if block, ok := s.reception.Report(s.ssrc, now); ok {
			blocks = append(blocks, block)
		}
		s.track.Log().Trim(i.set.clock.Since(now))
		if s.injector != nil {
			s.injector.sweep()
		}
	}
	return feedback.AppendReceiverReports(packets, i.ssrc, blocks)
}

// earliest returns the earlier of two times. The zero time means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// protect updates the share of parity that the publisher's path needs, from the losses between the last two reports and
// the round-trip time. It uses the short deadline, at which receivers on short paths give up a frame: a repair over a
// long uplink is too late for such receivers, however long the ingress waits.
func (i *Ingress) protect(rtt time.Duration) {
	var expected, lost int64
	for _, s := range i.streams {
		if s.missing != nil && s.track.Framed() {
			e, l := s.reception.Interval()
			expected, lost = expected+e, lost+l
		}
	}
	i.loss.Add(expected, lost)
	i.protection.Follow(i.loss.Share(), rtt, func(time.Duration) time.Duration { return i.set.cfg.NACK.Deadline })
}
