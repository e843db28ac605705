package produce

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// fakeSource returns a frame, or an error, for every step that the test allows. Colours encode the point and the frame.
type fakeSource struct {
	points int
	steps  chan error
	read   int
}

func newFakeSource(points int) *fakeSource {
	return &fakeSource{points: points, steps: make(chan error, 1000)}
}

func (s *fakeSource) Info() capture.Info {
	return capture.Info{FrameRate: 30, Box: box, Points: s.points}
}

func (s *fakeSource) Read(ctx context.Context, frame *capture.Frame) error {
	select {
	case err := <-s.steps:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	s.read++
	frame.Number, frame.Capture = int64(s.read), time.Unix(int64(s.read), 0)
	frame.Cloud.Reset()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range s.points {
		p := [3]float32{random.Float32()*2 - 1, random.Float32() * 2, random.Float32()*2 - 1}
		frame.Cloud.Append(p, [3]uint8{uint8(i), uint8(i >> 8), uint8(s.read)})
	}
	return nil
}

// fakeSink decodes the frames.
type fakeSink struct {
	mu     sync.Mutex
	frames map[[2]int][]received
	refuse error
	// enter, if not nil, receives a message at the beginning of every call, which then waits for leave.
	enter, leave chan struct{}
	wrote        chan struct{}
	// unwanted has the tiles and qualities without a receiver, gaveUp those that the network cannot carry.
	unwanted, gaveUp map[[2]int]bool
}

type received struct {
	number  uint32
	capture time.Time
	cloud   pointcloud.Cloud
}

func newFakeSink() *fakeSink {
	return &fakeSink{frames: make(map[[2]int][]received), wrote: make(chan struct{}, 10000)}
}

// set sets unwanted and gaveUp.
func (s *fakeSink) set(unwanted, gaveUp map[[2]int]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unwanted, s.gaveUp = unwanted, gaveUp
}

func (s *fakeSink) Wanted(tile int, q volumetric.Quality) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := [2]int{tile, int(q)}
	return !s.unwanted[key] && !s.gaveUp[key]
}

func (s *fakeSink) GaveUp(tile int, q volumetric.Quality) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gaveUp[[2]int{tile, int(q)}]
}

func (s *fakeSink) WriteFrame(tile int, q volumetric.Quality, f client.OutgoingFrame) (bool, error) {
	if s.enter != nil {
		s.enter <- struct{}{}
		<-s.leave
	}
	r := received{number: f.Number, capture: f.Capture}
	c, err := codec.ByFourCC(f.Codec)
	if err == nil {
		err = c.NewDecoder().Decode(&r.cloud, f.Data)
	}
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return false, s.refuse
	}
	key := [2]int{tile, int(q)}
	s.frames[key] = append(s.frames[key], r)
	s.wrote <- struct{}{}
	return !s.unwanted[key] && !s.gaveUp[key], nil
}
