package edge

import (
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// delayUnit is the unit of delays in a report.
const delayUnit = 100 * time.Microsecond

// Set carries out an order. The error wraps ErrUnknownRule, ErrUnknownPath or ErrOrder, and then nothing has changed.
func (e *Edge) Set(o Order) error {
	if err := e.config.checkOrder(o); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := monotonic()
	for _, rule := range e.sender.rules {
		if o.Rule == "" || o.Rule == rule.Name {
			e.sender.set(rule, o, now)
		}
	}
	return e.sender.step(now)
}

// Status returns a snapshot of the edge.
func (e *Edge) Status() (Status, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := monotonic()
	counts := e.channel.Counts()
	s := Status{Name: e.config.Name, Peer: e.config.Peer, Started: e.started, Readopted: e.readopted,
		PeerAlive: e.channel.PeerAlive(now), Control: ControlCounts{HellosSent: e.hellos, ReportsSent: e.reports,
			HellosReceived: counts.Hellos, ReportsReceived: counts.Reports, Malformed: counts.Malformed + e.malformed,
			Forged: counts.Forged, Replayed: counts.Replayed, Reflected: counts.Reflected, Stale: counts.Stale,
			Misplaced: counts.Misplaced}}
	for _, p := range e.paths {
		path := PathStatus{Name: p.Name, Interface: p.Interface, Local: p.Local, Remote: p.Remote, MTU: p.host.mtu,
			State: p.host.state}
		var err error
		if e.receiver != nil {
			path.Received, err = e.receiver.received(p.index)
		}
		if e.sender != nil && err == nil {
			path.Sent, err = e.sender.sent(p.index)
			path.Report = e.sender.pathReport(p.index, now)
		}
		if err != nil {
			return Status{}, err
		}
		s.Paths = append(s.Paths, path)
	}
	if e.sender == nil {
		return s, nil
	}
	s.PeerAlive = e.sender.leased(now)
	return s, e.sender.status(&s)
}

// status adds the sender to a snapshot.
func (s *sender) status(to *Status) error {
	to.Format, to.Epoch = s.config.Send.Format, s.written.Epoch
	var each []bpf.SenderSelected
	if err := s.objects.Selected.Lookup(uint32(0), &each); err != nil {
		return fmt.Errorf("read the map %s: %w", s.objects.Selected, err)
	}
	for _, one := range each {
		to.Sent.Packets += one.Packets
		to.Sent.Bytes += one.Bytes
		to.Sent.Plain += one.Plain
		to.Sent.Refused += one.Refused
	}
	var copies uint64
	for _, p := range to.Paths {
		copies += p.Sent.Packets
	}
	if to.Sent.Packets > 0 {
		to.Sent.CostFactor = float64(copies) / float64(to.Sent.Packets)
	}
	for _, rule := range s.rules {
		status := RuleStatus{Name: rule.Name, To: rule.To, Copies: rule.copies, Triggered: rule.triggered,
			Reason: rule.reason, Since: rule.since, Set: []string{}, Probes: []string{}}
		if rule.written.Format != bpf.FormatPlain {
			status.Set, status.Probes = s.config.namesOf(rule.written.Set), s.config.namesOf(rule.written.Probes)
		}
		to.Rules = append(to.Rules, status)
	}
	return nil
}

// sent returns the counts of a path, over all processors.
func (s *sender) sent(path int) (total PathSent, err error) {
	var each []bpf.SenderSent
	if err := s.objects.Sent.Lookup(uint32(path), &each); err != nil {
		return total, fmt.Errorf("read the map %s: %w", s.objects.Sent, err)
	}
	for _, one := range each {
		total.Packets += one.Packets
		total.Bytes += one.Bytes
		total.FailedClones += one.Failed
		total.Oversize += one.Oversize
	}
	return total, nil
}

// pathReport joins the latest reports of all rules about a path. It returns nil without recent copies on the path.
func (s *sender) pathReport(path int, now time.Duration) *PathReport {
	var copies, inTime, lost, only float64
	var delay time.Duration
	for _, rule := range s.rules {
		if rule.report == nil || now-rule.reported > reportFor {
			continue
		}
		r := &rule.report.Paths[path]
		copies += float64(r.Copies)
		inTime += float64(r.InTime)
		lost += float64(r.Lost)
		only += onlyInTime(rule.report, path)
		delay += time.Duration(r.Copies) * time.Duration(r.Delay) * delayUnit
	}
	if copies == 0 {
		return nil
	}
	return &PathReport{Loss: lost / copies, InTime: inTime / copies, OnlyInTime: only / copies,
		DelaySeconds: delay.Seconds() / copies}
}

// onlyInTime returns the numbers that a path delivered in time, and no other path.
func onlyInTime(r *wire.Report, path int) (numbers float64) {
	for _, row := range r.Rows {
		if row.InTime == 1<<path && row.Sent != row.InTime {
			numbers += float64(row.Long)
		}
	}
	return numbers
}
