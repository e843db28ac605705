package egress

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// numberedSize is the size in bytes of an RTP header with a transport-wide sequence number: 12 bytes, and for the
// extension 4 bytes and one word.
const numberedSize = 20

// nullPeer counts its flushes.
type nullPeer struct {
	fakePeer
	flushes *int
}

func (p *nullPeer) Blocked(time.Time) bool { return false }
func (p *nullPeer) Post(Batch)             { *p.flushes++ }

// nullOutlet discards packets.
type nullOutlet struct{ ssrc uint32 }

func (o nullOutlet) Queue(*rtp.Header, []byte) error { return nil }
func (o nullOutlet) SSRC() uint32                    { return o.ssrc }
func (o nullOutlet) RetransmissionSSRC() uint32      { return o.ssrc + 1 }

func (o nullOutlet) PayloadType(string) (media, retransmission uint8, ok bool) { return 96, 97, true }

// BenchmarkForward measures the cost of a packet from the ingress to the outlets, in one goroutine: ns/op is per packet
// received, ns/packet per packet queued, packets/flush the packets per flush. Frames have 20 packets and arrive as one
// batch; the packets of the tracks are interleaved.
func BenchmarkForward(b *testing.B) {
	for _, tracks := range []int{1, 4} {
		for _, slots := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("tracks=%d/slots=%d", tracks, slots), func(b *testing.B) {
				benchmarkForward(b, tracks, slots, 20, pacing.Off, 0)
			})
		}
	}
}

// BenchmarkNumbered is BenchmarkForward with transport-wide numbers on all packets, in and out.
func BenchmarkNumbered(b *testing.B) {
	for _, slots := range []int{0, 1, 10, 50} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			benchmarkForward(b, 1, slots, 20, pacing.Off, testExtension)
		})
	}
}

// BenchmarkPacing is BenchmarkForward with frames of 175 packets, 50 Mbit/s, with and without spreading.
func BenchmarkPacing(b *testing.B) {
	for _, mode := range []pacing.Mode{pacing.Off, pacing.Default, pacing.Burst5ms} {
		for _, slots := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("%s/slots=%d", mode, slots), func(b *testing.B) {
				benchmarkForward(b, 1, slots, 175, mode, 0)
			})
		}
	}
}

func benchmarkForward(b *testing.B, tracks, slots, perFrame int, mode pacing.Mode, extension uint8) {
	cfg := defaultConfig()
	cfg.Writers, cfg.Pacing = 1, mode
	// The cache of 1 s of virtual time is full before the measurement begins.
	r := &rig{t: b, now: time.Now()}
	e := newEngine(cfg, func() time.Time { return r.now })
	r.engine = e
	i := e.ingresses.NewStepped(&fakePeer{extension: extension})
	var publishers []*publisher
	for n := range tracks {
		publishers = append(publishers, r.publish(i, uint32(10+10*n), volumetric.MIMEVolumetric))
		publishers[n].Extension = extension
	}
	flushes := 0
	for k := range slots {
		receiver := e.NewReceiver(&nullPeer{fakePeer: fakePeer{extension: extension}, flushes: &flushes}, 0)
		for n, p := range publishers {
			receiver.AddSlot(nullOutlet{uint32(1000 + 1000*k + 10*n)}, volumetric.KindVideo).Select(p.track, 1, r.now)
		}
	}
	r.run()
	templates := make([][][]byte, tracks)
	for n, p := range publishers {
		templates[n] = p.Packets(perFrame * 1144)
	}
	sequence, sent := uint16(0), 0
	send := func() {
		n, fragment := sent%tracks, sent/tracks%perFrame
		frame := uint32(sent / tracks / perFrame)
		packet := templates[n][fragment]
		binary.BigEndian.PutUint16(packet[2:], sequence)
		binary.BigEndian.PutUint32(packet[4:], frame*3000)
		if extension == 0 {
			binary.BigEndian.PutUint32(packet[12+8:], frame)
		} else {
			binary.BigEndian.PutUint16(packet[17:], uint16(sent))
			binary.BigEndian.PutUint32(packet[numberedSize+8:], frame)
		}
		i.RTP(publishers[n].SSRC, packet, forwardtest.InfoAt(r.now))
		if sent++; sent%tracks == 0 {
			sequence++
		}
		if sent%(tracks*perFrame) == 0 {
			i.Flush()
			r.ticks(time.Second / 30)
			i.Step(r.now)
		}
	}
	for range 60 * perFrame * tracks {
		send()
	}
	flushes = 0
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		send()
	}
	i.Flush()
	r.ticks(time.Second / 30)
	b.StopTimer()
	written := e.Stats().Sent.Media.Packets
	if want := uint64(sent * slots); written < want-uint64(perFrame*slots*tracks) {
		b.Fatalf("%d packets were written, expected %d", written, want)
	}
	if slots > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*slots), "ns/packet")
		b.ReportMetric(float64(b.N*slots)/float64(flushes), "packets/flush")
	}
}

// BenchmarkIngress measures the cost of a packet without receivers.
func BenchmarkIngress(b *testing.B) { benchmarkForward(b, 1, 0, 20, pacing.Off, 0) }

// BenchmarkRunInline measures the cost of a packet if the receiving goroutine forwards the packet because the writer
// sleeps: ns/op is per frame of 20 packets that arrive as one batch.
func BenchmarkRunInline(b *testing.B) {
	const packets = 20
	for _, slots := range []int{1, 10, 50} {
		b.Run(fmt.Sprintf("slots=%d", slots), func(b *testing.B) {
			cfg := defaultConfig()
			cfg.Writers, cfg.Pacing, cfg.TrackCacheBytes = 1, pacing.Off, 1<<20
			r := &rig{t: b, now: time.Now(), engine: newEngine(cfg, time.Now)}
			i := r.engine.ingresses.NewStepped(&fakePeer{})
			p := r.publish(i, 10, volumetric.MIMEVolumetric)
			for k := range slots {
				receiver := r.engine.NewReceiver(&nullPeer{flushes: new(int)}, 0)
				receiver.AddSlot(nullOutlet{uint32(1000 + 10*k)}, volumetric.KindVideo).Select(p.track, 1, r.now)
			}
			r.run()
			w := r.engine.writers[0]
			w.turn.Release()
			frame := p.Packets(packets * 1144)
			sequence, number := uint16(0), uint32(0)
			send := func() {
				number++
				now := time.Now()
				for _, packet := range frame {
					sequence++
					binary.BigEndian.PutUint16(packet[2:], sequence)
					binary.BigEndian.PutUint32(packet[4:], number*3000)
					binary.BigEndian.PutUint32(packet[12+8:], number)
					i.RTP(p.SSRC, packet, forwardtest.InfoAt(now))
				}
				i.Flush()
				if !w.turn.Free() {
					// A burst that took too long was left to the writer's goroutine.
					w.turn.Receive()
					w.Work(never)
					w.turn.Release()
				}
			}
			for range 200 {
				send()
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*packets*slots), "ns/packet")
		})
	}
}
