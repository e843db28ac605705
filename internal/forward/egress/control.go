package egress

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/redundancy"
)

// RTCP processes one decrypted compound RTCP packet: NACK, PLI, FIR, report blocks about the receiver's slots, and
// reports of arrivals, of which feedback.MaxReportRate are read in a second.
func (r *Receiver) RTCP(packet []byte, now time.Time) { incoming{r, now}.process(packet) }

// incoming processes the RTCP of a receiver that has arrived at a time. Any goroutine may use it.
type incoming struct {
	*Receiver
	now time.Time
}

func (r incoming) process(packet []byte) {
	if feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet) {
		if r.readsReport() {
			r.Arrivals(packet, r.now)
		} else {
			r.writer.set.control.Add(counters.TransportDropped, 1)
		}
		return
	}
	if redundancy.IsReport(packet) {
		r.pathReport(packet)
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
			r.nacked(p)
		case *rtcp.PictureLossIndication:
			if r.keyFramesGranted(1) > 0 {
				r.keyFrameWanted(p.MediaSSRC)
			}
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR[:r.keyFramesGranted(len(p.FIR))] {
				r.keyFrameWanted(entry.SSRC)
			}
		case *rtcp.ReceiverReport:
			r.reported(p.Reports)
		case *rtcp.SenderReport:
			r.reported(p.Reports)
		case *rtcp.ExtendedReport:
			r.replyToReference(p)
		}
	}
}

// replyToReference replies to a reference time, so that a receiver that sends no media learns the round-trip time.
func (r incoming) replyToReference(p *rtcp.ExtendedReport) {
	slots := r.slots.all()
	if len(slots) == 0 {
		return
	}
	r.mu.Lock()
	if r.control.reference == nil {
		r.control.reference = new(feedback.ReferenceTimes)
	}
	reply, ok := r.control.reference.Reply(p, slots[0].outlet.SSRC(), r.now)
	r.mu.Unlock()
	if ok {
		// A closed peer sends nothing.
		_ = r.path.peer.WriteRTCP([]rtcp.Packet{reply})
	}
}

// readsReport reports whether one more report of arrivals is read from the receiver.
func (r incoming) readsReport() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.control.reportLimit.Take(r.now)
}

// pathReport passes a report of the receiver's paths to the writer, if the receiver has a second path. The limit of
// reports of arrivals includes such reports.
func (r incoming) pathReport(packet []byte) {
	set, routes := r.writer.set, r.path.routes
	switch {
	case routes == nil || !routes.peer.SecondRoute():
	case !r.readsReport():
		set.control.Add(counters.TransportDropped, 1)
	case len(packet) != redundancy.ReportBytes || rtcpSize(packet) != len(packet):
		set.control.Add(counters.MalformedRTCP, 1)
	default:
		r.slots.name()
		dropped := r.writer.inbox.onReport(r.Receiver, packet, set.clock.Since(r.now))
		set.control.Add(counters.TransportDropped, uint64(dropped))
	}
}

// nacked passes the requested sequence numbers of a slot to the writer.
func (r incoming) nacked(p *rtcp.TransportLayerNack) {
	if s := r.slots.find(p.MediaSSRC); s != nil {
		control := &r.writer.set.control
		control.Add(counters.NacksReceived, 1)
		ignored := r.writer.inbox.nacked(s, p.Nacks, r.writer.set.cfg.MaxNACKed)
		control.Add(counters.NackedLimited, uint64(ignored))
	}
}

// keyFramesGranted returns how many of the key frame requests are processed.
func (r incoming) keyFramesGranted(requests int) int {
	set := r.writer.set
	r.mu.Lock()
	defer r.mu.Unlock()
	granted := r.control.keyFrames.take(requests, r.slots.count(), set.cfg.KeyFrameInterval, r.now)
	set.control.Add(counters.KeyFramesLimited, uint64(requests-granted))
	return granted
}

func (r incoming) keyFrameWanted(ssrc uint32) {
	if s := r.slots.find(ssrc); s != nil {
		r.writer.inbox.keyFrameWanted(s)
	}
}

// reported passes the report blocks about slots to the writer.
func (r incoming) reported(blocks []rtcp.ReceptionReport) {
	for _, block := range blocks {
		if s := r.slots.find(block.SSRC); s != nil {
			r.writer.inbox.reported(s, block, r.now)
		}
	}
}
