package e2e

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestFrameTimes checks that the stages of frames add up to their latency, with the clocks of sender and receiver 50 ms
// apart and both different from the server's. The records are compared with the single clock of the process.
func TestFrameTimes(t *testing.T) {
	const senderAhead, receiverAhead = 80 * time.Millisecond, 30 * time.Millisecond
	c := startConference(t, unhurried)
	url := c.Server.URL()
	publication := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, 2), Qualities: make([]volumetric.QualityLevel, 1),
	}
	sender := joinAs(t, client.Config{URL: url, Room: "room", Identity: "ada",
		Publications: []volumetric.Publication{publication}, ClockShift: senderAhead, MinUplink: testbed.Everything,
		QueueBudget: repairTime})
	receiver := joinAs(t, client.Config{URL: url, Room: "room", Identity: "grace", Receive: true,
		ClockShift: receiverAhead, Deadline: repairTime})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// One requests them later, by a message.
	if err := receiver.SetFrameTimes(ctx, true); err != nil {
		t.Fatal(err)
	}
	truth := newTruth(wait.WatchStalls(t))
	var running sync.WaitGroup
	defer running.Wait()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { truth.send(sending, sender.Publisher("body")) })
	running.Go(func() { truth.receive(sending, receiver) })
	complete := 0
	wait.Until(t, "thirty frames are known from capture to display", func() bool {
		for {
			select {
			case r := <-receiver.FrameTimes():
				if truth.check(t, &r, senderAhead, receiverAhead) {
					complete++
				}
			default:
				return complete >= 30
			}
		}
	})
	if err := receiver.SetFrameTimes(ctx, false); err != nil {
		t.Fatal(err)
	}
}

// truth has the times at which frames were captured and shown, by the single clock of the process. newest is the number
// of the newest frame that was shown.
type truth struct {
	mu              sync.Mutex
	captured, shown map[frametimes.Key]time.Time
	newest          uint32
	stalls          *wait.Stalls
}

func newTruth(stalls *wait.Stalls) *truth {
	return &truth{captured: make(map[frametimes.Key]time.Time), shown: make(map[frametimes.Key]time.Time),
		stalls: stalls}
}

// frameBytes is the size of a frame: two segments.
const frameBytes = 2 * frametimes.SegmentBytes

// send publishes frames of several segments in two tiles until the context ends. On a machine that cannot process 30
// frames in a second, a frame waits for an earlier one, for a second at most.
func (u *truth) send(ctx context.Context, p *client.Publisher) {
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	data := make([]byte, frameBytes)
	for number := uint32(0); ; number++ {
		now := time.Now()
		for tile := range 2 {
			key := frametimes.Key{Frame: number}
			key.Track.Participant, key.Track.Publication, key.Track.Tile = "ada", "body", tile
			u.mu.Lock()
			u.captured[key] = now
			u.mu.Unlock()
			encoded := time.Now()
			// Frames before the connection are dropped.
			_, _ = p.WriteFrame(tile, 0, client.OutgoingFrame{
				Number: number, Capture: now, Data: data,
				Stages: client.Stages{Acquired: now, TilingBegan: now, Tiled: encoded, EncodingBegan: encoded,
					Encoded: encoded},
			})
		}
		for waited := false; !waited; waited = time.Since(now) > time.Second || number < u.latest()+ahead {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// latest returns the number of the newest frame that was shown.
func (u *truth) latest() uint32 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.newest
}

// receive counts frames as decoded and shown when they arrive.
func (u *truth) receive(ctx context.Context, s *client.Session) {
	for {
		select {
		case f, open := <-s.Frames():
			if !open {
				return
			}
			now := time.Now()
			s.FrameDecoded(&f, now, now)
			shown := time.Now()
			// The record may arrive as soon as the session has it.
			u.mu.Lock()
			u.shown[frametimes.Key{Track: f.Track, Frame: uint32(f.Number)}] = shown
			u.newest = max(u.newest, uint32(f.Number))
			u.mu.Unlock()
			s.FrameShown(f.Track, f.Number, now, shown)
		case <-ctx.Done():
			return
		}
	}
}

// check compares a record with the true times, if it has every stage.
func (u *truth) check(t *testing.T, r *frametimes.Record, senderAhead, receiverAhead time.Duration) (complete bool) {
	t.Helper()
	layers := r.Layers()
	sum, complete := layers.Sum()
	if !complete {
		return false
	}
	key := frametimes.Key{Track: r.Track, Frame: uint32(r.Frame)}
	u.mu.Lock()
	captured, shown := u.captured[key], u.shown[key]
	u.mu.Unlock()
	if captured.IsZero() || shown.IsZero() || r.Receiver != "grace" || r.Bytes != frameBytes {
		t.Fatalf("a record of %+v, which was never sent or shown", r)
	}
	for host, ahead := range map[frametimes.Host]time.Duration{frametimes.Sender: senderAhead,
		frametimes.Receiver: receiverAhead} {
		if clock := r.Clocks[host]; clock.Source != frametimes.SourceEstimated ||
			(clock.Offset+ahead).Abs() > clock.Bound {
			t.Errorf("frame %d: the clock of the %v is %+v, expected %v within its bound", r.Frame, host, clock, -ahead)
		}
	}
	latency := shown.Sub(captured)
	bound := layers.Bound(frametimes.Service)
	if miss := (sum - latency).Abs(); miss > bound+2*time.Microsecond {
		t.Errorf("frame %d: the layers add up to %v, the latency is %v, %v apart, expected at most the bound of %v",
			r.Frame, sum, latency, miss, bound)
	}
	for _, layer := range []frametimes.Layer{frametimes.FrameTx, frametimes.FrameRx, frametimes.ProtocolUpRx,
		frametimes.ProtocolDownTx, frametimes.ServerDistribution} {
		switch d, known := layers.Get(layer); {
		case known && d >= 0:
		case !known && u.stalls.Longest() > stalled:
			complete = false
		default:
			t.Errorf("frame %d: %v is %v, %v, expected a time, of %+v", r.Frame, layer, d, known, r)
		}
	}
	return complete
}
