package forward

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
)

// minStep is the shortest time between two looks at what is missing: requests for the losses of a burst go in one packet. It is small
// against the 10 ms after which requests are repeated.
const minStep = 2 * time.Millisecond

// wake makes the goroutine look at what is to do. It is safe for any goroutine.
func (i *Ingress) wake() {
	select {
	case i.wakeup <- struct{}{}:
	default:
	}
}

// schedule makes the goroutine look at what is missing at that time, if it would not before. The caller holds the mutex.
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
		now := i.engine.clock()
		reports, reportsDue := i.arrivalReports(now)
		for n := range reports {
			i.write(reports[n : n+1])
		}
		packets, next := i.step(now)
		for _, compound := range feedback.Compounds(packets) {
			i.write(compound)
		}
		next = earliest(next, reportsDue)
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(next.Sub(i.engine.clock()))
		}
	}
}

// write sends RTCP packets as one compound.
func (i *Ingress) write(compound []rtcp.Packet) {
	if err := i.peer.WriteRTCP(compound); err != nil {
		i.stats.add(writeErrors, 1)
	}
}

// step does what is due for single streams, and returns the RTCP packets to send, and when it wants to be called next, zero if not before it is woken.
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

// due is step. The caller holds the mutex.
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
		i.reportDue = now.Add(i.engine.cfg.ReportInterval)
	}
	return packets, earliest(next, earliest(i.scheduled, i.reportDue))
}

// requests appends NACKs for what is missing, and schedules the next look.
func (i *Ingress) requests(packets []rtcp.Packet, now time.Time, rtt time.Duration) []rtcp.Packet {
	i.stepped, i.scheduled = now, time.Time{}
	i.budget.step(now)
	for _, s := range i.streams {
		if s.missing == nil {
			continue
		}
		ask, lost := s.missing.Due(now, rtt, nil, nil)
		i.overlook()
		i.stats.add(lostPackets, uint64(len(lost)))
		if s.track.framed && len(lost) > 0 && s.lose(lost) {
			s.track.tellGaps()
		}
		// What is left out, the newest, counts as asked for, and is asked for again a round trip later like what gets lost on the way.
		granted := i.budget.take(len(ask))
		i.stats.add(requestsLimited, uint64(len(ask)-granted))
		if ask = ask[:granted]; len(ask) > 0 {
			before := len(packets)
			packets = feedback.AppendNACKs(packets, i.ssrc, s.ssrc, ask)
			i.stats.add(nacksSent, uint64(len(packets)-before))
			i.stats.add(requestedPackets, uint64(len(ask)))
		}
		i.scheduled = earliest(i.scheduled, s.missing.Next())
	}
	if at := now.Add(minStep); !i.scheduled.IsZero() && i.scheduled.Before(at) {
		i.scheduled = at
	}
	return packets
}

// keyFrameRequests appends PLI for the tracks that want a key frame, and tells when the next is due.
func (i *Ingress) keyFrameRequests(packets []rtcp.Packet, now time.Time) (_ []rtcp.Packet, next time.Time) {
	for _, s := range i.streams {
		ask, at := s.keyFrameDue(now, i.engine.cfg.KeyFrameInterval)
		if ask {
			packets = append(packets, &rtcp.PictureLossIndication{SenderSSRC: i.ssrc, MediaSSRC: s.ssrc})
			i.stats.add(keyFramesRequested, 1)
		}
		next = earliest(next, at)
	}
	return packets, next
}

// reports appends receiver reports. On the same occasion it frees what silent tracks still hold in their caches, and what was left of frames.
func (i *Ingress) reports(packets []rtcp.Packet, now time.Time) []rtcp.Packet {
	var blocks []rtcp.ReceptionReport
	for _, s := range i.streams {
		if block, ok := s.reception.Report(s.ssrc, now); ok {
			blocks = append(blocks, block)
		}
		s.track.log.Trim(i.engine.since(now))
		if s.injector != nil {
			s.injector.sweep()
		}
	}
	return feedback.AppendReceiverReports(packets, i.ssrc, blocks)
}

// earliest is the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
