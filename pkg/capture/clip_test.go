package capture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// reel is a recording whose frame i has 10+i points, at x = i and y = 0, 1, 2 ….
type reel struct {
	frames int
	empty  bool
	broken map[int]error
	loads  atomic.Int64 // finished
	active atomic.Int64
	most   atomic.Int64
	gate   chan struct{} // if set, every load receives one value from it
	mutex  sync.Mutex
}

func (r *reel) Len() int { return r.frames }

func (r *reel) setBroken(index int, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.broken = map[int]error{index: err}
}

func (r *reel) Close() error { return nil }

func (r *reel) Load(index int, into *shot) error {
	active := r.active.Add(1)
	defer r.active.Add(-1)
	for most := r.most.Load(); active > most && !r.most.CompareAndSwap(most, active); most = r.most.Load() {
	}
	if r.gate != nil {
		<-r.gate
	}
	defer r.loads.Add(1)
	into.cloud.Reset()
	for i := range 10 + index {
		if !r.empty {
			into.cloud.Append([3]float32{float32(index), float32(i), 0}, [3]uint8{uint8(i), uint8(index), 7})
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.broken[index]
}

func TestClipPlaysTheSameFromMemoryAndFromFiles(t *testing.T) {
	const frames = 12
	expected := volumetric.BoundingBox{Max: [3]float32{frames - 1, 10 + frames - 2, 0}}
	numbers := []int64{0, 1, 2, 3, 4, 11, 12, 13, 20, 5, 36, 40, 41, 42, 1_000_000_007}
	var reference []pointcloud.Cloud
	for _, limit := range []int{1 << 20, 0, 60 * pointBytes} {
		r := &reel{frames: frames}
		clip, err := newClip(r, Options{MemoryLimit: limit, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		if clip.box != expected || clip.points != 10+frames-1 {
			t.Errorf("limit %d: box %v, largest frame %d", limit, clip.box, clip.points)
		}
		kept := 0
		for _, cloud := range clip.kept {
			if cloud != nil {
				kept += int(cloud.bytes())
			}
		}
		if kept > limit {
			t.Errorf("limit %d: kept %d bytes", limit, kept)
		}
		for i, number := range numbers {
			var frame Frame
			if err := clip.render(t.Context(), number, &frame); err != nil {
				t.Fatal(err)
			}
			cloud := frame.Cloud
			if limit == 1<<20 {
				reference = append(reference, cloud)
			} else if !slices.Equal(cloud.Positions, reference[i].Positions) ||
				!slices.Equal(cloud.Colors, reference[i].Colors) {
				t.Errorf("limit %d: frame %d differs from the one in memory", limit, number)
			}
			index := int(number % frames)
			if cloud.Len() != 10+index || cloud.Positions[0][0] != float32(index) {
				t.Errorf("limit %d: frame %d is not frame %d of the footage", limit, number, index)
			}
		}
		if err := clip.close(); err != nil {
			t.Error(err)
		}
		if limit == 1<<20 && r.loads.Load() != frames {
			t.Errorf("%d loads of %d frames that fit into memory", r.loads.Load(), frames)
		}
		if r.active.Load() != 0 {
			t.Errorf("limit %d: %d loads under way after close", limit, r.active.Load())
		}
		if most := r.most.Load(); most > readAheadFrames {
			t.Errorf("limit %d: %d loads at once, expected at most %d", limit, most, readAheadFrames)
		}
	}
}

func TestClipReadsAhead(t *testing.T) {
	r := &reel{frames: 10}
	clip, err := newClip(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.gate = make(chan struct{}, 100)
	before := r.loads.Load()
	for range readAheadFrames {
		r.gate <- struct{}{}
	}
	var frame Frame
	if err := clip.render(t.Context(), 0, &frame); err != nil {
		t.Fatal(err)
	}
	clip.ahead.wait()
	if got := r.loads.Load() - before; got != readAheadFrames {
		t.Errorf("one Read led to %d loads, expected %d", got, readAheadFrames)
	}
	// The next frame is available although the loads of later frames are blocked.
	if err := clip.render(t.Context(), 1, &frame); err != nil || frame.Cloud.Positions[0][0] != 1 {
		t.Errorf("frame 1: %v, error %v", frame.Cloud.Positions, err)
	}
	close(r.gate)
	if err := clip.close(); err != nil {
		t.Error(err)
	}
}

func TestClipStopsWaitingWithTheContext(t *testing.T) {
	r := &reel{frames: 10}
	clip, err := newClip(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.gate = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var frame Frame
	for _, number := range []int64{0, 5, 8} { // each leaves unused loads behind
		if err := clip.render(ctx, number, &frame); !errors.Is(err, context.Canceled) {
			t.Errorf("frame %d: got %v, expected %v", number, err, context.Canceled)
		}
	}
	close(r.gate)
	if err := clip.render(t.Context(), 5, &frame); err != nil || frame.Cloud.Positions[0][0] != 5 {
		t.Errorf("frame 5 afterwards: error %v", err)
	}
	if err := clip.close(); err != nil {
		t.Error(err)
	}
}

func TestClipErrors(t *testing.T) {
	broken := map[int]error{}
	for _, index := range []int{7, 3, 19} {
		broken[index] = fmt.Errorf("frame_%d.ply: torn", index)
	}
	for range 20 {
		if _, err := newClip(
			&reel{frames: 20, broken: broken},
			Options{},
		); err == nil ||
			!strings.Contains(err.Error(), "frame_3.ply") {
			t.Fatalf("three broken frames: got %v, expected the first one's error", err)
		}
	}
	if _, err := newClip(&reel{frames: 3, empty: true}, Options{}); !errors.Is(err, ErrNoPoints) {
		t.Errorf("empty frames: %v", err)
	}
	r := &reel{frames: 6}
	clip, err := newClip(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("frame_2.ply: gone")
	r.setBroken(2, gone)
	for number := range int64(12) {
		var frame Frame
		if err := clip.render(t.Context(), number, &frame); (number%6 == 2) != errors.Is(err, gone) {
			t.Errorf("frame %d while frame 2 is gone: %v", number, err)
		}
	}
	if err := clip.close(); err != nil {
		t.Error(err)
	}
}
