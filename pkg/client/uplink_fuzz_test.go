package client

import (
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FuzzUplinkReports gives the uplink reports on 200 packets, one per millisecond: whatever they say, the estimate stays within its limits, and the
// lowest quality is sent.
func FuzzUplinkReports(f *testing.F) {
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	var honest []byte
	for i := range 200 {
		now := epoch.Add(time.Duration(i)*time.Millisecond + 20*time.Millisecond)
		if i%7 != 0 {
			recorder.Received(uint16(i), 1200, now)
		}
		if report := recorder.AppendReports(nil, 1, 0, now); len(report) > 0 {
			honest = scripted(honest, 0, 50, report)
		}
	}
	f.Add(honest)
	lie := &rtcp.TransportLayerCC{
		Header:     rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 5},
		SenderSSRC: 1, BaseSequenceNumber: 0, PacketStatusCount: 1, ReferenceTime: 0xffffff,
		PacketChunks: []rtcp.PacketStatusChunk{&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 1}},
		RecvDeltas:   []*rtcp.RecvDelta{{Type: rtcp.TypeTCCPacketReceivedSmallDelta, Delta: 250}},
	}
	if data, err := lie.Marshal(); err == nil {
		f.Add(scripted(scripted(nil, 0, 1, data), 0, 255, data))
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newRig(t, Config{})
		published(t, m, described("body", volumetric.MIMEVolumetric, 1, 3))
		m.uplink = newUplink(m.session.config.plan, epoch)
		estimator := congestion.New(congestion.GCC, m.session.config.congestion(), epoch)
		m.uplink.sender.Start(sender.NewNumbered(0), estimator, epoch)
		for i := range 200 {
			now := epoch.Add(time.Duration(i) * time.Millisecond)
			m.uplink.sender.Sent(100, uint16(i), 1200, feedback.Media, now)
			m.control(now)
		}
		limits := m.session.config.congestion().Limits()
		begin := 200 * time.Millisecond
		script(data, func(_ uint32, packet []byte, now time.Time) {
			now = now.Add(begin)
			if feedback.IsTransportFeedback(packet) {
				m.RTCP(packet, now)
			}
			m.control(now)
			if estimate := m.uplink.estimate(); estimate != 0 && (estimate < limits.Min || estimate > limits.Max) {
				t.Fatalf("the estimate is %v, want %v to %v", estimate, limits.Min, limits.Max)
			}
			if m.publishers[0].tracks[0].gaveUp {
				t.Fatal("the lowest quality was given up")
			}
		})
	})
}
