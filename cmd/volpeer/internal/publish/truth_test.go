package publish

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer/distribution"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// truth has the capture times of frames and audio, recorded at the hand-over by the publisher. All participants in this
// process have the same clock.
type truth struct {
	sink  produce.Sink
	voice voice

	mu     sync.Mutex
	frames map[uint32]time.Time
	// sound is keyed by payload: the tone repeats every two seconds.
	sound map[string][]time.Time
}

func (tr *truth) Wanted(tile int, quality volumetric.Quality) bool {
	return tr.sink.Wanted(tile, quality)
}
func (tr *truth) GaveUp(tile int, quality volumetric.Quality) bool {
	return tr.sink.GaveUp(tile, quality)
}

func (tr *truth) WriteFrame(tile int, quality volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	tr.mu.Lock()
	tr.frames[f.Number] = f.Capture
	tr.mu.Unlock()
	return tr.sink.WriteFrame(tile, quality, f)
}

func (tr *truth) WritePackets(tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte) (bool,
	error) {
	tr.mu.Lock()
	for _, p := range payloads {
		tr.sound[string(p)] = append(tr.sound[string(p)], capture)
	}
	tr.mu.Unlock()
	return tr.voice.WritePackets(tile, quality, capture, payloads)
}

// observed are the items that a witness has received, with the capture times of the session.
type observed struct {
	frames  []client.Frame
	packets []client.Packet
	// seen counts frames, heard packets with a capture time, while the witness collects them.
	seen, heard atomic.Int64
}

// collect collects frames and packets until the session ends.
func (o *observed) collect(session *client.Session) {
	frames, packets := session.Frames(), session.Packets()
	for frames != nil || packets != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			f.Data = nil
			o.frames = append(o.frames, f)
			o.seen.Add(1)
		case p, open := <-packets:
			if !open {
				packets = nil
				continue
			}
			o.packets = append(o.packets, p)
			if !p.Capture.IsZero() {
				o.heard.Add(1)
			}
		}
	}
}

// errors returns the errors of the capture times that a witness received. unmapped is the number of audio packets
// before the first sender report.
func (tr *truth) errors(t *testing.T, o *observed) (frames, sound distribution.Distribution, unmapped int) {
	t.Helper()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for _, f := range o.frames {
		captured, ok := tr.frames[uint32(f.Number)]
		if !ok {
			t.Errorf("frame %d was never captured", f.Number)
			continue
		}
		frames.Add(f.Capture.Sub(captured).Abs())
	}
	for _, p := range o.packets {
		if p.Capture.IsZero() {
			unmapped++
			continue
		}
		var off []time.Duration
		for _, captured := range tr.sound[string(p.Payload)] {
			off = append(off, p.Capture.Sub(captured).Abs())
		}
		if len(off) == 0 {
			t.Errorf("packet %d was never sent", p.SequenceNumber)
			continue
		}
		sound.Add(slices.Min(off))
	}
	return frames, sound, unmapped
}
