package production

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// lookedAt returns the settings of volpeer publish with a line of flags.
func lookedAt(t *testing.T, line string) (*Options, Settings, error) {
	t.Helper()
	p := DefaultOptions()
	f := pflag.NewFlagSet("publish", pflag.ContinueOnError)
	p.PublishFlags(f)
	if err := f.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	p.Source, p.Mode, p.Name, p.Qualities, p.Tiling, p.Codec = "synthetic", "alternatives", "body", "all=100%:9",
		"direction", "raw"
	p.Capture.Points, p.Capture.FPS = 2000, 100
	settings, err := p.Settings(slog.New(slog.DiscardHandler))
	return &p, settings, err
}

// TestPublishForAnAudience checks that parts that an audience sees less well have fewer points.
func TestPublishForAnAudience(t *testing.T) {
	for line, want := range map[string]struct{ least, most int }{
		"": {2000, 2000},
		// The figure is 1.8 m tall and stands at the origin.
		"--audience 0,0.9,20 --detail-distance 10 --detail-least 0":    {350, 700},
		"--audience 0,0.9,100 --detail-distance 1 --detail-least 0.25": {400, 600},
		"--audience 0,0.9,3 --regions 1,0.5,0.25 --region-angle 30":    {200, 1900},
	} {
		p, settings, err := lookedAt(t, line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		source, err := capture.Open(p.Source, p.Capture)
		if err != nil {
			t.Fatal(err)
		}
		if settings.audience != nil {
			if source, err = settings.audience.before(source); err != nil {
				t.Fatal(err)
			}
		}
		var frame capture.Frame
		if err := source.Read(t.Context(), &frame); err != nil {
			t.Fatal(err)
		}
		if n := frame.Cloud.Len(); n < want.least || n > want.most {
			t.Errorf("%q: %d of 2,000 points, expected %d to %d", line, n, want.least, want.most)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAudienceFlags(t *testing.T) {
	for line, want := range map[string]error{
		"--audience 0,1,2":                                errAudience,
		"--regions 1":                                     errAudience,
		"--detail-distance 3":                             errAudience,
		"--audience 0,1 --regions 1":                      errPlace,
		"--audience 0,1,far --regions 1":                  errPlace,
		"--audience 0,1,2e9 --regions 1":                  errPlace,
		"--audience 0,1,2 --regions 1,2":                  pointcloud.ErrView,
		"--audience 0,1,2 --regions 1,a":                  pointcloud.ErrView,
		"--audience 0,1,2 --detail-distance -1":           pointcloud.ErrDetail,
		"--audience 0,1,2 --regions= --detail-distance 1": nil,
	} {
		if _, _, err := lookedAt(t, line); !errors.Is(err, want) {
			t.Errorf("%q: %v, expected %v", line, err, want)
		}
	}
}
