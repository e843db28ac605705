package uplink

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FuzzUplinkReports processes reports on 200 packets, one per millisecond, with either form of reports. For every
// content, the estimate remains within its limits, and the lowest quality is sent.
func FuzzUplinkReports(f *testing.F) {
	for _, byStream := range []bool{false, true} {
		recorder := feedback.NewArrivalRecorder(feedback.DefaultConfig().Transport, 1)
		recorder.ReportByStream(byStream)
		var honest []byte
		for i := range 200 {
			now := epoch.Add(time.Duration(i)*time.Millisecond + 20*time.Millisecond)
			if i%7 != 0 {
				recorder.Received(100, numbered(f, i), 1, ecn.CE, now)
			}
			if report := recorder.AppendReports(nil, now); len(report) > 0 {
				honest = scripted(honest, 50, report)
			}
		}
		f.Add(honest)
	}
	lie := &rtcp.TransportLayerCC{
		Header:     rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 5},
		SenderSSRC: 1, BaseSequenceNumber: 0, PacketStatusCount: 1, ReferenceTime: 0xffffff,
		PacketChunks: []rtcp.PacketStatusChunk{
			&rtcp.RunLengthChunk{PacketStatusSymbol: rtcp.TypeTCCPacketReceivedSmallDelta, RunLength: 1},
		},
		RecvDeltas: []*rtcp.RecvDelta{{Type: rtcp.TypeTCCPacketReceivedSmallDelta, Delta: 250}},
	}
	if data, err := lie.Marshal(); err == nil {
		f.Add(scripted(scripted(nil, 1, data), 255, data))
	} else {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzReports(t, data, false, sender.NewNumbered(0))
		fuzzReports(t, data, true, sender.NewByStream())
	})
}

// numbered returns a packet of 1,200 bytes with the same number in its stream and over the transport.
func numbered(t testing.TB, number int) []byte {
	t.Helper()
	packet := rtp.Packet{Header: rtp.Header{Version: 2, SSRC: 100, SequenceNumber: uint16(number)},
		Payload: make([]byte, 1180)}
	if err := feedback.SetTransportSequence(&packet.Header, 1, uint16(number)); err != nil {
		t.Fatal(err)
	}
	data, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fuzzReports passes the packets of a fuzzer to an uplink with a form of reports.
func fuzzReports(t *testing.T, data []byte, byStream bool, history *sender.History) {
	u := newRig(t)
	published(t, u, described("body", volumetric.MIMEVolumetric, 1, 3))
	u.queue = newQueue(u.pacing, epoch)
	u.queue.byStream = byStream
	estimator := congestion.New(congestion.GCC, limits(0, 0), epoch)
	u.queue.sender.Start(history, estimator, epoch)
	for i := range 200 {
		now := epoch.Add(time.Duration(i) * time.Millisecond)
		u.queue.sender.Sent(100, uint16(i), 1200, feedback.Media, now)
		step(u, now)
	}
	within := limits(0, 0).Limits()
	begin := 200 * time.Millisecond
	script(data, func(packet []byte, now time.Time) {
		now = now.Add(begin)
		if feedback.IsTransportFeedback(packet) || feedback.IsCongestionReport(packet) {
			u.Report(packet, now)
		}
		step(u, now)
		if estimate := u.Estimate(); estimate != 0 && (estimate < within.Min || estimate > within.Max) {
			t.Fatalf("the estimate is %v, want %v to %v", estimate, within.Min, within.Max)
		}
		if u.publications[0].tracks[0].gaveUp {
			t.Fatal("the lowest quality was given up")
		}
	})
}

// script splits a fuzzer's bytes into packets: milliseconds after the previous packet, two bytes of length, the packet.
func script(data []byte, each func(packet []byte, now time.Time)) {
	now := epoch
	for len(data) >= 3 {
		now = now.Add(time.Duration(data[0]) * time.Millisecond)
		size := min(int(binary.BigEndian.Uint16(data[1:])), len(data)-3)
		each(append([]byte(nil), data[3:3+size]...), now)
		data = data[3+size:]
	}
}

// scripted appends a packet to a script.
func scripted(data []byte, wait byte, packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(data, wait), uint16(len(packet))), packet...)
}
