package browser

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/test/long"
)

// size is the size of a picture in pixels.
type size struct{ Width, Height int }

// TestWebcamAndScreen has a page publish its webcam and its screen: another page shows moving pictures of one of the
// encoded sizes on panels, receives the quality that its user chooses, and removes the panels of pictures that have
// ended.
func TestWebcamAndScreen(t *testing.T) {
	visitPictures(t, "VP8", "")
}

// TestWebcamAndScreenH264 is TestWebcamAndScreen with H264. An enlarged screen has all its pixels.
func TestWebcamAndScreenH264(t *testing.T) {
	long.Test(t)
	visitPictures(t, "H264", "long")
}

func visitPictures(t *testing.T, codec, extent string) {
	t.Helper()
	tools(t)
	fakeDevices(t)
	s := start(t, nil)
	v := begin(t, "pictures.mjs", pageURL(s), codec, extent)
	var webcam, screen struct {
		Encodings [][2]int
		Seen      size
		Codecs    []string
		Order     []string
		InView    bool
	}
	v.expect("webcam", &webcam)
	if !slices.Contains(webcam.Encodings, [2]int{webcam.Seen.Width, webcam.Seen.Height}) || len(webcam.Encodings) < 2 {
		t.Errorf("the webcam is seen at %v, expected one of at least two: %v", webcam.Seen, webcam.Encodings)
	}
	if !slices.Equal(webcam.Codecs, []string{"video/" + codec}) {
		t.Errorf("the webcam is received as %v, expected %s", webcam.Codecs, codec)
	}
	var lowest size
	v.expect("lowest", &lowest)
	if lowest.Width != webcam.Encodings[0][0] {
		t.Errorf("the lowest quality is seen at %v, expected %v", lowest, webcam.Encodings[0])
	}
	var inspector struct{ Row string }
	v.expect("inspector", &inspector)
	if !strings.Contains(inspector.Row, "×") {
		t.Errorf("the inspector shows %q, expected the pixels", inspector.Row)
	}
	v.expect("screen", &screen)
	if !slices.Contains(screen.Encodings, [2]int{screen.Seen.Width, screen.Seen.Height}) {
		t.Errorf("the screen is seen at %v, expected one of %v", screen.Seen, screen.Encodings)
	}
	if !slices.Equal(screen.Order, []string{"screen", "webcam"}) {
		t.Errorf("the panels are %v, expected the screen and then the webcam", screen.Order)
	}
	if !screen.InView {
		t.Error("a panel is outside the view from the seat")
	}
	if extent != "" {
		v.expect("enlarged", nil)
	}
	var returned struct{ Seat, Near, Back [3]float64 }
	v.expect("returned", &returned)
	if distance(returned.Seat, returned.Near) < 0.3 || distance(returned.Seat, returned.Back) > 0.01 {
		t.Errorf("from the seat at %v the eye moves to %v and back to %v, expected to the panel and to the seat",
			returned.Seat, returned.Near, returned.Back)
	}
	var ended struct{ Track, Notes string }
	v.expect("ended", &ended)
	if ended.Track != "ended" || ended.Notes != "" {
		t.Errorf("the webcam is %q with the note %q, expected to be given back without a note",
			ended.Track, ended.Notes)
	}
	v.expect("done", nil)
}

func distance(a, b [3]float64) float64 {
	return math.Hypot(math.Hypot(a[0]-b[0], a[1]-b[1]), a[2]-b[2])
}

// fakeDevices lets browsers of the test have a webcam, a microphone and a screen with moving test pictures, which are
// permitted without a question.
func fakeDevices(t *testing.T) {
	t.Helper()
	t.Setenv("CHROMIUM_ARGUMENTS", strings.Join([]string{
		os.Getenv("CHROMIUM_ARGUMENTS"), "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
	}, " "))
}
