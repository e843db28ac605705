package ingress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

// run is the ingress's goroutine.
func (i *Ingress) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-i.stopped:
			return
		case <-i.waker.woken:
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

// arrivalReports returns the due reports of arrivals, and the time of the next report.
func (i *Ingress) arrivalReports(now time.Time) (compounds []rtcp.Packet, next time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := &i.arrivals
	if a.due.IsZero() || now.Before(a.due) {
		return nil, a.due
	}
	if !i.begin() {
		return nil, time.Time{}
	}
	compounds, made := a.reports(now)
	i.stats.Add(counters.TransportReportsSent, made)
	i.end()
	return compounds, a.due
}

// pathReport returns the due report of paths, nil if there is none, and the time of the next report.
func (i *Ingress) pathReport(now time.Time) (compound []rtcp.Packet, next time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := &i.paths
	if p.due.IsZero() || now.Before(p.due) {
		return nil, p.due
	}
	if !i.begin() {
		return nil, time.Time{}
	}
	compound = p.reports(now)
	i.end()
	return compound, p.due
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
	streams := i.bindings.streams
	if len(streams) == 0 && !i.takeovers.waiting.injected() {
		i.requester.scheduled, i.requester.postponed, i.reportDue = time.Time{}, false, time.Time{}
		return nil, time.Time{}
	}
	if at, ok := i.requester.begin(now, rtt, &i.nack); ok {
		packets = i.requester.search(packets, streams, at, rtt)
	}
	packets, next = i.requester.keyFrames(packets, streams, now, i.set.cfg.KeyFrameInterval)
	if !now.Before(i.reportDue) {
		packets = i.reports(packets, now)
		i.uplink.measure(streams, rtt, i.set.cfg.NACK.Deadline)
		i.reportDue = now.Add(i.set.cfg.ReportInterval)
	}
	return packets, earliest(next, earliest(i.requester.scheduled, i.reportDue))
}

// startReports schedules the first report, unless a report is scheduled. The caller holds the mutex.
func (i *Ingress) startReports() {
	if i.reportDue.IsZero() {
		i.reportDue = i.set.clock.Now().Add(i.set.cfg.ReportInterval)
		i.waker.wake()
	}
}

// reports appends receiver reports. It also frees the expired packets of silent tracks, packets that no binding has
// processed, and incomplete frames of injectors.
func (i *Ingress) reports(packets []rtcp.Packet, now time.Time) []rtcp.Packet {
	var blocks []rtcp.ReceptionReport
	for _, s := range i.bindings.streams {
		if block, ok := s.reception.Report(s.ssrc, now); ok {
			blocks = append(blocks, block)
		}
		s.track.Log().Trim(i.set.clock.Since(now))
	}
	i.early.expire(now)
	if i.chunks.Used() > 0 {
		i.bindings.sweep()
		i.takeovers.waiting.sweep()
	}
	return feedback.AppendReceiverReports(packets, i.ssrc, blocks)
}
