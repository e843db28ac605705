package paper001

import (
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/movement"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestOwnMovement: both peers look at each other's tiles from many sides and heights, for the requested time.
func TestOwnMovement(t *testing.T) {
	tiling, err := pointcloud.NewTiling(danceTiles, volumetric.BoundingBox{Min: [3]float32{-0.4, 0, -0.4},
		Max: [3]float32{0.4, 1.7, 0.4}})
	if err != nil {
		t.Fatal(err)
	}
	p := defaultDance()
	left, err := p.path("", ownLeft)
	if err != nil {
		t.Fatal(err)
	}
	right, err := p.path("", ownRight)
	if err != nil {
		t.Fatal(err)
	}
	const length = 150 * time.Second
	left, right = looped(left, length), looped(right, length)
	for name, both := range map[string][2]movement.Path{"left": {left, right}, "right": {right, left}} {
		list := movement.Decisions(both[0], grounded(both[1]), tiling.Tiles(), danceQualities, length, looking)
		if len(list) < 75 {
			t.Errorf("%s: expected a decision about every two seconds, got %d in 150 s", name, len(list))
		}
		layers := make(map[int]int)
		for _, d := range list {
			for tile, q := range d.Qualities {
				if q == 1 {
					layers[tile/5]++
				}
			}
		}
		if layers[1] == 0 || layers[2] == 0 {
			t.Errorf("%s: expected the upper and the middle third to be closest at times, got %v", name, layers)
		}
		if last := list[len(list)-1].At; last < 140*time.Second {
			t.Errorf("%s: expected decisions up to the end, the last one is at %v", name, last)
		}
	}
}

func TestLooped(t *testing.T) {
	path, err := movement.Read(strings.NewReader(movement.Header + "\n0,1,0,0,0\n0.1,2,0,0,0\n"))
	if err != nil {
		t.Fatal(err)
	}
	long := looped(path, time.Second)
	for i := range long {
		if i > 0 && long[i].At <= long[i-1].At {
			t.Fatalf("expected times to grow, got %v after %v", long[i].At, long[i-1].At)
		}
	}
	if last := long[len(long)-1]; last.At < time.Second || last.X != 2 {
		t.Errorf("expected complete rounds for a second, the last is %+v", last)
	}
}

func TestValidate(t *testing.T) {
	if err := defaultDance().Validate(); err != nil {
		t.Errorf("expected the default dance to be valid, got %v", err)
	}
	if err := defaultSession().Validate(); err != nil {
		t.Errorf("expected the default session to be valid, got %v", err)
	}
	for name, change := range map[string]func(*session){
		"transport": func(s *session) { s.Transport = "pigeon" },
		"content":   func(s *session) { s.Content = "loot" },
		"tiles":     func(s *session) { s.Tiles = 3 },
		"level":     func(s *session) { s.Level = 8 },
		"decoder":   func(s *session) { s.DecoderQueue = 0 },
		"fps":       func(s *session) { s.FPS = 0 },
		"delay":     func(s *session) { s.Delay = time.Millisecond },
		"loss":      func(s *session) { s.Emulated, s.Loss = true, -1 },
	} {
		s := defaultSession()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("expected an error that names %s, got %v", name, err)
		}
	}
	for name, change := range map[string]func(*dance){
		"system":  func(d *dance) { d.System = "tango" },
		"content": func(d *dance) { d.Content = "loot" },
		"delay":   func(d *dance) { d.Delay = -1 },
		"segment": func(d *dance) { d.Segment = time.Second },
	} {
		d := defaultDance()
		change(&d)
		if err := d.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("expected an error that names %s, got %v", name, err)
		}
	}
}
