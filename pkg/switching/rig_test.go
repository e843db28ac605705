package switching

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
)

const (
	mediaSSRC, rtxSSRC = 1111, 2222
	mediaType, rtxType = 96, 97
)

// wire is the transport below an interceptor, and its clock.
type wire struct {
	t       *testing.T
	now     time.Time
	factory *Factory
	writer  interceptor.RTPWriter
	reader  interceptor.RTCPReader
	reports interceptor.RTCPWriter

	sent    []rtp.Packet
	rtcpIn  [][]byte
	rtcpOut []rtcp.Packet
	cached  bool // an interceptor below has parsed the RTCP
	info    *interceptor.StreamInfo
	built   interceptor.Interceptor
}

func newWire(t *testing.T, mimeType string, opts ...Option) *wire {
	t.Helper()
	w := &wire{t: t, now: dawn, info: &interceptor.StreamInfo{
		SSRC: mediaSSRC, SSRCRetransmission: rtxSSRC, PayloadType: mediaType, PayloadTypeRetransmission: rtxType,
		MimeType: mimeType, ClockRate: 90_000,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: transportCCURI, ID: 5}},
	}}
	opts = append(opts, func(o *options) { o.now = func() time.Time { return w.now } })
	w.factory = NewInterceptor(opts...)
	i, err := w.factory.NewInterceptor("")
	if err != nil {
		t.Fatal(err)
	}
	w.built = i
	w.writer = i.BindLocalStream(w.info, interceptor.RTPWriterFunc(
		func(h *rtp.Header, body []byte, _ interceptor.Attributes) (int, error) {
			w.sent = append(w.sent, rtp.Packet{Header: h.Clone(), Payload: bytes.Clone(body)})
			return h.MarshalSize() + len(body), nil
		}))
	w.reader = i.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
			if len(w.rtcpIn) == 0 {
				return 0, a, errors.New("end")
			}
			n := copy(b, w.rtcpIn[0])
			w.rtcpIn = w.rtcpIn[1:]
			if w.cached {
				a = interceptor.Attributes{"key": "value"}
				if _, err := a.GetRTCPPackets(b[:n]); err != nil {
					t.Fatal(err)
				}
			}
			return n, a, nil
		}))
	w.reports = i.BindRTCPWriter(interceptor.RTCPWriterFunc(
		func(packets []rtcp.Packet, _ interceptor.Attributes) (int, error) {
			w.rtcpOut = append(w.rtcpOut, packets...)
			return 0, nil
		}))
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *wire) write(sequence uint16, timestamp uint32, marker bool, body []byte) {
	w.t.Helper()
	h := rtp.Header{
		Version:        2,
		SSRC:           mediaSSRC,
		PayloadType:    mediaType,
		SequenceNumber: sequence,
		Timestamp:      timestamp,
		Marker:         marker,
	}
	before := h.Clone()
	if _, err := w.writer.Write(&h, body, nil); err != nil {
		w.t.Fatal(err)
	}
	if h.SequenceNumber != before.SequenceNumber || h.Timestamp != before.Timestamp || h.Marker != before.Marker {
		w.t.Fatal("the application's header was changed")
	}
}

// nack requests the numbers and returns the packets that are passed on.
func (w *wire) nack(numbers ...uint16) []rtcp.Packet {
	w.t.Helper()
	return w.control(&rtcp.TransportLayerNack{
		SenderSSRC: 1, MediaSSRC: mediaSSRC, Nacks: rtcp.NackPairsFromSequenceNumbers(numbers),
	}, &rtcp.ReceiverReport{SSRC: 1})
}

func (w *wire) control(packets ...rtcp.Packet) []rtcp.Packet {
	w.t.Helper()
	raw, err := rtcp.Marshal(packets)
	if err != nil {
		w.t.Fatal(err)
	}
	w.rtcpIn = append(w.rtcpIn, raw)
	b := make([]byte, 1500)
	n, a, err := w.reader.Read(b, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	passed, err := a.GetRTCPPackets(b[:n])
	if err != nil {
		w.t.Fatal(err)
	}
	return passed
}

// sequences returns the numbers of the media packets sent since the last call.
func (w *wire) sequences() []uint16 {
	var s []uint16
	for _, p := range w.sent {
		s = append(s, p.SequenceNumber)
	}
	w.sent = nil
	return s
}

func (w *wire) expect(want ...uint16) {
	w.t.Helper()
	if got := w.sequences(); !slices.Equal(got, want) {
		w.t.Fatalf("numbers on the wire are %d, expected %d", got, want)
	}
}

func (w *wire) swap() {
	w.t.Helper()
	if err := w.factory.Swap(mediaSSRC, func() error { return nil }); err != nil {
		w.t.Fatal(err)
	}
}

// fragment returns a payload of video/volumetric: one packet of a frame with the given number of
// source fragments.
func fragment(quality uint8, frame uint32, index, packets int) []byte {
	d := payload.Descriptor{
		Quality: quality,
		Frame:   frame,
		Index:   uint16(index),
		Source:  uint16(packets),
		Length:  uint32((packets-1)*payload.FragmentSize + 1),
	}
	b := make([]byte, payload.DescriptorSize+d.DataSize())
	if _, err := d.MarshalTo(b); err != nil {
		panic(err) // the buffer is large enough
	}
	return b
}
