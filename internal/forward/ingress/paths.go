package ingress

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
)

// paths records the arrivals on the paths of a publisher with a second path, for reports to the publisher. The
// ingress's mutex guards it.
type paths struct {
	// recorder is nil until a packet arrives on the second path.
	recorder *redundancy.Recorder
	// due is the time of the next report, zero while there is nothing to report.
	due time.Time
	// report holds the bytes of the last report, which the goroutine sends.
	report     []byte
	codepoints ecn.TwoPaths
}

// Repeated records a packet of which another path has delivered a copy before. The goroutine that calls RTP calls
// Repeated.
func (i *Ingress) Repeated(ssrc uint32, sequence uint16, info *transport.PacketInfo) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.begin() {
		return
	}
	i.arrivedOn(ssrc, sequence, info)
	i.end()
}

// takePath records the path on which an RTP packet has arrived, if the publisher has a second path.
func (i *Ingress) takePath(ssrc uint32, packet []byte, info *transport.PacketInfo) {
	const sequenceEnd = 4
	if (info.Path != 0 || i.paths.recorder != nil) && len(packet) >= sequenceEnd {
		i.arrivedOn(ssrc, binary.BigEndian.Uint16(packet[2:]), info)
	}
}

// arrivedOn records an arrival. The due time of the next report moves forward at most twice until the report is made,
// and each move wakes the goroutine.
func (i *Ingress) arrivedOn(ssrc uint32, sequence uint16, info *transport.PacketInfo) {
	p := &i.paths
	if p.recorder == nil {
		p.recorder = redundancy.NewRecorder(i.ssrc, i.set.clock.Started())
	}
	p.recorder.Arrived(info.Path, ssrc, sequence, info.Arrived())
	if next := p.recorder.Next(); !next.IsZero() && (p.due.IsZero() || next.Before(p.due)) {
		p.due = next
		i.wake()
	}
}

// pathReport returns the report that is due, as one compound packet that is valid until the next call, or nil. due is
// the time of the next report.
func (i *Ingress) pathReport(now time.Time) (compound []rtcp.Packet, due time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := &i.paths
	if p.due.IsZero() || now.Before(p.due) || !i.begin() {
		return nil, p.due
	}
	p.report = p.recorder.AppendReport(p.report[:0], now)
	p.due = p.recorder.Next()
	if len(p.report) > 0 {
		report := rtcp.RawPacket(p.report)
		compound = []rtcp.Packet{&report}
	}
	i.end()
	return compound, p.due
}
