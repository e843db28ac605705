package realsense

import (
	"path/filepath"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
	"github.com/volsfu/volsfu/test/allocations"
	"github.com/volsfu/volsfu/test/race"
)

// TestConversionAllocatesNothing converts the library's images to pictures.
func TestConversionAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("skipped: with the race detector, pools forget what they hold")
	}
	library := rstest.Library(t)
	path := filepath.Join(t.TempDir(), "wall.db3")
	rstest.Wall(80).Record(t, library, path, 0)
	f, err := openFilm(library, path, Filters{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	var p picture
	next := func() {
		if got, err := f.next(&p); err != nil || !got {
			t.Fatalf("expected a picture, got %v, %v", got, err)
		}
	}
	next()
	// Two or three small allocations belong to the call for the timestamp: a function with a
	// floating-point result is called by reflection.
	if got := allocations.PerCall(20, next); got > 3 {
		t.Errorf("%v allocations per picture", got)
	}
	// The reader may stop while pictures are queued. So that close does not block forever, the rest
	// is read.
	for {
		if got, err := f.next(&p); err != nil || !got {
			return
		}
	}
}
