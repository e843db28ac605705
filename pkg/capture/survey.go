package capture

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// survey loads every frame of a clip once, on all processors. The goroutines process the frames in order, and each has
// its own findings.
type survey struct {
	clip   *clip
	memory int64        // bytes that may be kept
	used   atomic.Int64 // bytes kept so far
	next   atomic.Int64 // first frame that no goroutine has started
}

// findings contains the results of one goroutine.
type findings struct {
	box    volumetric.BoundingBox
	points int // of the largest frame
	failed int // frame that caused err
	err    error
}

// run returns the results for all frames. If several frames are broken, it reports the first:
// earlier frames had been started before the failure.
func (s *survey) run() findings {
	workers := make([]findings, min(runtime.GOMAXPROCS(0), len(s.clip.kept)))
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() { workers[w] = s.work() })
	}
	group.Wait()
	var all findings
	for _, f := range workers {
		if f.err != nil && (all.err == nil || f.failed < all.failed) {
			all.err, all.failed = f.err, f.failed
		}
		all.include(f.box, f.points)
	}
	return all
}

func (s *survey) work() findings {
	var found findings
	var loaded shot
	for {
		index := int(s.next.Add(1)) - 1
		if index >= len(s.clip.kept) {
			return found
		}
		if err := s.clip.load(index, &loaded); err != nil {
			found.failed, found.err = index, err
			s.next.Store(int64(len(s.clip.kept)))
			return found
		}
		found.include(loaded.cloud.Bounds(), loaded.cloud.Len())
		size := loaded.bytes()
		if s.used.Add(size) <= s.memory {
			s.clip.kept[index] = new(shot)
			s.clip.kept[index].copyFrom(&loaded)
		} else {
			s.used.Add(-size)
		}
	}
}

// include adds points and the box around them. Without points the box is ignored.
func (f *findings) include(box volumetric.BoundingBox, points int) {
	switch {
	case points == 0:
		return
	case f.points == 0:
		f.box = box
	}
	for axis := range 3 {
		f.box.Min[axis] = min(f.box.Min[axis], box.Min[axis])
		f.box.Max[axis] = max(f.box.Max[axis], box.Max[axis])
	}
	f.points = max(f.points, points)
}
