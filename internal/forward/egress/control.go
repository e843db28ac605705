package egress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// control processes the RTCP packets of one receiver, the parameter of its methods. Any goroutine may use it. The fields
// are guarded by Receiver.mu: a mutex and a pointer of its own would take a receiver beyond 2 kB.
type control struct {
	// keyFrames limits the receiver's key frame requests, reportLimit its reports of arrivals and of paths.
	keyFrames   keyFrameBudget
	reportLimit feedback.ReportLimit
	// reference replies to the receiver's reference times, nil before the first one.
	reference *feedback.ReferenceTimes
}

// process processes one decrypted compound packet, see Receiver.RTCP.
func (c *control) process(r *Receiver, packet []byte, now time.Time) {
	if feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet) {
		if c.readsReport(r, now) {
			r.Arrivals(packet, now)
		} else {
			r.writer.set.control.Add(counters.TransportDropped, 1)
		}
		return
	}
	if redundancy.IsReport(packet) {
		c.pathReport(r, packet, now)
		return
	}
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		r.writer.set.control.Add(counters.MalformedRTCP, 1)
		return
	}
	r.slots.name()
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.TransportLayerNack:
			c.nacked(r, p)
		case *rtcp.PictureLossIndication:
			if c.keyFramesGranted(r, 1, now) > 0 {
				c.keyFrameWanted(r, p.MediaSSRC)
			}
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR[:c.keyFramesGranted(r, len(p.FIR), now)] {
				c.keyFrameWanted(r, entry.SSRC)
			}
		case *rtcp.ReceiverReport:
			c.reported(r, p.Reports, now)
		case *rtcp.SenderReport:
			c.reported(r, p.Reports, now)
		case *rtcp.ExtendedReport:
			c.replyToReference(r, p, now)
		}
	}
}

// replyToReference replies to a reference time, so that a receiver that sends no media learns the round-trip time.
func (c *control) replyToReference(r *Receiver, p *rtcp.ExtendedReport, now time.Time) {
	slots := r.slots.all()
	if len(slots) == 0 {
		return
	}
	r.mu.Lock()
	if c.reference == nil {
		c.reference = new(feedback.ReferenceTimes)
	}
	reply, ok := c.reference.Reply(p, slots[0].outlet.SSRC(), now)
	r.mu.Unlock()
	if ok {
		// A closed peer sends nothing.
		_ = r.path.peer.WriteRTCP([]rtcp.Packet{reply})
	}
}

// readsReport reports whether one more report of arrivals is read from the receiver.
func (c *control) readsReport(r *Receiver, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.reportLimit.Take(now)
}

// pathReport passes a report of the receiver's paths to the writer, if the receiver has a second path. The limit of
// reports of arrivals includes such reports.
func (c *control) pathReport(r *Receiver, packet []byte, now time.Time) {
	set, routes := r.writer.set, r.path.routes
	switch {
	case routes == nil || !routes.peer.SecondRoute():
	case !c.readsReport(r, now):
		set.control.Add(counters.TransportDropped, 1)
	case len(packet) != redundancy.ReportBytes || rtcpSize(packet) != len(packet):
		set.control.Add(counters.MalformedRTCP, 1)
	default:
		r.slots.name()
		set.control.Add(counters.TransportDropped, uint64(r.writer.inbox.onReport(r, packet, set.clock.Since(now))))
	}
}

// nacked passes the requested sequence numbers of a slot to the writer.
func (c *control) nacked(r *Receiver, p *rtcp.TransportLayerNack) {
	if s := r.slots.find(p.MediaSSRC); s != nil {
		control := &r.writer.set.control
		control.Add(counters.NacksReceived, 1)
		ignored := r.writer.inbox.nacked(s, p.Nacks, r.writer.set.cfg.MaxNACKed)
		control.Add(counters.NackedLimited, uint64(ignored))
	}
}

// keyFramesGranted returns how many of the key frame requests are processed.
func (c *control) keyFramesGranted(r *Receiver, requests int, now time.Time) int {
	set := r.writer.set
	r.mu.Lock()
	defer r.mu.Unlock()
	granted := c.keyFrames.take(requests, r.slots.count(), set.cfg.KeyFrameInterval, now)
	set.control.Add(counters.KeyFramesLimited, uint64(requests-granted))
	return granted
}

func (c *control) keyFrameWanted(r *Receiver, ssrc uint32) {
	if s := r.slots.find(ssrc); s != nil {
		r.writer.inbox.keyFrameWanted(s)
	}
}

// reported passes the report blocks about slots to the writer.
func (c *control) reported(r *Receiver, blocks []rtcp.ReceptionReport, now time.Time) {
	for _, block := range blocks {
		if s := r.slots.find(block.SSRC); s != nil {
			r.writer.inbox.reported(s, block, now)
		}
	}
}
