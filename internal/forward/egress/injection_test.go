package egress

import (
	"bytes"
	"errors"
	"testing"

	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestInjection sends injected frames to a receiver, which cannot distinguish them from frames over RTP.
func TestInjection(t *testing.T) {
	r := newRig(t, nil)
	in := r.ingress(&fakePeer{})
	track := r.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric,
		ClockRate: 90000}, Quality: 1})
	j := in.NewInjector(track, 1<<20)
	s := r.subscribe(1000, volumetric.KindVideo)
	s.slot.Select(track, 7, r.now)
	r.run()
	for frame, size := range []int{3000, 0, payload.FragmentSize, 70_000} {
		data := bytes.Repeat([]byte{byte(frame), 2, 3}, size/3+1)[:size]
		before := len(s.outlet.sent())
		if err := j.Frame(payload.Descriptor{Quality: 1, Frame: uint32(frame)}, data, uint32(frame)*3000,
			r.now); err != nil {
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
	if err := j.Frame(payload.Descriptor{Frame: 9, Prefixed: true}, []byte{1}, 0, r.now); !errors.Is(err,
		payload.ErrFrame) {
		t.Errorf("a frame without its prefix: %v", err)
	}
}

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
func (r *rig) injectors(n int, i *ingress.Ingress) (all []*injection.Injector, tracks []*track.Track) {
	for range n {
		track := r.engine.NewTrack(track.Config{Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric,
			ClockRate: 90000}, Quality: 1})
		tracks = append(tracks, track)
		all = append(all, i.NewInjector(track, 16<<20))
	}
	return all, tracks
}

// TestChunksAreInjected sends frames in chunks, in any order, to a receiver.
func TestChunksAreInjected(t *testing.T) {
	r := newRig(t, nil)
	in := r.ingress(&fakePeer{})
	injectors, tracks := r.injectors(1, in)
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
	if used := r.engine.pieces.Used(); used != 0 {
		t.Errorf("%d bytes are held once all frames are whole", used)
	}
}
