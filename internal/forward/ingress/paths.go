package ingress

import (
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

// received records an RTP packet, and reports whether the due time of the next report has moved forward, which happens
// at most twice until the report is made. own is the server's SSRC, started the origin of the report's times.
func (p *paths) received(own, ssrc uint32, sequence uint16, info *transport.PacketInfo,
	started time.Time) (sooner bool) {
	if p.recorder == nil {
		p.recorder = redundancy.NewRecorder(own, started)
	}
	p.recorder.Arrived(info.Path, ssrc, sequence, info.Arrived())
	next := p.recorder.Next()
	if next.IsZero() || !p.due.IsZero() && !next.Before(p.due) {
		return false
	}
	p.due = next
	return true
}

// reports returns the report that is due, as one compound packet that is valid until the next call, or nil.
func (p *paths) reports(now time.Time) (compound []rtcp.Packet) {
	p.report = p.recorder.AppendReport(p.report[:0], now)
	p.due = p.recorder.Next()
	if len(p.report) == 0 {
		return nil
	}
	report := rtcp.RawPacket(p.report)
	return []rtcp.Packet{&report}
}
