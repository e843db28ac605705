package production

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/webp"
)

// TestRasterFlags checks the flags of codec rgbd.
func TestRasterFlags(t *testing.T) {
	for line, want := range map[string]error{
		"": nil,
		"--tiling raster --tiles 9 --qualities a=1/4,b=1/1:1mm:90": nil,
		"--qualities a=1Mbit,b=5Mbit/s":                            nil,
		"--tiles 3":                                                codec.ErrParams,
		"--tiling direction":                                       errCloudFlag,
		"--mode descriptions":                                      errCloudFlag,
		"--points 1000":                                            errCloudFlag,
		"--sampling voxels":                                        errCloudFlag,
		"--label-tiles a=1":                                        errCloudFlag,
		"--color-quality 80":                                       errCloudFlag,
		"--audience 0,1,2 --regions 1,1":                           errCloudFlag,
		"--qualities a=25%:9":                                      ladder.ErrSyntax,
		"--qualities a=5Mbit:11":                                   ladder.ErrSyntax,
		"--codec parts:rgbd:2":                                     codec.ErrUnknown,
		"--codec labels:rgbd":                                      codec.ErrUnknown,
		"--codec raw --tiling raster":                              errRaster,
		"--codec raw --color-format webp":                          errColors,
		"--color-format png":                                       errColors,
		"--color-format webp":                                      webp.Available(),
	} {
		o := DefaultOptions()
		f := pflag.NewFlagSet("publish", pflag.ContinueOnError)
		o.Flags(f, 40000)
		o.PublishFlags(f)
		if err := f.Parse(append([]string{"--source", "rgbd:recording", "--codec", "rgbd"},
			strings.Fields(line)...)); err != nil {
			t.Fatal(err)
		}
		settings, err := o.Settings(slog.New(slog.DiscardHandler))
		if errors.Is(want, webp.ErrUnavailable) {
			want = webp.ErrUnavailable
		}
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", line, err, want)
		}
		if want == nil && (settings.Rasters == nil || !o.Capture.Rasters || o.Capture.Points != 0) {
			t.Errorf("%q: no rasters are captured: %+v", line, settings.Rasters)
		}
	}
}

// TestLooks checks that the looks of the synthetic figure follow from the identity unless there is a seed.
func TestLooks(t *testing.T) {
	seeds := make(map[int]string)
	for _, name := range []string{"alice", "bob", "carol"} {
		for line, taken := range map[string]bool{"": true, "--seed 0": false, "--seed 5": false,
			"--source ply:folder": false} {
			o := DefaultOptions()
			f := pflag.NewFlagSet("publish", pflag.ContinueOnError)
			o.Flags(f, 40000)
			if err := f.Parse(strings.Fields(line)); err != nil {
				t.Fatal(err)
			}
			before := o.Capture.Seed
			o.TakeLooksFrom(name)
			again := o
			again.TakeLooksFrom("someone else")
			switch {
			case !taken && o.Capture.Seed != before:
				t.Errorf("%q: the seed becomes %d", line, o.Capture.Seed)
			case !taken:
				continue
			case seeds[o.Capture.Seed] != "" || o.Capture.Seed <= 0 || again.Capture.Seed != o.Capture.Seed:
				t.Errorf("%s and %s have the seed %d, then %d", name, seeds[o.Capture.Seed], o.Capture.Seed,
					again.Capture.Seed)
			}
			seeds[o.Capture.Seed] = name
		}
	}
}
