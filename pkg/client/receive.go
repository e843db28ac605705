package client

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client/internal/frametrace"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// RTP implements transport.Sink.
func (m *media) RTP(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	now := info.At
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arrivals.received(ssrc, packet, m.uplink.extension, now)
	s := m.streamBySSRC[ssrc]
	if s == nil || m.ended {
		return
	}
	if ssrc == s.streams.Retransmission {
		n, err := feedback.UnpackRTX(packet, packet, s.streams.SSRC, 0)
		if err != nil {
			return
		}
		packet = packet[:n]
	}
	n, err := s.header.Unmarshal(packet)
	if err != nil {
		return
	}
	s.kernels.Set(frametrace.KernelStamp{Kernel: info.Kernel, Hardware: info.Hardware})
	m.deliver(s, s.take(&s.header, unpadded(&s.header, packet[n:]), ssrc == s.streams.SSRC, now, m.toServer))
}

// unpadded cuts off the padding of a packet; nothing remains of one whose padding claims more than there is.
func unpadded(header *rtp.Header, data []byte) []byte {
	if !header.Padding || len(data) == 0 {
		return data
	}
	return data[:max(0, len(data)-int(data[len(data)-1]))]
}

// deliver hands over what a packet completed. A program that does not read loses it, and the books say so.
func (m *media) deliver(s *stream, a arrival) {
	switch {
	case a.frame != nil:
		m.trace(a.frame)
		select {
		case m.frames <- *a.frame:
			s.book.ledger.complete()
		default:
			s.book.ledger.overflowed()
		}
	case a.packet != nil:
		select {
		case m.packets <- *a.packet:
		default:
			s.book.ledger.overflowed()
		}
	}
}

// RTCP implements transport.Sink.
func (m *media) RTCP(packet []byte, now time.Time) {
	if feedback.IsTransportFeedback(packet) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.uplink.reported(packet, now) {
			m.wakeSender()
		}
		return
	}
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return
	}
	rtt := m.session.currentPeer().RTT()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return
	}
	for _, p := range packets {
		switch p := p.(type) {
		case *rtcp.SenderReport:
			if s := m.streamBySSRC[p.SSRC]; s != nil && s.captures != nil {
				s.captures.SenderReport(p)
				s.reception.SenderReport(p.NTPTime, now)
			}
		case *rtcp.TransportLayerNack:
			if l := m.lineBySSRC[p.MediaSSRC]; l != nil {
				m.uplink.asked(l, p, now, rtt)
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

// wantKeyFrame tells the program which of its tracks needs a key frame.
func (m *media) wantKeyFrame(ssrc uint32) {
	if l := m.lineBySSRC[ssrc]; l != nil && l.publisher != nil {
		m.session.events.tell(KeyFrameWanted(l.publisher.own(l.track)))
	}
}

// Intervals of the watching goroutine. Requests for lost packets are at least 10 ms apart, so looking every 5 ms delays them little;
// books may be settled a little later than the deadlines of their frames, which costs the more the more streams there are; reports come once per second, as everywhere.
const (
	watchInterval  = 5 * time.Millisecond
	settleInterval = 25 * time.Millisecond
	reportInterval = time.Second
)

// watch is the goroutine that asks for what is missing, gives up what is late, and reports.
func (m *media) watch() {
	defer m.session.running.Done()
	defer m.session.confine()
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	w := watcher{media: m, nack: feedback.DefaultConfig().NACK}
	for {
		select {
		case now := <-ticker.C:
			w.step(now)
		case <-m.session.ctx.Done():
			return
		}
	}
}

// watcher is the state of the watching goroutine; its slices are kept for the next step.
type watcher struct {
	media    *media
	settled  time.Time
	reported time.Time
	// late is how much later than before packets came when the books were settled last.
	late    time.Duration
	nack    feedback.NACKConfig
	packets []rtcp.Packet
	// compounds are the bytes of arrivals, which are reports of those.
	compounds []byte
	arrivals  []rtcp.Packet
	blocks    []rtcp.ReceptionReport
	ask       []int64
	lost      []int64
	givenUp   []payload.GivenUp
}

// step does what is due by now and sends what came of it.
func (w *watcher) step(now time.Time) {
	peer := w.media.session.currentPeer()
	w.gather(now, peer.RTT())
	for _, compound := range feedback.Compounds(w.packets) {
		_ = peer.WriteRTCP(compound)
	}
	for i := range w.arrivals {
		_ = peer.WriteRTCP(w.arrivals[i : i+1])
	}
}

// gather does what is due by now, and keeps what is to be sent.
func (w *watcher) gather(now time.Time, rtt time.Duration) {
	m := w.media
	w.packets = w.packets[:0]
	settle := now.Sub(w.settled) >= settleInterval
	m.mu.Lock()
	defer m.mu.Unlock()
	if settle {
		w.settled, w.late = now, m.late()
	}
	_, deadline := w.nack.Repair(rtt, w.late)
	if configured := m.session.config.Deadline; configured > 0 {
		deadline = configured
	}
	for _, s := range m.streams {
		w.ask = w.ask[:0]
		if at := s.nacks.Next(); s.kind != volumetric.KindAudio && !at.IsZero() && !now.Before(at) {
			s.nacks.Late(w.late)
			w.ask, w.lost = s.nacks.Due(now, rtt, w.ask, w.lost[:0])
		}
		if len(w.ask) > 0 {
			w.packets = feedback.AppendNACKs(w.packets, m.ssrc, s.streams.SSRC, w.ask)
		}
		if settle {
			s.frames.SetDeadline(deadline)
			w.givenUp = s.expire(now, deadline, w.givenUp)
		}
	}
	if now.Sub(w.reported) >= reportInterval {
		w.reported = now
		w.report(now)
	}
	w.reportArrivals(now)
}

// late is how much later than before packets come.
func (m *media) late() time.Duration {
	longest := time.Duration(0)
	for _, s := range m.streams {
		if s.kind != volumetric.KindAudio && s.book != nil && s.lateness != nil {
			longest = max(longest, s.lateness.Longest())
		}
	}
	return longest
}

// reportArrivals makes the reports of arrivals that are due. Each packet is a compound of its own.
func (w *watcher) reportArrivals(now time.Time) {
	w.compounds, w.arrivals = w.compounds[:0], w.arrivals[:0]
	for {
		begin := len(w.compounds)
		w.compounds = w.media.arrivals.appendReports(w.compounds, w.media.ssrc, now)
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
	for _, l := range m.lines {
		l.history.Expire(now)
		if l.reports == nil || l.publisher == nil {
			continue
		}
		if report, ok := l.reports.Report(now); ok {
			w.packets = append(w.packets, report)
		}
	}
	w.blocks = w.blocks[:0]
	for _, s := range m.streams {
		if s.reception == nil {
			continue
		}
		if block, ok := s.reception.Report(s.streams.SSRC, now); ok {
			w.blocks = append(w.blocks, block)
		}
	}
	w.packets = feedback.AppendReceiverReports(w.packets, m.ssrc, w.blocks)
}
