package switching

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/test/wait"
)

// TestConcurrentWritersSwapsAndNACKs writes three tracks concurrently to a stream that accepts one
// of them, as ReplaceTrack allows, while other goroutines swap, send NACKs and report. On the wire
// no number of an SSRC may occur twice, and every retransmission must contain the packet sent under
// its number.
func TestConcurrentWritersSwapsAndNACKs(t *testing.T) {
	// The wire has its own lock, because retransmissions and media are both written to it.
	var mu sync.Mutex
	media, resent := map[uint16]uint64{}, map[uint16]bool{}
	var sent, answered, newest atomic.Int64
	f := NewInterceptor(WithCopies(200 * copySize))
	i, err := f.NewInterceptor("")
	if err != nil {
		t.Fatal(err)
	}
	w := i.BindLocalStream(&interceptor.StreamInfo{
		SSRC: mediaSSRC, SSRCRetransmission: rtxSSRC, PayloadTypeRetransmission: rtxType, MimeType: "video/opaque",
		ClockRate: 90_000,
	}, interceptor.RTPWriterFunc(func(h *rtp.Header, body []byte, _ interceptor.Attributes) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if h.SSRC == mediaSSRC {
			if _, twice := media[h.SequenceNumber]; twice {
				t.Errorf("number %d was sent twice", h.SequenceNumber)
			}
			media[h.SequenceNumber] = binary.BigEndian.Uint64(body)
			newest.Store(int64(h.SequenceNumber))
			sent.Add(1)
			return 0, nil
		}
		if resent[h.SequenceNumber] {
			t.Errorf("retransmission %d was sent twice", h.SequenceNumber)
		}
		resent[h.SequenceNumber] = true
		answered.Add(1)
		original := binary.BigEndian.Uint16(body)
		if got, want := binary.BigEndian.Uint64(body[2:]), media[original]; got != want {
			t.Errorf("retransmission of %d holds %d, expected %d", original, got, want)
		}
		return 0, nil
	}))

	// taken is the track whose packets reach the stream. replacing waits for the writes in
	// progress, as Unbind does.
	var taken struct {
		sync.RWMutex
		track int
	}
	// most limits the packets of each SSRC, so that every number is unique in 16 bits.
	const most = 50_000
	var stop atomic.Bool
	var writers, others sync.WaitGroup
	for track := range 3 {
		writers.Go(func() {
			for n := uint64(0); sent.Load() < most && !stop.Load(); n++ {
				for sent.Load() > 1000+10*answered.Load() && !stop.Load() {
					runtime.Gosched() // let the NACKs keep up
				}
				taken.RLock()
				if taken.track == track {
					h := &rtp.Header{
						Version: 2, SSRC: mediaSSRC, SequenceNumber: uint16(n) + uint16(track)*20_000,
						Timestamp: uint32(n/4*30 + uint64(track)*1e9), Marker: n%4 == 3,
					}
					if _, err := w.Write(h, binary.BigEndian.AppendUint64(nil, n<<8|uint64(track)), nil); err != nil {
						t.Error(err)
					}
				}
				taken.RUnlock()
			}
		})
	}
	var swapped int64
	swap := func(rng *rand.Rand) {
		if sent.Load() < swapped+10 {
			runtime.Gosched()
			return
		}
		swapped = sent.Load()
		err := f.Swap(mediaSSRC, func() error {
			taken.Lock()
			taken.track = rng.IntN(3)
			taken.Unlock()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	reader := i.BindRTCPReader(interceptor.RTCPReaderFunc(
		func(b []byte, a interceptor.Attributes) (int, interceptor.Attributes, error) { return len(b), a, nil }))
	ask := func(rng *rand.Rand) {
		if answered.Load() >= most {
			runtime.Gosched()
			return
		}
		b, err := rtcp.Marshal([]rtcp.Packet{&rtcp.TransportLayerNack{
			MediaSSRC: mediaSSRC, Nacks: []rtcp.NackPair{{PacketID: uint16(newest.Load()) - uint16(rng.IntN(100)),
				LostPackets: 0xffff}},
		}, &rtcp.ReceiverReport{}})
		if err != nil {
			t.Error(err)
			return
		}
		if _, _, err := reader.Read(b, nil); err != nil {
			t.Error(err)
		}
	}
	reports := i.BindRTCPWriter(
		interceptor.RTCPWriterFunc(func([]rtcp.Packet, interceptor.Attributes) (int, error) { return 0, nil }),
	)
	report := func(*rand.Rand) {
		if _, err := reports.Write([]rtcp.Packet{&rtcp.SenderReport{SSRC: mediaSSRC}}, nil); err != nil {
			t.Error(err)
		}
	}
	for n, act := range []func(*rand.Rand){swap, ask, ask, report} {
		others.Go(func() {
			for rng := rand.New(rand.NewPCG(uint64(n), 1)); !stop.Load(); {
				act(rng)
			}
		})
	}
	wait.Until(t, "many packets are sent and resent",
		func() bool { return sent.Load() >= 5000 && answered.Load() >= 500 || sent.Load() >= most })
	stop.Store(true)
	writers.Wait()
	others.Wait()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if sent.Load() < 5000 || answered.Load() < 500 {
		t.Errorf("%d packets were sent and %d resent, too few to prove anything", sent.Load(), answered.Load())
	}
	if err := f.Swap(mediaSSRC, nil); err == nil {
		t.Error("the stream is still known after Close")
	}
}
