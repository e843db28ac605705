package decode

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// gated is a codec whose decoders signal their start and wait for permission to continue.
type gated struct {
	begun, proceed chan struct{}
}

var gate = gated{begun: make(chan struct{}), proceed: make(chan struct{})}

var registered = sync.OnceFunc(func() { codec.Register(gate) })

func (gated) FourCC() codec.FourCC      { return codec.FourCC{'g', 'a', 't', 'e'} }
func (gated) Name() string              { return "gated" }
func (gated) NewEncoder() codec.Encoder { return nil }

func (gated) Capabilities() codec.Capabilities { return codec.Capabilities{} }

func (g gated) NewDecoder() codec.Decoder {
	return g
}

func (g gated) Decode(cloud *pointcloud.Cloud, data []byte) error {
	g.begun <- struct{}{}
	<-g.proceed
	cloud.Reset()
	for range data {
		cloud.Append([3]float32{}, [3]uint8{})
	}
	return nil
}

func ref(tile int) volumetric.TrackRef {
	return volumetric.TrackRef{TileRef: volumetric.TileRef{Tile: tile}, Quality: volumetric.QualityOff}
}

func frame(tile int, number int64) client.Frame {
	return client.Frame{Track: ref(tile), Number: number, Codec: gate.FourCC(), Data: make([]byte, 3),
		Capture: time.Unix(number, 0)}
}

// TestNewestWins keeps a worker busy with tile 0 while frames of two tiles arrive.
func TestNewestWins(t *testing.T) {
	registered()
	pool := NewPool(1, true)
	submit := func(tile int, number int64, want int) {
		t.Helper()
		if got := pool.Submit(ref(tile), frame(tile, number)); got != want {
			t.Errorf("frame %d of tile %d superseded %d, expected %d", number, tile, got, want)
		}
	}
	submit(0, 1, 0)
	<-gate.begun
	submit(0, 2, 0)
	submit(1, 2, 0)
	submit(0, 4, 1)
	submit(0, 3, 1)
	submit(1, 3, 1)
	var got []int64
	for i := range 3 {
		gate.proceed <- struct{}{}
		r := <-pool.Results()
		if r.Err != nil || r.Points != 3 || r.Cloud.Len() != 3 || r.Decoded.IsZero() {
			t.Errorf("got result %+v", r)
		}
		got = append(got, int64(r.Frame.Track.Tile), r.Frame.Number)
		if i < 2 {
			<-gate.begun
		}
	}
	if want := [6]int64{0, 1, 0, 4, 1, 3}; [6]int64(got) != want {
		t.Errorf("expected tiles and frames %v, got %v", want, got)
	}
	if waited := pool.Close(); len(waited) != 0 {
		t.Errorf("%v waited, expected none", waited)
	}
	if _, open := <-pool.Results(); open {
		t.Error("expected no more results")
	}
}

// TestRestart checks that after a restart, lower numbers with later capture times are newer.
func TestRestart(t *testing.T) {
	registered()
	pool := NewPool(1, false)
	pool.Submit(ref(0), frame(0, 899))
	<-gate.begun
	pool.Submit(ref(0), frame(0, 900))
	again := frame(0, 1)
	again.Capture = time.Unix(1000, 0)
	if pool.Submit(ref(0), again) != 1 {
		t.Error("expected the old frame to be superseded")
	}
	gate.proceed <- struct{}{}
	<-pool.Results()
	<-gate.begun
	gate.proceed <- struct{}{}
	if r := <-pool.Results(); r.Frame.Number != 1 || r.Cloud != nil {
		t.Errorf("expected frame 1 without its cloud, got %+v", r)
	}
	pool.Close()
}

func TestCloseDropsWaitingFrames(t *testing.T) {
	registered()
	pool := NewPool(1, false)
	pool.Submit(ref(0), frame(0, 1))
	<-gate.begun
	pool.Submit(ref(0), frame(0, 2))
	pool.Submit(ref(1), frame(1, 2))
	if waited := pool.Close(); len(waited) != 2 || waited[ref(0)] != 1 || waited[ref(1)] != 1 {
		t.Errorf("%v waited, expected one frame of each tile", waited)
	}
	if pool.Submit(ref(2), frame(2, 1)) != 1 {
		t.Error("expected a closed pool to supersede what is submitted")
	}
	gate.proceed <- struct{}{}
	if r, open := <-pool.Results(); !open || r.Frame.Number != 1 {
		t.Errorf("expected the frame under way, got %+v", r)
	}
	if _, open := <-pool.Results(); open {
		t.Error("expected no more results")
	}
}

func TestErrors(t *testing.T) {
	pool := NewPool(2, true)
	unknown, malformed, empty := frame(0, 1), frame(1, 1), frame(2, 1)
	unknown.Codec = codec.FourCC{'n', 'o', 'n', 'e'}
	malformed.Codec = codec.Raw.FourCC()
	empty.Codec, empty.Data = unknown.Codec, nil
	for _, f := range []client.Frame{unknown, malformed, empty} {
		pool.Submit(f.Track, f)
	}
	want := []error{codec.ErrUnknown, codec.ErrMalformed, nil}
	for range want {
		r := <-pool.Results()
		if !errors.Is(r.Err, want[r.Frame.Track.Tile]) || r.Points != 0 || (r.Err == nil) != (r.Cloud != nil) {
			t.Errorf("tile %d: expected %v, got %+v", r.Frame.Track.Tile, want[r.Frame.Track.Tile], r)
		}
	}
	pool.Close()
}
