package client

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/downlink"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RTP implements transport.Sink.
func (m *media) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastReceived = info.At
	m.downlink.Arrived(ssrc, packet, info.Path, info.ECN, info.Arrived())
	if info.ECN == ecn.CE && !m.awaited {
		m.awaited = true
		select {
		case m.marks <- struct{}{}:
		default:
		}
	}
	if m.ended {
		return
	}
	stamp := frametrace.KernelStamp{Kernel: info.Kernel, Hardware: info.Hardware}
	m.deliver(m.downlink.RTP(ssrc, packet, info.At, stamp))
}

// Repeated implements transport.Sink.
func (m *media) Repeated(ssrc uint32, sequence uint16, info *transport.PacketInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.downlink.Repeated(info.Path, ssrc, sequence, info.Arrived())
}

// deliver delivers the result of a packet to the program. If the program does not read, the result is lost.
func (m *media) deliver(a downlink.Arrival) {
	switch {
	case a.Refused != nil:
		m.refused(a.Refused)
	case a.Frame != nil:
		m.trace(a)
		select {
		case m.frames <- Frame(*a.Frame):
			a.Delivered(true)
		default:
			a.Delivered(false)
		}
	case a.Packet != nil:
		select {
		case m.packets <- Packet(*a.Packet):
			a.Delivered(true)
		default:
			a.Delivered(false)
		}
	}
}

// refused reports a refused frame or packet to the program, once for each publication and reason.
func (m *media) refused(r *downlink.Refusal) {
	if r.First {
		m.events.add(Refused{Track: r.Track, Err: r.Err})
	}
}

// trace adds the arrival times of a frame that is complete.
func (m *media) trace(a downlink.Arrival) {
	if m.tracing.TracesReceived() {
		now, f, shift := time.Now(), a.Frame, m.config.ClockShift
		m.tracing.Complete(f.Track, f.Number, len(f.Data), a.Times, m.clock.State(now), shift, now)
	}
}

// Data implements transport.Sink.
func (m *media) Data(label string, message []byte, _ time.Time) {
	if label == signal.MessageChannel {
		m.data.Copied(message)
	}
}

// Sent implements transport.Sink.
func (m *media) Sent(ssrc uint32, sequence uint16, kernel, hardware time.Time) {
	m.tracing.Stamped(ssrc, sequence, frametrace.KernelStamp{Kernel: kernel, Hardware: hardware})
}

// RTCP implements transport.Sink.
func (m *media) RTCP(packet []byte, now time.Time) {
	m.mu.Lock()
	m.lastReceived = now
	m.mu.Unlock()
	if feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.uplink.Report(packet, now) {
			m.wakeSender()
		}
		return
	}
	if redundancy.IsReport(packet) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.uplink.PathReport(packet, now) {
			m.wakeSender()
		}
		return
	}
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return
	}
	rtt := m.peer.Load().RTT()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.SenderReport:
			m.downlink.SenderReport(p, now)
		case *rtcp.TransportLayerNack:
			if m.uplink.Repeat(p, now, rtt) {
				m.wakeSender()
			}
		case *rtcp.PictureLossIndication:
			m.wantKeyFrame(p.MediaSSRC)
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR {
				m.wantKeyFrame(entry.SSRC)
			}
		}
	}
}

// wantKeyFrame reports to the program that a track needs a key frame.
func (m *media) wantKeyFrame(ssrc uint32) {
	if track, ok := m.uplink.TrackOf(ssrc); ok {
		m.events.add(KeyFrameWanted(track))
	}
}

// Intervals of the watching goroutine. Requests for missing packets are at least 10 ms apart, so a step every 5 ms
// delays the requests little. Reports of arrivals are made with the steps, too, except those about packets with ECN-CE,
// which are made in time.
const (
	watchInterval  = 5 * time.Millisecond
	reportInterval = time.Second
)

// watcher is the goroutine that requests missing packets, expires late frames, and sends reports. The slices are reused
// by the next step.
type watcher struct {
	media    *media
	reported time.Time
	packets  []rtcp.Packet
	// compounds holds the bytes of the reports of arrivals, which arrivals refers to.
	compounds []byte
	arrivals  []rtcp.Packet
}

func (w *watcher) run() {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	marked := time.NewTimer(watchInterval)
	marked.Stop()
	defer marked.Stop()
	for {
		select {
		case <-ticker.C:
			w.step(time.Now())
		case <-w.media.marks:
			if due := w.arrivalsDue(); !due.IsZero() {
				marked.Reset(time.Until(due))
			}
		case <-marked.C:
			w.sendArrivals(time.Now())
		case <-w.media.stopped:
			return
		case <-w.media.lifetime.Done():
			return
		}
	}
}

// arrivalsDue returns the time of the next report of arrivals, or the zero time if there is nothing to report.
func (w *watcher) arrivalsDue() time.Time {
	w.media.mu.Lock()
	defer w.media.mu.Unlock()
	return w.media.downlink.ArrivalsDue()
}

// step sends the requests and reports that are due by now.
func (w *watcher) step(now time.Time) {
	peer := w.media.peer.Load()
	w.gather(now, peer.RTT())
	for _, compound := range feedback.Compounds(w.packets) {
		_ = peer.WriteRTCP(compound)
	}
	w.writeArrivals(peer)
}

// sendArrivals sends the reports of arrivals that are due by now.
func (w *watcher) sendArrivals(now time.Time) {
	w.media.mu.Lock()
	w.reportArrivals(now)
	w.media.mu.Unlock()
	w.writeArrivals(w.media.peer.Load())
}

// writeArrivals sends the collected reports of arrivals.
func (w *watcher) writeArrivals(peer *transport.Peer) {
	for i := range w.arrivals {
		_ = peer.WriteRTCP(w.arrivals[i : i+1])
	}
}

// gather collects the requests and reports that are due by now.
func (w *watcher) gather(now time.Time, rtt time.Duration) {
	m := w.media
	m.mu.Lock()
	defer m.mu.Unlock()
	w.packets = m.downlink.Step(w.packets[:0], now, rtt)
	if now.Sub(w.reported) >= reportInterval {
		w.reported = now
		w.report(now)
	}
	w.reportArrivals(now)
}

// reportArrivals collects the reports of arrivals and of paths that are due. Each report is a compound of its own. The
// caller holds the lock.
func (w *watcher) reportArrivals(now time.Time) {
	w.media.awaited = false
	w.compounds, w.arrivals = w.compounds[:0], w.arrivals[:0]
	for {
		begin := len(w.compounds)
		w.compounds = w.media.downlink.AppendArrivals(w.compounds, now)
		if len(w.compounds) == begin {
			w.compounds = w.media.downlink.AppendPathReport(w.compounds, now)
		}
		if len(w.compounds) == begin {
			return
		}
		compound := rtcp.RawPacket(w.compounds[begin:])
		w.arrivals = append(w.arrivals, &compound)
	}
}

// report appends sender reports of all lines and receiver reports of all streams.
func (w *watcher) report(now time.Time) {
	m := w.media
	w.packets = m.uplink.AppendReports(w.packets, now)
	w.packets = m.downlink.AppendReceiverReports(w.packets, now)
}

// addStream adds the stream of a line that the server sends on.
func (m *media) addStream(mid string, kind volumetric.Kind, streams transport.Streams) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.downlink.AddStream(mid, kind, streams.SSRC, streams.Retransmission)
}

// assign begins an assignment of a slot, and reports whether the slot is known. publication is nil for none.
func (m *media) assign(a signal.Assignment, publication *volumetric.Publication) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.downlink.Assign(a, publication, time.Now())
}

// restart records that a publication has begun or ended.
func (m *media) restart(publication volumetric.PublicationRef) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.downlink.Restart(publication)
}

// sending counts changes of the qualities that slots carry, and returns an event for each.
func (m *media) sending(message *signal.Sending, now time.Time) []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	var events []Event
	for _, slot := range message.Slots {
		if track, ok := m.downlink.Switched(slot, now); ok {
			delay := time.Duration(slot.DelayUS) * time.Microsecond
			events = append(events, Sending{Track: track, Quality: slot.Quality, Reason: slot.Reason, Delay: delay})
		}
	}
	return events
}

// delivery counts frames that the server reported as dropped.
func (m *media) delivery(message *signal.Delivery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, drops := range message.Dropped {
		m.downlink.Dropped(drops)
	}
}
