package switching

import (
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
)

func TestOtherSSRCs(t *testing.T) {
	w := newWire(t, "video/opaque")
	w.write(1, 9000, true, nil)
	// A stream that is bound again replaces the previous one.
	if w.built.BindLocalStream(w.info, w.writer); len(w.factory.streams[mediaSSRC]) != 1 {
		t.Errorf("the factory knows %d streams, expected 1", len(w.factory.streams[mediaSSRC]))
	}
	for ssrc, want := range map[uint32]int{rtxSSRC: 1, 4444: 2} {
		w.sent = w.sent[:1]
		if _, err := w.writer.Write(&rtp.Header{SSRC: ssrc, SequenceNumber: 9}, []byte{1}, nil); err != nil {
			t.Fatal(err)
		}
		if len(w.sent) != want {
			t.Errorf("SSRC %d: %d packets are on the wire, expected %d", ssrc, len(w.sent), want)
		}
	}
	// Without RTX nothing is answered, and NACKs are passed on.
	w.built.UnbindLocalStream(w.info)
	w.info.SSRCRetransmission = 0
	w.writer = w.built.BindLocalStream(w.info, interceptor.RTPWriterFunc(
		func(*rtp.Header, []byte, interceptor.Attributes) (int, error) { return 0, nil }))
	w.write(1, 9000, true, []byte("one"))
	if passed := w.nack(1); len(passed) != 2 {
		t.Errorf("%d packets are passed on, expected the NACK, too", len(passed))
	}
}

func TestSenderReports(t *testing.T) {
	w := newWire(t, "video/opaque")
	report := &rtcp.SenderReport{
		SSRC:        mediaSSRC,
		RTPTime:     5,
		PacketCount: 99,
		OctetCount:  999,
		NTPTime:     ntp(dawn.Add(1533 * time.Millisecond)),
	}
	other := &rtcp.SenderReport{SSRC: 3333, RTPTime: 6}
	send := func() []rtcp.Packet {
		w.rtcpOut = nil
		if _, err := w.reports.Write([]rtcp.Packet{other, report}, nil); err != nil {
			t.Fatal(err)
		}
		return w.rtcpOut
	}
	if got := send()[1].(*rtcp.SenderReport); got.RTPTime != 5 {
		t.Errorf("report before the first packet has time %d, expected it unchanged", got.RTPTime)
	}
	w.write(1, 9000, true, []byte("one"))
	w.swap()
	w.now = dawn.Add(33 * time.Millisecond)
	w.write(500, 700_000, true, []byte("cut"))
	w.write(501, 703_000, true, []byte("three"))
	got := send()
	if sr := got[1].(*rtcp.SenderReport); sr.RTPTime != 9000+2970+135_000 || sr.PacketCount != 2 || sr.OctetCount != 8 {
		t.Errorf("report is %+v, expected time %d, 2 packets, 8 bytes", sr, 9000+2970+135_000)
	}
	if got[0] != rtcp.Packet(other) || report.RTPTime != 5 {
		t.Error("what was written was changed")
	}
}

// TestHeaderIsNotShared expects that an interceptor below that adds an extension does not change a
// header that is also sent to other peers.
func TestHeaderIsNotShared(t *testing.T) {
	i, err := NewInterceptor().NewInterceptor("")
	if err != nil {
		t.Fatal(err)
	}
	w := i.BindLocalStream(
		&interceptor.StreamInfo{SSRC: mediaSSRC, MimeType: "video/opaque"},
		interceptor.RTPWriterFunc(
			func(h *rtp.Header, _ []byte, _ interceptor.Attributes) (int, error) {
				h.CSRC[0] = 9
				return 0, h.SetExtension(5, []byte("below"))
			}),
	)
	h := &rtp.Header{Version: 2, SSRC: mediaSSRC, CSRC: []uint32{8}}
	if err := h.SetExtension(5, []byte("above")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(h, []byte{1}, nil); err != nil {
		t.Fatal(err)
	}
	if got := string(h.GetExtension(5)); got != "above" || h.CSRC[0] != 8 {
		t.Errorf("the application's header was changed to %q, %d", got, h.CSRC[0])
	}
}

func ntp(t time.Time) uint64 {
	const from1900To1970 = 2_208_988_800
	// Rounded up, so that the conversion back, which truncates, returns the same nanosecond.
	return uint64(t.Unix()+from1900To1970)<<32 | (uint64(t.Nanosecond())<<32+uint64(time.Second)-1)/uint64(time.Second)
}

func BenchmarkInterceptorWrite(b *testing.B) {
	f := NewInterceptor()
	i, err := f.NewInterceptor("")
	if err != nil {
		b.Fatal(err)
	}
	w := i.BindLocalStream(&interceptor.StreamInfo{
		SSRC: mediaSSRC, SSRCRetransmission: rtxSSRC, PayloadTypeRetransmission: rtxType,
		MimeType: "video/volumetric", ClockRate: 90_000,
	}, interceptor.RTPWriterFunc(func(*rtp.Header, []byte, interceptor.Attributes) (int, error) { return 0, nil }))
	h := &rtp.Header{Version: 2, SSRC: mediaSSRC}
	body := make([]byte, payload.MaxPacketSize)
	b.ReportAllocs()
	for b.Loop() {
		h.SequenceNumber++
		h.Timestamp += 3000
		d := payload.Descriptor{Frame: h.Timestamp / 3000, Source: 1, Length: payload.FragmentSize}
		if _, err := d.MarshalTo(body); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(h, body, nil); err != nil {
			b.Fatal(err)
		}
	}
	if err := i.Close(); err != nil {
		b.Fatal(err)
	}
}
