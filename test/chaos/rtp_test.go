package chaos

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/wait"
)

// burst is the number of packets of each kind of garbage that are sent before checking that the server still answers.
const burst = 60

// sendGarbageRTP sends packets over its encrypted connection that no publisher sends.
func sendGarbageRTP(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	m.rest()
	kinds := []struct {
		name string
		make func(n int, line *puppet.Line) (rtp.Header, []byte)
	}{
		{"random payload", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			return m.header(line, n), m.bytes(m.random.IntN(1200))
		}},
		{"absurd descriptor", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			return m.header(line, n),
				m.descriptor()
		}},
		{"frames that contradict each other",
			func(n int, line *puppet.Line) (rtp.Header, []byte) { return m.header(line, n), m.plausible() }},
		{"unknown payload type", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			h.PayloadType = uint8(n % 128)
			return h, m.plausible()
		}},
		{"unknown stream", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			h.SSRC = m.random.Uint32()
			return h, m.plausible()
		}},
		{"stream 0", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			h.SSRC = 0
			return h, nil
		}},
		{"extensions and contributors", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			h.Extension, h.ExtensionProfile = true, uint16(m.random.Uint32())
			h.Extensions = nil
			_ = h.SetExtension(0, m.bytes(4*m.random.IntN(100)))
			for range m.random.IntN(16) {
				h.CSRC = append(h.CSRC, m.random.Uint32())
			}
			return h, m.plausible()
		}},
		{"padding that claims more than there is", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			h.Padding = true
			return h, append(m.bytes(3), 255)
		}},
		{"nothing at all", func(n int, line *puppet.Line) (rtp.Header, []byte) { return m.header(line, n), nil }},
		{"too large", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			return m.header(line, n), m.bytes(1300 + m.random.IntN(6000))
		}},
		{"garbage for retransmissions", func(n int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, n)
			_, h.PayloadType, _ = line.Outlet.PayloadType(volumetric.MIMEVolumetric)
			h.SSRC = line.Outlet.RetransmissionSSRC()
			return h, m.bytes(m.random.IntN(40))
		}},
		// Last, since it makes the server request tens of thousands of packets, which takes seconds.
		{"jumping numbers", func(_ int, line *puppet.Line) (rtp.Header, []byte) {
			h := m.header(line, m.random.IntN(1<<16))
			h.Timestamp = m.random.Uint32()
			return h, m.plausible()
		}},
	}
	for _, kind := range kinds {
		for n := range burst {
			for _, line := range m.lines() {
				h, body := kind.make(n, line)
				// Packets that Pion does not encrypt do not reach the server.
				_ = line.Outlet.WriteRTP(&h, body)
			}
		}
		m.through(t, r)
		alive(t, m.Puppet)
		r.ready(t)
	}
	if n := r.Server.Stats().MalformedPayload; n == 0 {
		t.Error("the server has counted no malformed payload")
	}
	m.depart(t)
}

// through waits until the server has read mallory's packets, except lost ones: until a packet of an unknown stream,
// sent after them, is counted.
func (m *mallory) through(t *testing.T, r *room) {
	t.Helper()
	line := m.lines()[0]
	before := r.Server.Stats().UnknownSSRC
	h := m.header(line, 1)
	h.SSRC = ^line.Outlet.SSRC()
	wait.Until(t, "the server has read everything", func() bool {
		h.SequenceNumber++
		_ = line.Outlet.WriteRTP(&h, []byte("x"))
		return r.Server.Stats().UnknownSSRC > before
	})
}

// header is valid.
func (m *mallory) header(line *puppet.Line, sequence int) rtp.Header {
	media, _, _ := line.Outlet.PayloadType(volumetric.MIMEVolumetric)
	return rtp.Header{Version: 2, PayloadType: media, SequenceNumber: uint16(sequence),
		Timestamp: uint32(sequence) * 3000, SSRC: line.Outlet.SSRC()}
}

// bytes are random.
func (m *mallory) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.random.Uint32())
	}
	return b
}

// extreme is a number near the end of a range of 32 bits, or any number.
func (m *mallory) extreme() uint32 {
	values := []uint32{0, 1, 2, 199, 200, 201, math.MaxUint16, math.MaxUint16 + 1, math.MaxInt32, math.MaxInt32 + 1,
		math.MaxUint32, m.random.Uint32()}
	return values[m.random.IntN(len(values))]
}

// descriptor is a packet whose descriptor has extreme values.
func (m *mallory) descriptor() []byte {
	b := m.bytes(payload.DescriptorSize + m.random.IntN(payload.FragmentSize+1))
	b[0] = byte(m.random.IntN(3))<<4 | byte(m.random.IntN(2))
	binary.BigEndian.PutUint16(b[2:], uint16(m.extreme()))
	binary.BigEndian.PutUint16(b[4:], uint16(m.extreme()))
	binary.BigEndian.PutUint16(b[6:], uint16(m.extreme()))
	binary.BigEndian.PutUint32(b[8:], m.extreme())
	binary.BigEndian.PutUint32(b[12:], m.extreme())
	return b
}

// plausible is a valid packet of a frame of any number and length: packets with the same number contradict each other.
func (m *mallory) plausible() []byte {
	length := uint32(m.random.IntN(payload.MaxFrameBytes))
	d := payload.Descriptor{
		Quality: uint8(m.random.IntN(256)),
		Source:  uint16(payload.SourceFragments(int(length))),
		Length:  length,
		Frame:   m.extreme(),
	}
	d.Index = uint16(m.random.IntN(int(d.Source)))
	if m.random.IntN(2) == 0 {
		d.Parity = uint16(1 + m.random.IntN(payload.MaxParity(int(d.Source))))
	}
	b := m.bytes(payload.DescriptorSize + d.DataSize())
	if _, err := d.MarshalTo(b); err != nil {
		panic("a packet has room for its descriptor: " + err.Error())
	}
	return b
}

// useStreamsWithoutEnd opens new RTP streams until the server ends the connection.
func useStreamsWithoutEnd(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	m.rest()
	line := m.lines()[0]
	ssrc := uint32(1)
	wait.Until(t, "the server ends the connection", func() bool {
		for range 1000 {
			h := m.header(line, 1)
			h.SSRC = ssrc
			ssrc++
			_ = line.Outlet.WriteRTP(&h, []byte("x"))
		}
		select {
		case <-m.Ended():
			return true
		default:
			return false
		}
	})
	if closing := m.Closing(); closing == nil {
		t.Error("the server gave no reason")
	}
}

// rawRTCP is an RTCP packet of any type and body. Its header is valid, or Pion would not send it.
func rawRTCP(kind uint8, count uint8, body []byte) *rtcp.RawPacket {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	raw := append(make([]byte, 4), body...)
	raw[0], raw[1] = 2<<6|count&31, kind
	binary.BigEndian.PutUint16(raw[2:], uint16(len(body)/4))
	packet := rtcp.RawPacket(raw)
	return &packet
}

// known are streams that the server knows: those that it sends to mallory, and mallory's own.
func (m *mallory) known() []uint32 {
	var ssrcs []uint32
	for _, slot := range m.Slots() {
		if slot.Streams.SSRC != 0 {
			ssrcs = append(ssrcs, slot.Streams.SSRC, slot.Streams.Retransmission)
		}
	}
	for _, line := range m.lines() {
		ssrcs = append(ssrcs, line.Outlet.SSRC(), line.Outlet.RetransmissionSSRC())
	}
	return ssrcs
}

func sendGarbageRTCP(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	known := m.known()
	for n := range 20 * burst {
		ssrc := known[n%len(known)]
		if n%3 == 0 {
			ssrc = m.random.Uint32()
		}
		body := m.bytes(4 * m.random.IntN(300))
		if len(body) >= 8 {
			binary.BigEndian.PutUint32(body, ssrc)
			binary.BigEndian.PutUint32(body[4:], ssrc)
		}
		// 192 to 213 include all types in use.
		_ = m.WriteRTCP(rawRTCP(uint8(192+n%22), uint8(m.random.Uint32()), body))
	}
	alive(t, m.Puppet)
	for n := range burst {
		ssrc := known[n%len(known)]
		report := rtcp.ReceptionReport{
			SSRC: ssrc, FractionLost: 255, TotalLost: 1<<24 - 1, LastSequenceNumber: m.extreme(), Jitter: m.extreme(),
			LastSenderReport: m.extreme(), Delay: m.extreme(),
		}
		_ = m.WriteRTCP(
			&rtcp.SenderReport{SSRC: ssrc, NTPTime: m.random.Uint64(), RTPTime: m.extreme(), PacketCount: m.extreme(),
				OctetCount: m.extreme(), Reports: []rtcp.ReceptionReport{report}},
			&rtcp.ReceiverReport{SSRC: m.random.Uint32(), Reports: []rtcp.ReceptionReport{report, report}},
			&rtcp.Goodbye{Sources: []uint32{ssrc}, Reason: "garbage"},
			&rtcp.ReceiverEstimatedMaximumBitrate{SSRCs: []uint32{ssrc}, Bitrate: math.MaxFloat32},
			&rtcp.SliceLossIndication{MediaSSRC: ssrc, SLI: []rtcp.SLIEntry{{First: 8191, Number: 8191, Picture: 63}}},
		)
	}
	alive(t, m.Puppet)
	// Larger than any packet on a real network; loopback carries it.
	for _, size := range []int{2000, 7000, 8180, 20_000} {
		body := m.bytes(size)
		binary.BigEndian.PutUint32(body[4:], known[0])
		_ = m.WriteRTCP(rawRTCP(205, 1, body))
	}
	alive(t, m.Puppet)
	m.depart(t)
}

// askForEverything requests all possible packets, and key frames repeatedly.
func askForEverything(t *testing.T, r *room) {
	m := r.mallory(t, puppet.Config{})
	// 300 pairs are 1,212 bytes.
	const pairs = 300
	for range 3 {
		for _, ssrc := range m.known() {
			for first := 0; first < 1<<16; first += 17 * pairs {
				nack := &rtcp.TransportLayerNack{SenderSSRC: 1, MediaSSRC: ssrc}
				for pair := range pairs {
					nack.Nacks = append(nack.Nacks,
						rtcp.NackPair{PacketID: uint16(first + 17*pair), LostPackets: math.MaxUint16})
				}
				_ = m.WriteRTCP(nack)
			}
			_ = m.WriteRTCP(&rtcp.PictureLossIndication{MediaSSRC: ssrc})
		}
		alive(t, m.Puppet)
	}
	for n := range 20 * burst {
		ssrc := m.known()[n%len(m.known())]
		_ = m.WriteRTCP(&rtcp.PictureLossIndication{MediaSSRC: ssrc},
			&rtcp.FullIntraRequest{MediaSSRC: ssrc, FIR: []rtcp.FIREntry{{SSRC: ssrc, SequenceNumber: uint8(n)}}})
	}
	alive(t, m.Puppet)
	if s := r.Server.Stats(); s.NACKed.Unknown == 0 || s.NACKed.Limited == 0 {
		t.Errorf("requested packets %+v: expected some that do not exist, and some beyond the limit", s.NACKed)
	}
	m.depart(t)
}
