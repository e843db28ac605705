package client

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// The streams of a fuzzed rig. Each SSRC is followed by the SSRC of its retransmissions.
const (
	fuzzVolumetric = 1
	fuzzOpaque     = 11
	fuzzVoice      = 21
	fuzzIdle       = 31
	// fuzzLine is the SSRC that the rig sends.
	fuzzLine = 100
)

var fuzzSSRCs = []uint32{fuzzVolumetric, fuzzVolumetric + 1, fuzzOpaque, fuzzOpaque + 1, fuzzVoice, fuzzVoice + 1,
	fuzzIdle, fuzzIdle + 1, fuzzLine, 77}

// newFuzzRig makes a rig that receives volumetric video, another codec and audio, has an idle slot, and sends a film.
func newFuzzRig(t testing.TB, peer *transport.Peer) *rig {
	m := newRig(t, Config{FrameBytes: 1 << 20})
	m.peer.Store(peer)
	for _, slot := range []struct {
		mid, mimeType string
		kind          volumetric.Kind
		ssrc          uint32
	}{
		{"4", volumetric.MIMEVolumetric, volumetric.KindVideo, fuzzVolumetric},
		{"5", "video/x-mesh", volumetric.KindVideo, fuzzOpaque},
		{"6", volumetric.MIMEOpus, volumetric.KindAudio, fuzzVoice},
	} {
		newIncoming(t, m, slot.mid, slot.kind, slot.ssrc)
		p := described(slot.mid, slot.mimeType, 1, 1)
		assign(t, m, slot.mid, 1, "ada", 0, &p)
	}
	newIncoming(t, m, "7", volumetric.KindVideo, fuzzIdle)
	film := newPublisher(m.session.publishers, described("film", volumetric.MIMEH264, 1, 1))
	m.agree(agreement{extension: 1})
	m.connect()
	outlet := newOutlet(volumetric.MIMEH264, fuzzLine, fuzzLine+1)
	film.attach(m.media, "0", outlet, 0, 0)
	if _, err := film.WritePackets(0, 0, epoch, [][]byte{{1}, {2}, {3}}); err != nil {
		t.Fatal(err)
	}
	flush(m, epoch)
	return m
}

// script splits a fuzzer's bytes into packets: the stream, milliseconds after the previous packet, two bytes of length,
// the packet.
func script(data []byte, each func(ssrc uint32, packet []byte, now time.Time)) {
	now := epoch
	for len(data) >= 4 {
		ssrc := fuzzSSRCs[int(data[0])%len(fuzzSSRCs)]
		now = now.Add(time.Duration(data[1]) * time.Millisecond)
		size := min(int(binary.BigEndian.Uint16(data[2:])), len(data)-4)
		// Streams change their input, and a fuzzer's data must not change.
		each(ssrc, append([]byte(nil), data[4:4+size]...), now)
		data = data[4+size:]
	}
}

// scripted appends a packet to a script.
func scripted(data []byte, stream, wait byte, packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(append(data, stream, wait), uint16(len(packet))), packet...)
}

// settled checks the invariants after all deadlines.
func settled(t *testing.T, m *rig) {
	t.Helper()
	end := epoch.Add(time.Hour)
	m.downlink.Step(nil, end, 0)
	for len(m.frames) > 0 {
		if f := <-m.frames; len(f.Data) > 1<<20 || f.Track.Participant != "ada" {
			t.Errorf("a frame of %d bytes of %v", len(f.Data), f.Track)
		}
	}
	for _, s := range m.session.Stats() {
		if s.Expected < 0 || s.Missing < 0 || s.Missing > s.Expected || s.Recovered > s.Lost {
			t.Errorf("counts contradict each other: %+v", s)
		}
	}
}

func FuzzSinkRTP(f *testing.F) {
	peer := newPeer(f, newRig(f, Config{}))
	var whole, torn []byte
	for frame := range uint32(3) {
		for i, body := range packets(f, frame, 0, epoch, 2000) {
			number := uint16(3*frame) + uint16(i)
			packet := marshal(f, fuzzVolumetric, number, 3000*frame, body)
			whole = scripted(whole, 0, 5, packet)
			if i == 0 {
				torn = scripted(torn, 0, 40, packet)
				torn = scripted(torn, 1, 1, marshal(f, fuzzVolumetric+1, 9, 3000*frame,
					append([]byte{0, byte(number + 1)}, body...)))
			}
		}
	}
	f.Add(whole)
	f.Add(torn)
	f.Add(scripted(scripted(nil, 2, 0, marshal(f, fuzzOpaque, 1, 1, []byte{1})), 4, 20,
		marshal(f, fuzzVoice, 1, 960, []byte("opus"))))
	// More padding than there is, a header extension that ends beyond the packet, CSRCs that are not there.
	f.Add(scripted(nil, 0, 0, []byte{0xa0, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xff}))
	f.Add(scripted(nil, 0, 0, []byte{0x90, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0xbe, 0xde, 0xff, 0xff}))
	f.Add(scripted(nil, 1, 0, []byte{0x8f, 97, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2}))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newFuzzRig(t, peer)
		script(data, func(ssrc uint32, packet []byte, now time.Time) {
			m.RTP(ssrc, packet, &transport.PacketInfo{At: now})
		})
		settled(t, m)
	})
}

func FuzzSinkRTCP(f *testing.F) {
	peer := newPeer(f, newRig(f, Config{}))
	for _, p := range []rtcp.Packet{
		&rtcp.SenderReport{SSRC: fuzzVoice, NTPTime: payload.NTP64(epoch), RTPTime: 1},
		&rtcp.TransportLayerNack{MediaSSRC: fuzzLine, Nacks: []rtcp.NackPair{{PacketID: 65535, LostPackets: 0xffff}}},
		&rtcp.PictureLossIndication{MediaSSRC: fuzzLine},
		&rtcp.FullIntraRequest{MediaSSRC: fuzzLine, FIR: []rtcp.FIREntry{{SSRC: fuzzLine}, {SSRC: 77}}},
		&rtcp.ReceiverReport{SSRC: 77, Reports: []rtcp.ReceptionReport{{SSRC: fuzzLine, TotalLost: 3}}},
		&rtcp.Goodbye{Sources: []uint32{fuzzVoice}},
	} {
		data, err := p.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(scripted(scripted(nil, 4, 0, data), 8, 200, data))
	}
	voice := marshal(f, fuzzVoice, 1, 960, []byte("opus"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newFuzzRig(t, peer)
		script(data, func(_ uint32, packet []byte, now time.Time) { m.RTCP(packet, now) })
		// After arbitrary reports, packets still arrive.
		m.RTP(fuzzVoice, append([]byte(nil), voice...), &transport.PacketInfo{At: epoch})
		if len(m.packets) != 1 {
			t.Errorf("%d packets of audio, want 1", len(m.packets))
		}
		settled(t, m)
	})
}
