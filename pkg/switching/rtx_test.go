package switching

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

// retransmission splits a packet of the RTX stream.
func retransmission(t *testing.T, p rtp.Packet) (original uint16, body []byte) {
	t.Helper()
	if p.SSRC != rtxSSRC || p.PayloadType != rtxType || len(p.Payload) < 2 {
		t.Fatalf("%+v is not a retransmission", p.Header)
	}
	return binary.BigEndian.Uint16(p.Payload), p.Payload[2:]
}

func TestAnswersNACKsAcrossASwap(t *testing.T) {
	w := newWire(t, "video/opaque")
	w.write(65534, 9000, true, []byte("one"))
	w.write(65535, 12000, true, []byte("two"))
	w.swap()
	w.write(31000, 50, true, []byte("cut"))
	w.write(31001, 3050, true, []byte("three"))
	w.write(31002, 6050, true, []byte("four"))
	timestamp := w.sent[2].Timestamp
	w.expect(65534, 65535, 0, 1)
	passed := w.nack(65534, 65535, 0, 1, 2, 31001)
	if len(passed) != 1 {
		t.Fatalf("%d packets are passed on, expected the receiver report only", len(passed))
	}
	if _, ok := passed[0].(*rtcp.ReceiverReport); !ok {
		t.Fatalf("%T is passed on, expected the receiver report", passed[0])
	}
	number := w.sent[0].SequenceNumber
	for i, want := range []string{"one", "two", "three", "four"} {
		original, body := retransmission(t, w.sent[i])
		if original != uint16(65534+i) || string(body) != want {
			t.Errorf("retransmission %d is of %d, %q, expected %d, %q", i, original, body, uint16(65534+i), want)
		}
		if got := w.sent[i].SequenceNumber; got != number+uint16(i) {
			t.Errorf("retransmission %d has number %d, expected %d", i, got, number+uint16(i))
		}
	}
	if len(w.sent) != 4 || w.sent[2].Timestamp != timestamp || !w.sent[2].Marker {
		t.Errorf("sent %d retransmissions, the third %+v", len(w.sent), w.sent[2].Header)
	}
	// Requested twice within 10 ms, answered once; requested again later, answered under a new
	// number.
	w.sent = nil
	w.nack(0)
	w.expect()
	w.now = w.now.Add(resendInterval)
	w.nack(0)
	w.expect(number + 4)
}

func TestPassesOnOtherRTCP(t *testing.T) {
	w := newWire(t, "video/opaque")
	w.cached = true
	w.write(1, 9000, true, []byte("one"))
	other := &rtcp.TransportLayerNack{SenderSSRC: 1, MediaSSRC: 3333, Nacks: []rtcp.NackPair{{PacketID: 1}}}
	pli := &rtcp.PictureLossIndication{SenderSSRC: 1, MediaSSRC: mediaSSRC}
	ours := &rtcp.TransportLayerNack{SenderSSRC: 1, MediaSSRC: mediaSSRC, Nacks: []rtcp.NackPair{{PacketID: 1}}}
	if passed := w.control(ours, other, ours, pli); len(passed) != 2 || passed[0].DestinationSSRC()[0] != 3333 {
		t.Errorf("%v is passed on, expected the other stream's NACK and the PLI", passed)
	}
	// Other feedback for this stream is not a NACK.
	cc := &rtcp.TransportLayerCC{
		Header:     rtcp.Header{Count: rtcp.FormatTCC, Type: rtcp.TypeTransportSpecificFeedback, Length: 5},
		SenderSSRC: 1, MediaSSRC: mediaSSRC, PacketStatusCount: 1,
		PacketChunks: []rtcp.PacketStatusChunk{&rtcp.RunLengthChunk{RunLength: 1}},
	}
	if passed := w.control(cc, pli); len(passed) != 2 {
		t.Errorf("%v is passed on, expected the congestion feedback and the PLI", passed)
	}
	// A compound packet of which nothing remains is skipped.
	raw, err := ours.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	w.rtcpIn = append(w.rtcpIn, raw)
	if passed := w.control(ours, pli); len(passed) != 1 {
		t.Errorf("%v is passed on, expected the PLI", passed)
	}
	// Packets that cannot be parsed are passed on.
	for _, broken := range [][]byte{{0x81}, {0x41, 205, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0}, {0x81, 205, 0, 9, 1, 2, 3, 4}} {
		w.rtcpIn = append(w.rtcpIn, broken)
		w.cached = false
		b := make([]byte, 1500)
		n, _, err := w.reader.Read(b, nil)
		if err != nil || !bytes.Equal(b[:n], broken) {
			t.Errorf("%x became %x, %v", broken, b[:n], err)
		}
	}
	// A NACK too short to contain a pair requests nothing.
	if n := w.built.(*swapper).answer([]byte{0x81, 205, 0, 1, 0, 0, 0, 1}); n != 8 {
		t.Errorf("%d bytes are left, expected 8", n)
	}
}

func TestRetransmissionIsAPacketOfItsOwn(t *testing.T) {
	w := newWire(t, "video/opaque")
	h := rtp.Header{
		Version:        2,
		SSRC:           mediaSSRC,
		PayloadType:    mediaType,
		SequenceNumber: 1,
		Timestamp:      9000,
		Padding:        true,
	}
	for id, value := range map[uint8]string{5: "cc", 7: "mid"} {
		if err := h.SetExtension(id, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.writer.Write(&h, []byte{1, 2, 3, 0, 0, 3}, nil); err != nil {
		t.Fatal(err)
	}
	h.SequenceNumber, h.Padding, h.PaddingSize = 2, true, 4
	if _, err := w.writer.Write(&h, []byte{7, 8, 9}, nil); err != nil {
		t.Fatal(err)
	}
	w.sent = nil
	w.nack(1, 2)
	for i, want := range [][]byte{{1, 2, 3}, {7, 8, 9}} {
		p := w.sent[i]
		if _, body := retransmission(t, p); !bytes.Equal(body, want) || p.Padding || p.PaddingSize != 0 {
			t.Errorf("retransmission has payload %v, padding %t, expected %v without padding", body, p.Padding, want)
		}
		if p.GetExtension(5) != nil || string(p.GetExtension(7)) != "mid" {
			t.Errorf(
				"retransmission has extensions %v, expected 7 only: its number in the transport is not that of "+
					"the media packet",
				p.GetExtensionIDs(),
			)
		}
	}
}

// FuzzAnswer passes compound RTCP packets to the NACK answerer.
func FuzzAnswer(f *testing.F) {
	nack, err := rtcp.Marshal([]rtcp.Packet{
		&rtcp.ReceiverReport{SSRC: 1},
		&rtcp.TransportLayerNack{
			SenderSSRC: 1,
			MediaSSRC:  mediaSSRC,
			Nacks:      []rtcp.NackPair{{PacketID: 1, LostPackets: 0xffff}},
		},
		&rtcp.PictureLossIndication{MediaSSRC: mediaSSRC},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(nack)
	f.Add(nack[:20])
	f.Add([]byte{0x81, 205, 0, 1, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, compound []byte) {
		w := newWire(t, "video/opaque")
		w.write(1, 9000, true, []byte("one"))
		w.write(2, 12000, true, []byte("two"))
		before := bytes.Clone(compound)
		left := w.built.(*swapper).answer(compound)
		if left > len(compound) || left == len(compound) && !bytes.Equal(before, compound) {
			t.Errorf("%x became %x", before, compound[:left])
		}
		if len(w.sent) > 4 {
			t.Errorf("%d packets were sent, expected two and at most a retransmission of each", len(w.sent))
		}
	})
}
