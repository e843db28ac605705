package switching_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

const (
	qualities  = 3
	swaps      = 100
	fragments  = 3
	frameEvery = 2 * time.Millisecond
	// leastDropped is the number of dropped packets after which a run with loss ends.
	leastDropped = 30
)

// TestPionPeers swaps the tracks of a sender many times over loopback while all tracks send. It
// checks that the receiver sees one stream: every number once, new tracks starting at a frame,
// increasing timestamps.
func TestPionPeers(t *testing.T) {
	r := runPeers(t, 0)
	if r.lost != 0 || r.repeated != 0 {
		t.Errorf("on the wire %d numbers are missing and %d come twice", r.lost, r.repeated)
	}
}

// TestPionPeersWithLoss drops a tenth of the packets before the receiver sees them. The receiver's
// NACKs are answered across all swaps.
func TestPionPeersWithLoss(t *testing.T) {
	if r := runPeers(t, 0.1); r.repeated != 0 {
		t.Errorf("on the wire %d numbers come twice", r.repeated)
	}
}

// wire records the numbers of the media packets that the sender passes to the network. It is the interceptor next to
// the network: a busy machine loses packets behind it, from the buffer of the receiver's socket.
type wire struct {
	interceptor.NoOp

	mu      sync.Mutex
	numbers []uint16
}

func (w *wire) NewInterceptor(string) (interceptor.Interceptor, error) { return w, nil }

func (w *wire) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	return interceptor.RTPWriterFunc(func(h *rtp.Header, body []byte, a interceptor.Attributes) (int, error) {
		if h.SSRC == info.SSRC {
			w.mu.Lock()
			w.numbers = append(w.numbers, h.SequenceNumber)
			w.mu.Unlock()
		}
		return writer.Write(h, body, a)
	})
}

// tap is between the network and the receiver's NACK generator. It drops some packets.
type tap struct {
	interceptor.NoOp
	loss float64

	mu      sync.Mutex
	rng     *rand.Rand
	dropped int
}

func (f *tap) NewInterceptor(string) (interceptor.Interceptor, error) { return f, nil }

func (f *tap) BindRemoteStream(info *interceptor.StreamInfo, reader interceptor.RTPReader) interceptor.RTPReader {
	if info.MimeType == webrtc.MimeTypeRTX {
		return reader
	}
	return interceptor.RTPReaderFunc(func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) {
		for {
			n, attributes, err := reader.Read(b, a)
			if err != nil {
				return n, attributes, err
			}
			if !f.lose() {
				return n, attributes, nil
			}
		}
	})
}

func (f *tap) lose() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	lose := f.rng.Float64() < f.loss
	if lose {
		f.dropped++
	}
	return lose
}

// losses returns the number of dropped packets.
func (f *tap) losses() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dropped
}

type result struct{ lost, repeated int }

// watcher is the receiving application.
type watcher struct {
	mu       sync.Mutex
	got      map[int64]rtp.Packet // by extended number
	first    int64
	newest   int64
	quality  uint8
	problems []string
}

func (w *watcher) packet(p *rtp.Packet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.got) == 0 {
		w.first = int64(p.SequenceNumber)
		w.newest = w.first
	}
	number := w.newest + int64(int16(p.SequenceNumber-uint16(w.newest)))
	var d payload.Descriptor
	if _, err := d.Unmarshal(p.Payload); err != nil {
		w.problems = append(w.problems, fmt.Sprintf("number %d: %v", number, err))
		return
	}
	if before, again := w.got[number]; again &&
		(before.Timestamp != p.Timestamp || string(before.Payload) != string(p.Payload)) {
		w.problems = append(w.problems, fmt.Sprintf("number %d stands for two packets", number))
	}
	w.got[number] = *p
	if number >= w.newest {
		w.newest, w.quality = number, d.Quality
	}
}

// complete reports whether every number up to the newest has arrived.
func (w *watcher) complete(upTo int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := w.first; n <= upTo; n++ {
		if _, ok := w.got[n]; !ok {
			return false
		}
	}
	return true
}

func (w *watcher) sees(quality uint8) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got) > 0 && w.quality == quality
}

// check checks the whole stream in the order of its numbers.
func (w *watcher) check(t *testing.T, upTo int64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, problem := range w.problems {
		t.Error(problem)
	}
	var before payload.Descriptor
	var timestamp uint32
	for n := w.first; n <= upTo; n++ {
		p := w.got[n]
		var d payload.Descriptor
		if _, err := d.Unmarshal(p.Payload); err != nil {
			t.Fatalf("number %d: %v", n, err)
		}
		if n > w.first {
			if d.Quality != before.Quality && d.Index != 0 {
				t.Errorf("number %d: quality %d begins with fragment %d", n, d.Quality, d.Index)
			}
			if int32(p.Timestamp-timestamp) < 0 || d.Frame != before.Frame && p.Timestamp == timestamp {
				t.Errorf(
					"number %d: timestamp %d of frame %d follows %d of frame %d",
					n,
					p.Timestamp,
					d.Frame,
					timestamp,
					before.Frame,
				)
			}
			if d.Frame < before.Frame || d.Frame == before.Frame && d.Quality != before.Quality {
				t.Errorf(
					"number %d: frame %d of quality %d follows frame %d of quality %d",
					n,
					d.Frame,
					d.Quality,
					before.Frame,
					before.Quality,
				)
			}
			if p.Marker != (int(d.Index) == d.Packets()-1) {
				t.Errorf("number %d: fragment %d has marker %t", n, d.Index, p.Marker)
			}
		}
		before, timestamp = d, p.Timestamp
	}
}

func runPeers(t *testing.T, loss float64) result {
	t.Helper()
	factory, sent := switching.NewInterceptor(), &wire{}
	sending := newPeer(t, func(m *webrtc.MediaEngine, r *interceptor.Registry) error {
		r.Add(sent)
		if err := webrtc.ConfigureTWCCHeaderExtensionSender(m, r); err != nil {
			return err
		}
		r.Add(factory)
		return webrtc.RegisterDefaultInterceptors(m, r)
	})
	network := &tap{loss: loss, rng: rand.New(rand.NewPCG(1, 1))}
	receiving := newPeer(t, func(_ *webrtc.MediaEngine, r *interceptor.Registry) error {
		r.Add(network)
		generator, err := nack.NewGeneratorInterceptor(nack.GeneratorInterval(10 * time.Millisecond))
		if err != nil {
			return err
		}
		r.Add(generator)
		return nil
	})
	w := &watcher{got: map[int64]rtp.Packet{}}
	receiving.OnTrack(func(remote *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		for {
			p, _, err := remote.ReadRTP()
			if err != nil {
				return
			}
			w.packet(p)
		}
	})

	var tracks [qualities]*webrtc.TrackLocalStaticRTP
	for q := range tracks {
		track, err := webrtc.NewTrackLocalStaticRTP(
			webrtc.RTPCodecCapability{
				MimeType:  volumetric.MIMEVolumetric,
				ClockRate: 90_000,
			},
			fmt.Sprint("quality", q),
			"tile",
		)
		if err != nil {
			t.Fatal(err)
		}
		tracks[q] = track
	}
	sender, err := sending.AddTrack(tracks[0])
	if err != nil {
		t.Fatal(err)
	}
	go pumpRTCP(sender)
	if err := connect(sending, receiving); err != nil {
		t.Fatal(err)
	}
	stop := publish(t, tracks[:])
	wait.Until(t, "quality 0", func() bool { return w.sees(0) })
	ssrc := uint32(sender.GetParameters().Encodings[0].SSRC)
	rng := rand.New(rand.NewPCG(2, 2))
	quality := 0
	for n := 0; n < swaps || loss > 0 && network.losses() < leastDropped; n++ {
		quality = (quality + 1 + rng.IntN(qualities-1)) % qualities
		if err := factory.Swap(ssrc, func() error { return sender.ReplaceTrack(tracks[quality]) }); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, fmt.Sprintf("quality %d", quality), func() bool { return w.sees(uint8(quality)) })
	}
	w.mu.Lock()
	upTo := w.newest
	w.mu.Unlock()
	wait.Until(t, "the missing packets", func() bool { return w.complete(upTo) })
	stop()
	w.check(t, upTo)
	return sent.result()
}

// result counts the errors on the wire.
func (w *wire) result() result {
	w.mu.Lock()
	defer w.mu.Unlock()
	var r result
	seen := map[int64]bool{}
	first := int64(w.numbers[0])
	newest := first
	for _, sequence := range w.numbers {
		number := newest + int64(int16(sequence-uint16(newest)))
		if seen[number] {
			r.repeated++
		}
		seen[number], newest = true, max(newest, number)
	}
	r.lost = int(newest-first) + 1 - len(seen)
	return r
}

// publish writes all tracks concurrently, each from its own goroutine, with frames of one
// publication and equal frame numbers.
func publish(t *testing.T, tracks []*webrtc.TrackLocalStaticRTP) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	begin := time.Now()
	for q, track := range tracks {
		wg.Go(func() {
			ticker := time.NewTicker(frameEvery)
			defer ticker.Stop()
			sequence := uint16(65_000 + 20_000*q)
			frame := uint32(0)
			for {
				select {
				case <-done:
					return
				case <-ticker.C:
				}
				// Slow machines skip the same frames on all tracks.
				number := uint32(time.Since(begin) / frameEvery)
				if number == frame {
					continue
				}
				frame = number
				for i := range fragments {
					p := &rtp.Packet{
						Header:  rtp.Header{Version: 2, SequenceNumber: sequence, Timestamp: 90*2*frame + 1<<31},
						Payload: volumetricPayload(t, uint8(q), frame, i),
					}
					if err := track.WriteRTP(p); err != nil && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("writing quality %d: %v", q, err)
						return
					}
					sequence++
				}
			}
		})
	}
	return func() {
		close(done)
		wg.Wait()
	}
}

func volumetricPayload(t *testing.T, quality uint8, frame uint32, index int) []byte {
	d := payload.Descriptor{
		Quality: quality, Frame: frame, Index: uint16(index), Source: fragments,
		Length: (fragments-1)*payload.FragmentSize + 1,
	}
	b := make([]byte, payload.DescriptorSize+d.DataSize())
	if _, err := d.MarshalTo(b); err != nil {
		t.Error(err)
	}
	return b
}

// newPeer returns a peer that supports video/volumetric with retransmissions.
func newPeer(t *testing.T, configure func(*webrtc.MediaEngine, *interceptor.Registry) error) *webrtc.PeerConnection {
	t.Helper()
	m, r := &webrtc.MediaEngine{}, &interceptor.Registry{}
	for _, codec := range []webrtc.RTPCodecParameters{
		{RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: volumetric.MIMEVolumetric, ClockRate: 90_000, RTCPFeedback: []webrtc.RTCPFeedback{{Type: "nack"}},
		}, PayloadType: 96},
		{RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeRTX, ClockRate: 90_000, SDPFmtpLine: "apt=96",
		}, PayloadType: 97},
	} {
		if err := m.RegisterCodec(codec, webrtc.RTPCodecTypeVideo); err != nil {
			t.Fatal(err)
		}
	}
	if err := configure(m, r); err != nil {
		t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(
		webrtc.WithMediaEngine(m), webrtc.WithInterceptorRegistry(r), webrtc.WithSettingEngine(loopback()),
	).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pc.Close(); err != nil {
			t.Error(err)
		}
	})
	return pc
}
