package egress

import (
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FuzzStreamReports passes arbitrary RFC 8888 reports to a receiver. Input is a sequence of reports: a byte for the
// elapsed time, two for the length, the report.
func FuzzStreamReports(f *testing.F) {
	add := func(streams ...feedback.StreamReport) []byte {
		report := feedback.CongestionReport{Streams: streams, Timestamp: 1 << 30}
		packet, err := report.Append(nil)
		if err != nil {
			f.Fatal(err)
		}
		return append([]byte{20, byte(len(packet) >> 8), byte(len(packet))}, packet...)
	}
	arrived := []feedback.PacketArrival{{Received: true}, {Received: true, Offset: 20}, {},
		{Received: true, ECN: 3, Offset: feedback.OffsetUnknown}}
	f.Add(add(feedback.StreamReport{SSRC: 1000, Begin: 0, Packets: arrived},
		feedback.StreamReport{SSRC: 1001, Begin: 7, Packets: arrived[:1]}))
	lost := add(feedback.StreamReport{SSRC: 1000, Begin: 65_530, Packets: make([]feedback.PacketArrival, 40)})
	f.Add(append(lost, add(feedback.StreamReport{SSRC: 1000, Packets: arrived})...))
	f.Add([]byte{1, 0, 8, 0x8b, 205, 0, 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, input []byte) {
		r := newRig(t, func(c *rigConfig) { c.TrackCacheBytes = 1 << 20 })
		p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
		s := r.subscribe(1000, volumetric.KindVideo)
		s.peer.reportByStream(true)
		s.slot.Select(p.track, 1, r.now)
		r.run()
		for len(input) >= 3 {
			size := min(int(input[1])<<8|int(input[2]), len(input)-3)
			report := input[3 : 3+size]
			wait := time.Duration(input[0]) * time.Millisecond
			input = input[3+size:]
			p.Next()
			p.Send(r.now, p.Packets(5*1144)...)
			r.run()
			r.now = r.now.Add(wait)
			if feedback.IsCongestionReport(report) {
				s.receiver.RTCP(report, r.now)
			}
			r.run()
		}
		path := s.receiver.Path()
		if limits := r.engine.cfg.Congestion.Limits(); path.Known && (path.Estimate < limits.Min ||
			path.Estimate > limits.Max) {
			t.Errorf("the path is %+v", path)
		}
	})
}

// reportedByStream is a receiver that reports on a thousand packets at a time by RFC 8888.
type reportedByStream struct {
	*rig
	receiver *Receiver
	header   rtp.Header
	report   feedback.CongestionReport
	packet   []byte
}

func newReportedByStream(t testing.TB) *reportedByStream {
	r := newRig(t, func(c *rigConfig) { c.Pacing = pacing.Default })
	e := &reportedByStream{rig: r, receiver: r.engine.NewReceiver(&nullPeer{fakePeer: fakePeer{byStream: true},
		flushes: new(int)}, 0), header: rtp.Header{SSRC: 1000}}
	e.receiver.AddSlot(nullOutlet{1000}, volumetric.KindVideo).Select(nil, 0, r.now)
	r.run()
	e.report.Streams = []feedback.StreamReport{{SSRC: 1000, Packets: make([]feedback.PacketArrival, 256)}}
	for i := range e.report.Streams[0].Packets {
		e.report.Streams[0].Packets[i].Received = true
	}
	return e
}

// interval sends and reports the packets of an interval.
func (e *reportedByStream) interval() {
	w, packets := e.receiver.writer, e.report.Streams[0].Packets
	e.report.Streams[0].Begin = e.header.SequenceNumber
	for n := range packets {
		if n%16 == 0 {
			e.now = e.now.Add(25 * time.Millisecond / 16)
			w.read()
		}
		e.receiver.number(&e.header, 1160, packetlog.Media)
		e.header.SequenceNumber++
		packets[n].Offset = uint16(25 - n/10)
	}
	e.report.Timestamp += 25 << 16 / 1000
	e.packet, _ = e.report.Append(e.packet[:0])
	e.receiver.RTCP(e.packet, e.now)
	e.receiver.readReports()
}

func TestReportsByStreamDoNotAllocate(t *testing.T) {
	e := newReportedByStream(t)
	for range 400 {
		e.interval()
	}
	if n := testing.AllocsPerRun(200, e.interval); n > 0.5 {
		t.Errorf("%v allocations per 256 packets and their report, expected none", n)
	}
	if stats := e.receiver.path.departures.history.Stats(); stats.Received != stats.Sent || stats.Malformed > 0 {
		t.Errorf("%+v", stats)
	}
}

// BenchmarkReportsByStream measures the cost per packet of recording and reporting, including the estimator.
func BenchmarkReportsByStream(b *testing.B) {
	e := newReportedByStream(b)
	b.ReportAllocs()
	for b.Loop() {
		e.interval()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*256), "ns/packet")
}
