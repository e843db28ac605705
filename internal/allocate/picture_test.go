package allocate

import (
	"math"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// webcam returns the levels of a webcam, screen those of a screen.
func webcamLevels() []Level {
	return []Level{
		{Rate: 150e3, Pixels: 320 * 180, FrameRate: 15},
		{Rate: 500e3, Pixels: 640 * 360, FrameRate: 30},
		{Rate: 1700e3, Pixels: 1280 * 720, FrameRate: 30},
	}
}

func screenLevels() []Level {
	return []Level{
		{Rate: 300e3, Pixels: 960 * 540, FrameRate: 15},
		{Rate: 800e3, Pixels: 1920 * 1080, FrameRate: 5},
		{Rate: 2500e3, Pixels: 1920 * 1080, FrameRate: 30},
	}
}

// panel returns a picture on the default panel of its source, at a place in front of the eye at (0, 1.2, 0).
func panel(picture Picture, levels []Level, x, z float64) Object {
	source := volumetric.SourceCamera
	if picture == PictureScreen {
		source = volumetric.SourceScreen
	}
	return Object{
		Mode: volumetric.ModeAlternatives, Picture: picture, Pose: Pose{Position: [3]float64{x, 0, z}},
		Tiles: []Tile{{Box: volumetric.DefaultPanel(source), Levels: levels}},
	}
}

// TestPicturesHaveNoMorePixelsThanAreSeen raises a webcam as far as the pixels are seen.
func TestPicturesHaveNoMorePixelsThanAreSeen(t *testing.T) {
	a := newAllocator(t, nil)
	eye := eyeAt(0, 1.2, 0, 0)
	for _, c := range []struct {
		distance float64
		want     volumetric.Quality
	}{
		// The view has 4.5 million pixels at 90°. The panel of 0.36 m² has 1.6 million pixels at 0.5 m, 101,000 at 2 m
		// and 16,000 at 5 m.
		{0.5, 2}, {2, 1}, {5, 1},
	} {
		scene := Scene{Budget: Unlimited, Viewpoint: &eye,
			Objects: []Object{panel(PictureCamera, webcamLevels(), 0, -c.distance)}}
		if got := a.Allocate(&scene).Tiles[0][0].Quality(); got != c.want {
			t.Errorf("at %v m the quality is %d, want %d", c.distance, got, c.want)
		}
	}
	// The lowest quality suffices if the others have no more frames per second.
	levels := webcamLevels()
	for i := range levels {
		levels[i].FrameRate = 0
	}
	scene := Scene{Budget: Unlimited, Viewpoint: &eye, Objects: []Object{panel(PictureCamera, levels, 0, -5)}}
	if got := a.Allocate(&scene).Tiles[0][0].Quality(); got != 0 {
		t.Errorf("at 5 m the quality is %d, want 0", got)
	}
}

// TestValueOfPictures compares the shares of the value of cameras and screens.
func TestValueOfPictures(t *testing.T) {
	share := func(picture Picture, levels []Level, seen float64) []float64 {
		var l ladder
		tile := Tile{Levels: levels}
		l.read(volumetric.ModeAlternatives, &tile)
		l.readPicture(picture, &tile, seen)
		return l.detail[:len(levels)]
	}
	quarters := []Level{{Rate: 1e6, Pixels: 250e3}, {Rate: 4e6, Pixels: 1e6}}
	paces := []Level{{Rate: 1e6, Pixels: 1e6, FrameRate: 5}, {Rate: 4e6, Pixels: 1e6, FrameRate: 30}}
	coarse := []Level{{Rate: 1e6, Pixels: 1e6}, {Rate: 2e6, Pixels: 1e6}}
	unknown := []Level{{Rate: 1e6}, {Rate: 4e6, Pixels: 1e6}}
	for _, c := range []struct {
		name      string
		picture   Picture
		levels    []Level
		seen      float64
		low, high float64
	}{
		{"a quarter of a camera's pixels", PictureCamera, quarters, 0, 0.70, 0.76},
		{"the same, seen on fewer pixels", PictureCamera, quarters, 200e3, 1, 1},
		{"a quarter of a screen's pixels", PictureScreen, quarters, 0, 0.06, 0.065},
		{"the same, seen on half of the pixels", PictureScreen, quarters, 500e3, 0.25, 0.25},
		{"a sixth of a camera's frames", PictureCamera, paces, 0, 0.60, 0.68},
		{"a sixth of a screen's frames", PictureScreen, paces, 0, 0.89, 0.91},
		{"half of a camera's bits", PictureCamera, coarse, 0, 0.83, 0.85},
		{"a quarter of the bits of a camera without pixels", PictureCamera, unknown, 0, 0.70, 0.76},
	} {
		got := share(c.picture, c.levels, c.seen)
		if !(got[0] >= c.low && got[0] <= c.high) || math.Abs(got[1]-1) > 1e-9 {
			t.Errorf("%s: values are %v, want %v to %v and 1", c.name, got, c.low, c.high)
		}
	}
}

// TestScreenIsLegibleBeforeFiguresAreSharp gives a small budget to the screen and the webcams first: their pixels cost
// fewer bits than points.
func TestScreenIsLegibleBeforeFiguresAreSharp(t *testing.T) {
	a := newAllocator(t, nil)
	eye := eyeAt(0, 1.2, 0, 0)
	figure := Object{Mode: volumetric.ModeAlternatives, Pose: Pose{Position: [3]float64{1, 0, -2}}, Tiles: []Tile{{
		Box:    volumetric.BoundingBox{Min: [3]float32{-0.3, 0, -0.2}, Max: [3]float32{0.3, 1.7, 0.2}},
		Levels: doubling(4, 24e6),
	}}}
	scene := Scene{Budget: 8e6, Viewpoint: &eye, Objects: []Object{
		figure, panel(PictureScreen, screenLevels(), 0, -1.5), panel(PictureCamera, webcamLevels(), -1, -1.5),
	}}
	result := a.Allocate(&scene)
	if screen := result.Tiles[1][0].Quality(); screen < 1 {
		t.Errorf("the screen has quality %d, want its full resolution", screen)
	}
	if body := result.Tiles[0][0].Quality(); body < 0 {
		t.Error("the figure is off")
	}
	if camera := result.Tiles[2][0].Quality(); camera < 1 {
		t.Errorf("the webcam has quality %d, want 1 or more", camera)
	}
}

// TestBackOfPicture sends a picture that is seen from behind, or not at all, at the lowest quality.
func TestBackOfPicture(t *testing.T) {
	a := newAllocator(t, nil)
	eye := eyeAt(0, 1.2, 0, 0)
	behind := panel(PictureCamera, webcamLevels(), 0, -1)
	behind.Pose.Orientation = rotationBy(vector{0, math.Pi, 0})
	beside := panel(PictureCamera, webcamLevels(), 0, 1)
	beside.Pose.Orientation = rotationBy(vector{0, math.Pi, 0})
	scene := Scene{Budget: Unlimited, Viewpoint: &eye, Objects: []Object{behind, beside}}
	for i, decisions := range a.Allocate(&scene).Tiles {
		if d := decisions[0]; d.Quality() != 0 || d.Reason != ReasonUnseen {
			t.Errorf("picture %d has quality %d because of %v, want 0 because of unseen", i, d.Quality(), d.Reason)
		}
	}
}

// TestHeldPicture does not raise a picture that has just changed, and lowers it at once.
func TestHeldPicture(t *testing.T) {
	a := newAllocator(t, nil)
	eye := eyeAt(0, 1.2, 0, 0)
	scene := Scene{Budget: Unlimited, Viewpoint: &eye, Objects: []Object{panel(PictureCamera, webcamLevels(), 0, -0.5)}}
	tile := &scene.Objects[0].Tiles[0]
	tile.Current, tile.Held = Qualities(1), true
	result := a.Allocate(&scene)
	if got := result.Tiles[0][0].Quality(); got != 1 {
		t.Errorf("the held picture has quality %d, want 1", got)
	}
	if result.Wanted != 1700e3 {
		t.Errorf("wanted is %v, want the rate of the highest quality", result.Wanted)
	}
	scene.Budget = 200e3
	if got := a.Allocate(&scene).Tiles[0][0].Quality(); got != 0 {
		t.Errorf("with a smaller budget the held picture has quality %d, want 0", got)
	}
	scene.Budget, tile.Choice = Unlimited, Fixed(2)
	if got := a.Allocate(&scene).Tiles[0][0].Quality(); got != 2 {
		t.Errorf("the chosen quality is %d, want 2", got)
	}
}
