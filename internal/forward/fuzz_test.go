package forward

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// FuzzIngress gives arbitrary bytes, as RTP and RTCP of every kind of stream, to an engine that forwards them to slots. Input is a sequence of
// packets: a byte that says where it goes, its length in two bytes, and itself.
func FuzzIngress(f *testing.F) {
	f.Add(fuzzTranscript(f))
	f.Add([]byte{0, 0, 0, 1, 0, 1, 0x80, 5, 0, 2, 0x80, 200})
	f.Fuzz(func(t *testing.T, input []byte) {
		r := newRig(t, func(c *Config) { c.TrackCacheBytes = 1 << 20 })
		i := r.ingress(&fakePeer{extension: testExtension})
		var tracks []*publisher
		s := r.subscribe(1000, volumetric.KindVideo)
		s.peer.agree(testExtension)
		for n, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEH264, volumetric.MIMEOpus} {
			p := r.publish(i, uint32(10*(n+1)), mime)
			s.receiver.AddSlot(newFakeOutlet(s.peer, uint32(1000+10*n)), volumetric.KindVideo).Select(p.track, uint64(n), r.now)
			tracks = append(tracks, p)
		}
		for n := 0; len(input) >= 3; n++ {
			way, size := input[0], min(int(binary.BigEndian.Uint16(input[1:])), len(input)-3)
			packet := input[3 : 3+size]
			input = input[3+size:]
			switch way % 8 {
			case 0, 1, 2, 3, 4:
				// The stream itself, or its retransmissions.
				i.RTP(tracks[way%8/2].ssrc+uint32(way%2), packet, infoAt(r.now))
				i.Flush()
			case 5:
				s.receiver.RTCP(packet, r.now)
			case 6:
				i.RTCP(packet, r.now)
			case 7:
				s.slot.Select(tracks[n%3].track, uint64(n%2), r.now)
			}
			r.now = r.now.Add(5 * time.Millisecond)
			r.run()
			i.step(r.now)
			i.arrivalReports(r.now)
		}
		checkNoRepeats(t, s)
		if got := r.engine.Stats().CacheBytes; got > 3<<20 {
			t.Errorf("the caches hold %d bytes, expected at most 3 MiB", got)
		}
	})
}

// fuzzTranscript is input that gets everywhere.
func fuzzTranscript(f *testing.F) []byte {
	seed := newRig(f, nil)
	i := seed.ingress(&fakePeer{})
	framed, foreign, audio := seed.publish(i, 10, volumetric.MIMEVolumetric), seed.publish(i, 20, volumetric.MIMEH264), seed.publish(i, 30, volumetric.MIMEOpus)
	framed.parity, framed.extension = 1, testExtension
	var transcript []byte
	add := func(way byte, packets ...[]byte) {
		for _, p := range packets {
			transcript = append(binary.BigEndian.AppendUint16(append(transcript, way), uint16(len(p))), p...)
		}
	}
	for range 2 {
		framed.next()
		packets := framed.packets(3000)
		add(0, packets...)
		add(1, framed.retransmission(packets[1]))
		foreign.next()
		add(2, foreign.packet(h264Key, false), foreign.packet(h264Delta, true))
		add(4, audio.packet([]byte("opus"), false))
	}
	for _, packet := range []rtcp.Packet{
		&rtcp.SenderReport{SSRC: 10, NTPTime: 1 << 62, RTPTime: 5, Reports: []rtcp.ReceptionReport{{SSRC: 1000}}},
		&rtcp.TransportLayerNack{MediaSSRC: 1000, Nacks: []rtcp.NackPair{{PacketID: 1, LostPackets: 0xffff}}},
		&rtcp.PictureLossIndication{MediaSSRC: 1000},
		&rtcp.FullIntraRequest{MediaSSRC: 1000, FIR: []rtcp.FIREntry{{SSRC: 1000}}},
		&rtcp.ReceiverReport{Reports: []rtcp.ReceptionReport{{SSRC: 1000, LastSenderReport: 1, Delay: 2}}},
	} {
		raw, err := packet.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		add(5, raw)
		add(6, raw)
	}
	add(5, hostileReport(0, 24))
	return transcript
}
