package ingress

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// testExtension is the identifier of the transport-wide number.
const testExtension = 7

// TestReportsToPublishers lets a publisher number its packets, including repairs, and reads the server's reports.
func TestReportsToPublishers(t *testing.T) {
	r := newRig(t, nil)
	peer := &fakePeer{}
	i := r.ingress(peer)
	p := r.publish(i, 10, volumetric.MIMEVolumetric)
	history := feedback.NewTransportHistory(65500)
	p.Extension = testExtension
	var results []feedback.PacketResult
	reports := 0
	report := func() {
		t.Helper()
		compounds, next := i.arrivalReports(r.now)
		for _, compound := range compounds {
			raw, err := compound.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if media := binary.BigEndian.Uint32(raw[8:]); media != p.SSRC && media != p.RTX && media != 99 {
				t.Errorf("a report names the stream %d, which the publisher does not have", media)
			}
			packets, err := rtcp.Unmarshal(raw)
			if err != nil || len(packets) != 1 {
				t.Fatalf("%x is %d packets: %v", raw, len(packets), err)
			}
			reports++
			results = history.Feedback(raw, r.now, results)
		}
		if !next.IsZero() && next.Sub(r.now) > 250*time.Millisecond {
			t.Errorf("the next report is due in %v, expected 250 ms at most", next.Sub(r.now))
		}
	}
	number := func(packet []byte) []byte {
		binary.BigEndian.PutUint16(packet[17:], uint16(history.Sent(len(packet), feedback.Media, r.now)))
		return packet
	}
	// Before the peers agree, numbers have no meaning.
	p.Next()
	p.Send(r.now, p.Packets(1144)...)
	peer.extension = testExtension
	report()
	if reports != 0 {
		t.Fatal("a report of what has no number")
	}
	sent, lost, woken := 0, 0, 0
	for range 30 {
		p.Next()
		for n, packet := range p.Packets(20 * 1144) {
			number(packet)
			sent++
			if n == 7 {
				lost++
				r.now = r.now.Add(time.Millisecond)
				i.RTP(p.RTX, number(p.Retransmission(packet)), forwardtest.InfoAt(r.now))
			} else {
				i.RTP(p.SSRC, packet, forwardtest.InfoAt(r.now))
			}
			select {
			case <-i.wakeup:
				woken++
				i.step(r.now)
			default:
			}
			if n == 7 {
				sent++
			}
		}
		i.RTP(99, number(p.Packet([]byte("of a stream that is not bound"), true)), forwardtest.InfoAt(r.now))
		sent++
		i.Flush()
		r.now = r.now.Add(33 * time.Millisecond)
		report()
	}
	r.now = r.now.Add(time.Second)
	report()
	received := 0
	for _, result := range results {
		if result.Received {
			received++
		}
	}
	if len(results) != sent || received != sent-lost || reports < 10 {
		t.Errorf("%d reports say of %d packets that %d were received, expected at least 10, %d and %d", reports,
			len(results), received, sent, sent-lost)
	}
	if stats := r.stats(); stats.TransportReportsSent != uint64(reports) {
		t.Errorf("%d reports were counted, expected %d", stats.TransportReportsSent, reports)
	}
	// Three for each report, and some for missing packets.
	if woken > 3*reports+2*lost+1 {
		t.Errorf("the goroutine was woken %d times for %d packets and %d reports", woken, sent, reports)
	}
}
