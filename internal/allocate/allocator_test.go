package allocate

import (
	"fmt"
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// describe prints decisions as one word per tile, object by object: the qualities and the reason.
func describe(result Result) string {
	var words []string
	for _, object := range result.Tiles {
		for _, d := range object {
			word := ""
			for q := range d.Qualities.Each {
				word += fmt.Sprint(int(q))
			}
			if word == "" {
				word = "off"
			}
			words = append(words, word+":"+d.Reason.String())
		}
	}
	return fmt.Sprint(words)
}

// ahead is an object of cubes of 40 cm side by side, 3 m in front of an eye at the origin.
func ahead(tiles, levels int, top volumetric.Bitrate) Object {
	object := Object{Mode: volumetric.ModeAlternatives}
	for i := range tiles {
		object.Tiles = append(object.Tiles, Tile{Box: cube(0.4*(float32(i)-float32(tiles-1)/2), 0, -3, 0.4),
			Levels: doubling(levels, top)})
	}
	return object
}

func TestChoicesComeFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		budget  volumetric.Bitrate
		choices []Choice
		want    string
	}{
		{"all that is wanted", Unlimited, []Choice{{}, Fixed(1), Fixed(volumetric.QualityOff)},
			"[2:auto 1:choice off:choice]"},
		{"the others get the remainder", 5e6, []Choice{{}, Fixed(2), {}}, "[0:auto 2:choice off:budget]"},
		{"lowered", 3.5e6, []Choice{{}, Fixed(2), {}}, "[0:auto 1:budget off:budget]"},
		{"lowered together", 4e6, []Choice{Fixed(2), Fixed(2), {}}, "[1:budget 1:budget off:budget]"},
		{"nothing fits", 0.5e6, []Choice{{}, Fixed(2), {}}, "[off:budget 0:budget off:budget]"},
		{"nothing at all", -5, []Choice{{}, Fixed(0), Fixed(volumetric.QualityOff)},
			"[off:budget 0:budget off:choice]"},
		{"beyond the highest", Unlimited, []Choice{Fixed(7), Fixed(63), Descriptions(Qualities(0, 1))},
			"[2:choice 2:choice 1:choice]"},
	} {
		a := newAllocator(t, nil)
		scene := Scene{Budget: c.budget, Objects: []Object{ahead(3, 3, 4e6)}}
		for i, choice := range c.choices {
			scene.Objects[0].Tiles[i].Choice = choice
		}
		if got := describe(a.Allocate(&scene)); got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}

func TestOneTileIsSentIfNothingFits(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	off := Fixed(volumetric.QualityOff)
	for _, c := range []struct {
		name    string
		eye     *Viewpoint
		choices []Choice
		scale   float64 // of the second object, at the same distance
		current string
		want    string
	}{
		{"equals", nil, []Choice{{}, {}}, 1, "", "[0:budget off:budget]"},
		{"the larger one", &eye, []Choice{{}, {}}, 1.5, "", "[off:budget 0:budget]"},
		{"the one that is chosen", &eye, []Choice{Fixed(2), {}}, 1.5, "", "[0:budget off:budget]"},
		{"a paused track stays paused", &eye, []Choice{{}, off}, 1.5, "", "[0:budget off:choice]"},
		{"nothing is wanted", &eye, []Choice{off, off}, 1, "", "[off:choice off:choice]"},
		{"the one that goes on already, of about the same worth", &eye, []Choice{{}, {}}, 0.97, "second",
			"[off:budget 0:budget]"},
		{"one of much more worth", &eye, []Choice{{}, {}}, 0.8, "second", "[0:budget off:budget]"},
	} {
		for _, strategy := range Strategies() {
			a := newAllocator(t, func(cfg *Config) { cfg.Strategy = strategy })
			scene := Scene{Budget: 0.9e6, Viewpoint: c.eye, Objects: []Object{ahead(1, 3, 4e6), ahead(1, 3, 4e6)}}
			// Scaling is relative to the middle of the room, so the second object is moved back to its place.
			scene.Objects[1].Pose = Pose{Scale: c.scale, Position: [3]float64{0, 0, -3 * (1 - c.scale)}}
			for i, choice := range c.choices {
				scene.Objects[i].Tiles[0].Choice = choice
			}
			if c.current == "second" {
				scene.Objects[1].Tiles[0].Current = Qualities(0)
			}
			if got := describe(a.Allocate(&scene)); got != c.want {
				t.Errorf("%s, %s: %s, expected %s", c.name, strategy, got, c.want)
			}
		}
	}
}

// TestTheLastTileRises checks that the tile that is sent although nothing fits is raised when there is a budget again,
// and that its rate is reported meanwhile.
func TestTheLastTileRises(t *testing.T) {
	a := newAllocator(t, nil)
	scene := Scene{Objects: []Object{ahead(2, 3, 4e6)}}
	for _, c := range []struct {
		budget volumetric.Bitrate
		want   string
		rate   volumetric.Bitrate
	}{
		{8e6, "[2:auto 2:auto]", 8e6}, {0, "[0:budget off:budget]", 1e6}, {0.5e6, "[0:budget off:budget]", 1e6},
		{1e6, "[0:auto off:budget]", 1e6},
		{2.2e6, "[0:auto 0:auto]", 2e6}, {0.7e6, "[0:budget off:budget]", 1e6},
	} {
		scene.Budget = c.budget
		result := a.Allocate(&scene)
		if got := describe(result); got != c.want || result.Rate != c.rate || result.Wanted != 8e6 {
			t.Errorf("%v: %s takes %v of %v, expected %s, %v", c.budget, got, result.Rate, result.Wanted,
				c.want, c.rate)
		}
		keep(&scene, result)
	}
}

func TestChoiceThatBarelyFitsIsNotTakenBackAndForth(t *testing.T) {
	a := newAllocator(t, nil)
	scene := Scene{Objects: []Object{ahead(1, 3, 4e6)}}
	scene.Objects[0].Tiles[0].Choice = Fixed(2)
	for _, c := range []struct {
		budget volumetric.Bitrate
		want   string
	}{
		{4.02e6, "[2:choice]"}, {3.98e6, "[1:budget]"}, {4.02e6, "[1:budget]"}, {4.1e6, "[2:choice]"},
		{4e6, "[2:choice]"},
	} {
		scene.Budget = c.budget
		result := a.Allocate(&scene)
		if got := describe(result); got != c.want {
			t.Errorf("%v: %s, expected %s", c.budget, got, c.want)
		}
		keep(&scene, result)
	}
}

func TestWithoutMargin(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	a := newAllocator(t, func(c *Config) { c.View.EdgeDegrees = 0 })
	scene := Scene{Budget: 4.5e6, Viewpoint: &eye, Objects: []Object{ahead(1, 3, 4e6), ahead(1, 3, 4e6)}}
	// A degree beyond the edge.
	scene.Objects[1].Pose = Pose{Orientation: rotationBy(vector{0, (45 + 4 + 1) * math.Pi / 180, 0})}
	if got := describe(a.Allocate(&scene)); got != "[2:auto off:unseen]" {
		t.Errorf("%s", got)
	}
}

func TestUnseenTiles(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	scene := Scene{Viewpoint: &eye, Objects: []Object{ahead(2, 3, 4e6), ahead(2, 3, 4e6)}}
	// The second object is behind the viewer.
	scene.Objects[1].Pose.Position[2] = 6
	for _, c := range []struct {
		budget volumetric.Bitrate
		want   string
	}{
		{1.5e6, "[0:auto off:budget off:unseen off:unseen]"},
		{3e6, "[1:auto 0:auto off:unseen off:unseen]"},
		{8e6, "[2:auto 2:auto off:unseen off:unseen]"},
		{10e6, "[2:auto 2:auto 0:unseen 0:unseen]"},
		{16e6, "[2:auto 2:auto 0:unseen 0:unseen]"},
	} {
		scene.Budget = c.budget
		if got := describe(newAllocator(t, nil).Allocate(&scene)); got != c.want {
			t.Errorf("%v: %s, expected %s", c.budget, got, c.want)
		}
	}
}

func TestTilesNearTheViewAreSent(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	scene := Scene{Viewpoint: &eye, Objects: []Object{ahead(1, 3, 4e6), ahead(1, 3, 4e6)}}
	for _, c := range []struct {
		beyond float64 // the edge of the view at 45°, in degrees
		budget volumetric.Bitrate
		want   string
	}{
		{0, 5e6, "[2:auto 0:auto]"}, {8, 5e6, "[2:auto 0:auto]"}, {90, 4.5e6, "[2:auto off:unseen]"},
		{8, 4.5e6, "[2:auto off:budget]"}, {8, 8e6, "[2:auto 2:auto]"},
	} {
		// The corners of a cube of 40 cm at 3 m are 4° beside its middle.
		scene.Objects[1].Pose = Pose{Orientation: rotationBy(vector{0, (45 + 4 + c.beyond) * math.Pi / 180, 0})}
		scene.Budget = c.budget
		if got := describe(newAllocator(t, nil).Allocate(&scene)); got != c.want {
			t.Errorf("%v° beyond the edge, %v: %s, expected %s", c.beyond, c.budget, got, c.want)
		}
	}
}

func TestWorth(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	far := ahead(1, 3, 4e6)
	far.Pose.Position[2] = -17
	behind := ahead(1, 3, 4e6)
	behind.Tiles[0].Box = cube(0, 0, -3, 0.4)
	behind.Tiles = append(behind.Tiles, Tile{Box: cube(0, 0, -4, 0.6), Levels: doubling(3, 4e6)})
	favoured := ahead(1, 3, 4e6)
	favoured.Priority = 3
	unknown := ahead(1, 3, 4e6)
	unknown.Tiles[0].Box = volumetric.BoundingBox{}
	for _, c := range []struct {
		name    string
		eye     *Viewpoint
		objects []Object
		want    string // at 6 Mbit/s
	}{
		{"equals", &eye, []Object{ahead(1, 3, 4e6), ahead(1, 3, 4e6)}, "[2:auto 1:auto]"},
		{"near and far", &eye, []Object{far, ahead(1, 3, 4e6)}, "[1:auto 2:auto]"},
		{"in front and behind", &eye, []Object{behind}, "[2:auto 1:auto]"},
		{"priority", &eye, []Object{ahead(1, 3, 4e6), favoured}, "[1:auto 2:auto]"},
		{"unknown box", &eye, []Object{ahead(1, 3, 4e6), unknown}, "[1:auto 2:auto]"},
		{"no viewpoint", nil, []Object{far, ahead(1, 3, 4e6)}, "[2:auto 1:auto]"},
		{"no viewpoint, priority", nil, []Object{far, favoured}, "[1:auto 2:auto]"},
	} {
		scene := Scene{Budget: 6e6, Viewpoint: c.eye, Objects: c.objects}
		if got := describe(newAllocator(t, nil).Allocate(&scene)); got != c.want {
			t.Errorf("%s: %s, expected %s", c.name, got, c.want)
		}
	}
}

func TestPointsBeyondTheScreenAreWorthLittle(t *testing.T) {
	eye := eyeAt(0, 0, 0, 0)
	a := newAllocator(t, nil)
	share := func(points volumetric.Bitrate) float64 {
		scene := Scene{Budget: Unlimited, Viewpoint: &eye, Objects: []Object{ahead(1, 3, points*bitsPerPoint)}}
		a.Allocate(&scene)
		return a.options[1].utility / a.options[3].utility
	}
	// The cube covers 0.45 % of the view, 20,000 pixels.
	if few, many := share(1000), share(80_000); few < 0.34 || few > 0.37 || many < 0.65 {
		t.Errorf("a quarter of the points is worth %.3f where they are few and %.3f where they are many", few, many)
	}
}

func TestRates(t *testing.T) {
	a := newAllocator(t, nil)
	scene := Scene{Budget: 5e6, Objects: []Object{ahead(2, 3, 4e6)}}
	result := a.Allocate(&scene)
	if got := describe(result); got != "[2:auto 0:auto]" || result.Rate != 5e6 || result.Wanted != 8e6 {
		t.Errorf("%s: rate %v, wanted %v", got, result.Rate, result.Wanted)
	}
	// The next step is made if it leaves the reserve, at 6e6 / (1 - 0.02), and not below.
	keep(&scene, result)
	const next = 6_122_449
	for budget, want := range map[volumetric.Bitrate]volumetric.Bitrate{next - 1: 5e6, next: 6e6} {
		scene.Budget = budget
		if got := a.Allocate(&scene).Rate; got != want {
			t.Errorf("budget %d: %d bit/s, expected %d", budget, got, want)
		}
	}
	scene.Budget = Unlimited
	if result := a.Allocate(&scene); result.Rate != 8e6 {
		t.Errorf("without limit: rate %v", result.Rate)
	}
	// The choice comes first.
	scene.Objects[0].Tiles[1].Choice = Fixed(2)
	scene.Budget = 3.5e6
	for i := range scene.Objects[0].Tiles {
		scene.Objects[0].Tiles[i].Current = 0
	}
	if result := a.Allocate(&scene); result.Wanted != 8e6 {
		t.Errorf("chosen and lowered: %s, wanted %v", describe(result), result.Wanted)
	}
}

func TestAllocateDoesNotAllocate(t *testing.T) {
	for _, strategy := range Strategies() {
		a := newAllocator(t, func(c *Config) { c.Strategy = strategy })
		scene := meeting(20, 15, 3)
		scene.Objects[3].Mode = volumetric.ModeDescriptions
		scene.Objects[4].Tiles[2].Choice = Fixed(2)
		eye := eyeAt(0, 1.6, 0, 0)
		scene.Viewpoint = &eye
		degrees := 0.0
		turn := func() {
			degrees += 7
			eye = eyeAt(0, 1.6, 0, degrees)
			scene.Budget = volumetric.Bitrate(50e6 + 40e6*degrees/1000)
			keep(&scene, a.Allocate(&scene))
			if degrees > 1000 {
				degrees = 0
			}
		}
		for range 150 {
			turn()
		}
		if n := testing.AllocsPerRun(50, turn); n != 0 {
			t.Errorf("%s: %v allocations per call", strategy, n)
		}
	}
	b, err := NewBudget(DefaultConfig().Budget)
	if err != nil {
		t.Fatal(err)
	}
	var p Predictor
	if n := testing.AllocsPerRun(100, func() {
		p.Observe(eyeAt(0, 0, 0, 0))
		p.Predict(epoch)
		b.Step(epoch, 1e6, BudgetInput{})
	}); n != 0 {
		t.Errorf("budget and predictor: %v allocations", n)
	}
}
