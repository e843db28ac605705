package forward

import (
	"bytes"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestInjection sends frames that came by no RTP to a receiver, which cannot tell the difference.
func TestInjection(t *testing.T) {
	r := newRig(t, nil)
	ingress := r.ingress(&fakePeer{})
	track := r.engine.NewTrack(TrackConfig{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}, Quality: 1})
	j := ingress.NewInjector(track, 1<<20)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(track, 7, r.now)
	r.run()
	for frame, size := range []int{3000, 0, payload.FragmentSize, 70_000} {
		data := bytes.Repeat([]byte{byte(frame), 2, 3}, size/3+1)[:size]
		before := len(s.outlet.sent())
		if err := j.Frame(payload.Descriptor{Quality: 1, Frame: uint32(frame)}, data, uint32(frame)*3000, r.now); err != nil {
			t.Fatal(err)
		}
		r.run()
		var got []byte
		sent := s.outlet.sentFrom(before)
		for i, p := range sent {
			var d payload.Descriptor
			part, err := d.Unmarshal(p.Payload)
			if err != nil || d.Frame != uint32(frame) || int(d.Index) != i || p.Marker != (i == len(sent)-1) {
				t.Fatalf("packet %d of frame %d is %+v, marker %t: %v", i, frame, d, p.Marker, err)
			}
			got = append(got, part...)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("frame %d of %d bytes came as %d", frame, size, len(got))
		}
	}
	checkContinuous(t, s.outlet.sent())
	if err := j.Frame(payload.Descriptor{Frame: 9, Prefixed: true}, []byte{1}, 0, r.now); !errors.Is(err, payload.ErrFrame) {
		t.Errorf("a frame without its prefix: %v", err)
	}
}

// chunksOf cuts a frame as a page does.
func chunksOf(frame uint32, data []byte) []payload.Chunk {
	var chunks []payload.Chunk
	for i := range payload.Chunks(len(data)) {
		part := data[i*payload.ChunkSize : min((i+1)*payload.ChunkSize, len(data))]
		chunks = append(chunks, payload.Chunk{Quality: 1, Frame: frame, Length: uint32(len(data)), Index: uint16(i), Timestamp: 3000 * frame, Data: part})
	}
	return chunks
}

// injectors adds tracks that frames are injected into.
func (r *rig) injectors(n int, i *Ingress) (all []*Injector, tracks []*Track) {
	for range n {
		track := r.engine.NewTrack(TrackConfig{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000}, Quality: 1})
		tracks = append(tracks, track)
		all = append(all, i.NewInjector(track, 16<<20))
	}
	return all, tracks
}

// TestChunksAreInjected sends frames in chunks, in any order, to a receiver.
func TestChunksAreInjected(t *testing.T) {
	r := newRig(t, nil)
	ingress := r.ingress(&fakePeer{})
	injectors, tracks := r.injectors(1, ingress)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(tracks[0], 7, r.now)
	r.run()
	for frame, size := range []int{0, 1, payload.ChunkSize, 3*payload.ChunkSize + 5} {
		data := bytes.Repeat([]byte{byte(frame), 2, 3}, size/3+1)[:size]
		before := len(s.outlet.sent())
		chunks := chunksOf(uint32(frame), data)
		for n := range chunks {
			if err := injectors[0].Chunk(&chunks[len(chunks)-1-n], r.now); err != nil {
				t.Fatal(err)
			}
		}
		r.run()
		var got []byte
		for _, p := range s.outlet.sentFrom(before) {
			got = append(got, p.Payload[payload.DescriptorSize:]...)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("frame %d of %d bytes came as %d", frame, size, len(got))
		}
	}
	if used := r.engine.pieces.used.Load(); used != 0 {
		t.Errorf("%d bytes are held once all frames are whole", used)
	}
}

// TestFramesInPiecesAreBounded has publishers begin frames without end: they leave room for others, and what they leave unfinished is let go of.
func TestFramesInPiecesAreBounded(t *testing.T) {
	const limit = 8 << 20
	r := newRig(t, func(c *Config) { c.CacheBytes = piecesShare * limit })
	begin := func(injectors []*Injector) (refused int) {
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
	if refused := begin(injectors); refused == 0 || first.chunks.used.Load() > limit/2 {
		t.Errorf("one publisher holds %d bytes, %d chunks refused, expected at most half of %d", first.chunks.used.Load(), refused, limit)
	}
	second := r.ingress(&fakePeer{})
	others, _ := r.injectors(64, second)
	if refused := begin(others); refused == 0 || r.engine.pieces.used.Load() > limit {
		t.Errorf("two publishers hold %d bytes, %d chunks refused, expected at most %d", r.engine.pieces.used.Load(), refused, limit)
	}
	if got := r.engine.Stats().CacheBytes; got != r.engine.pieces.used.Load() || r.engine.budget.Used() != got {
		t.Errorf("%d bytes count as cache, %d in its budget, expected %d", got, r.engine.budget.Used(), r.engine.pieces.used.Load())
	}
	honest := r.ingress(&fakePeer{})
	page, _ := r.injectors(1, honest)
	chunks := chunksOf(1, make([]byte, 6*payload.ChunkSize))
	for n := range chunks {
		if err := page[0].Chunk(&chunks[n], r.now); err != nil {
			t.Fatalf("a frame of somebody else: %v", err)
		}
	}
	if got := r.engine.Stats().FramesReceived; got != 1 {
		t.Errorf("%d frames came, expected the one", got)
	}
	// A track that ends gives back what it holds, a publisher that leaves all, and who stays what comes to nothing.
	held := first.chunks.used.Load()
	tracks[0].Close()
	if now := first.chunks.used.Load(); now >= held || injectors[0].Chunk(&chunks[0], r.now) != nil || first.chunks.used.Load() != now {
		t.Errorf("%d bytes were held, and %d after a track had ended", held, now)
	}
	second.Close()
	if used := second.chunks.used.Load(); used != 0 {
		t.Errorf("%d bytes are held by a publisher that has left", used)
	}
	for range 3 {
		r.now = r.now.Add(r.engine.cfg.ReportInterval)
		first.step(r.now)
	}
	if used := r.engine.pieces.used.Load(); used != 0 {
		t.Errorf("%d bytes are held after seconds in which nothing came", used)
	}
}
