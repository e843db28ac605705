package ingress

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestPathReports sends packets of a publisher on two paths, and reads the server's reports about the paths.
func TestPathReports(t *testing.T) {
	r := newRig(t, nil)
	i := r.ingress(&fakePeer{})
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	p.Next()
	p.Send(r.now, p.Packets(5*1000)...)
	if report, due := i.pathReport(r.now.Add(time.Second)); report != nil || !due.IsZero() {
		t.Fatalf("a report of %d packets is due at %v, although there is one path", len(report), due)
	}
	p.Next()
	second := &transport.PacketInfo{At: r.now, Path: 1}
	for n, packet := range p.Packets(5 * 1000) {
		if n%2 == 0 {
			i.RTP(p.SSRC, packet, second)
			i.Repeated(p.SSRC, p.Sequence-5+uint16(n), forwardtest.InfoAt(r.now.Add(5*time.Millisecond)))
		} else {
			i.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
		}
	}
	select {
	case <-i.waker.woken:
	default:
		t.Error("the goroutine is not woken for a report")
	}
	r.now = r.now.Add(60 * time.Millisecond)
	compounds, _ := i.Step(r.now)
	var reports []redundancy.Report
	for _, compound := range compounds {
		raw, err := compound[0].Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if redundancy.IsReport(raw) {
			report, err := redundancy.ParseReport(raw)
			if err != nil {
				t.Fatal(err)
			}
			reports = append(reports, report)
		}
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports about paths, expected 1", len(reports))
	}
	first, other := reports[0].Paths[0], reports[0].Paths[1]
	if first.Packets != 5 || other.Packets != 3 || first.SSRC != p.SSRC || other.Sequence != p.Sequence-1 ||
		reports[0].Sender != i.ssrc || first.Arrived-other.Arrived != 5000 {
		t.Errorf("the report is %+v, expected 5 packets on the first path and 3 on the second, 5 ms earlier",
			reports[0])
	}
	if _, due := i.pathReport(r.now.Add(time.Second)); !due.IsZero() {
		t.Error("another report is due without another packet")
	}
}
