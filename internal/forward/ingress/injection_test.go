package ingress

import (
	"errors"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// chunksOf splits a frame as a page does.
func chunksOf(frame uint32, data []byte) []payload.Chunk {
	var chunks []payload.Chunk
	for i := range payload.Chunks(len(data)) {
		part := data[i*payload.ChunkSize : min((i+1)*payload.ChunkSize, len(data))]
		chunks = append(chunks, payload.Chunk{Quality: 1, Frame: frame, Length: uint32(len(data)), Index: uint16(i),
			Timestamp: 3000 * frame, Data: part})
	}
	return chunks
}

// injectors adds tracks with injectors.
func (r *rig) injectors(n int, i *Ingress) (all []*injection.Injector, tracks []*track.Track) {
	for range n {
		track := r.tracks.New(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric,
			ClockRate: 90000}, Quality: 1})
		tracks = append(tracks, track)
		all = append(all, i.NewInjector(track, 16<<20))
	}
	return all, tracks
}

// TestFramesInPiecesAreBounded lets publishers begin frames without end. Other publishers still have memory, and
// incomplete frames are released.
func TestFramesInPiecesAreBounded(t *testing.T) {
	const limit = 8 << 20
	r := newRig(t, func(c *rigConfig) { c.CacheBytes = 4 * limit })
	begin := func(injectors []*injection.Injector) (refused int) {
		for frame := range uint32(4) {
			for _, j := range injectors {
				chunks := chunksOf(frame, make([]byte, 2*payload.ChunkSize))
				if err := j.Chunk(&chunks[0], r.now); errors.Is(err, payload.ErrNoRoom) {
					refused++
				} else if err != nil {
					t.Fatal(err)
				}
			}
		}
		return refused
	}
	first := r.ingress(&fakePeer{})
	injectors, tracks := r.injectors(64, first)
	if refused := begin(injectors); refused == 0 || first.chunks.Used() > limit/2 {
		t.Errorf("one publisher holds %d bytes, %d chunks refused, expected at most half of %d", first.chunks.Used(),
			refused, limit)
	}
	second := r.ingress(&fakePeer{})
	others, _ := r.injectors(64, second)
	if refused := begin(others); refused == 0 || r.pieces.Used() > limit {
		t.Errorf("two publishers hold %d bytes, %d chunks refused, expected at most %d", r.pieces.Used(), refused,
			limit)
	}
	if got := r.budget.Used(); got != r.pieces.Used() {
		t.Errorf("%d bytes count in the budget of the caches, expected %d", got, r.pieces.Used())
	}
	honest := r.ingress(&fakePeer{})
	page, _ := r.injectors(1, honest)
	chunks := chunksOf(1, make([]byte, 6*payload.ChunkSize))
	for n := range chunks {
		if err := page[0].Chunk(&chunks[n], r.now); err != nil {
			t.Fatalf("a frame of somebody else: %v", err)
		}
	}
	if got := r.stats().FramesReceived; got != 1 {
		t.Errorf("%d frames came, expected the one", got)
	}
	// A track that ends releases its memory, a publisher that leaves releases all, and a publisher that stays releases
	// frames that do not continue.
	held := first.chunks.Used()
	tracks[0].Close()
	if now := first.chunks.Used(); now >= held || injectors[0].Chunk(&chunks[0], r.now) != nil ||
		first.chunks.Used() != now {
		t.Errorf("%d bytes were held, and %d after a track had ended", held, now)
	}
	second.Close()
	if used := second.chunks.Used(); used != 0 {
		t.Errorf("%d bytes are held by a publisher that has left", used)
	}
	for range 3 {
		r.now = r.now.Add(r.cfg.ReportInterval)
		first.step(r.now)
	}
	if used := r.pieces.Used(); used != 0 {
		t.Errorf("%d bytes are held after seconds in which nothing came", used)
	}
}

// TestWaitingInjectorsAreSwept begins frames over two injectors of tracks that another connection has: one that never
// had its track, and one whose track was taken over. The frames do not continue, and their memory is released.
func TestWaitingInjectorsAreSwept(t *testing.T) {
	for _, test := range []struct {
		name string
		// begin returns an injector of an ingress that has no streams.
		begin func(*testing.T, *crossing, *Ingress) *injection.Injector
	}{
		{"never bound", func(_ *testing.T, c *crossing, i *Ingress) *injection.Injector {
			c.sends[0].Send(c.now, c.frame(0, 3000)...)
			return i.NewInjector(c.track, 1<<20)
		}},
		{"taken over", func(t *testing.T, c *crossing, i *Ingress) *injection.Injector {
			c.in[0].Unbind(c.track)
			c.in[1].Unbind(c.track)
			j := i.NewInjector(c.track, 1<<20)
			if err := j.Frame(payload.Descriptor{Frame: 1}, make([]byte, 100), 3000, c.now); err != nil {
				t.Fatal(err)
			}
			c.in[1].Bind(40, 41, c.track)
			c.sends[0].Number = 1
			c.sends[1].Send(c.now, c.frame(1, 3000)...)
			if n := len(c.reader.read(t)); n != 4 {
				t.Fatalf("%d packets came, expected those of the injected frame and the next", n)
			}
			return j
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCrossing(t, volumetric.MIMEVolumetric)
			i := c.ingress(&fakePeer{})
			j := test.begin(t, c, i)
			if n := len(i.bindings.streams); n != 0 {
				t.Fatalf("the ingress has %d streams, expected none", n)
			}
			chunks := chunksOf(9, make([]byte, 2*payload.ChunkSize))
			if err := j.Chunk(&chunks[0], c.now); err != nil || i.chunks.Used() == 0 {
				t.Fatalf("the chunk is not held: %v", err)
			}
			for range 3 {
				_, next := i.Step(c.now)
				if next.IsZero() {
					t.Fatal("no step is due while chunks are held")
				}
				c.now = next
			}
			if used := i.chunks.Used(); used != 0 {
				t.Errorf("%d bytes are held after %v in which nothing came", used, 3*c.cfg.ReportInterval)
			}
			c.track.Close()
			i.Unbind(c.track)
			if _, next := i.Step(c.now.Add(time.Second)); !next.IsZero() {
				t.Errorf("without injectors the next step is at %v, expected none", next)
			}
		})
	}
}
