package realsense

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// Config selects cameras and settings. The zero value is DefaultConfig except for the size and rate
// of the images.
type Config struct {
	// Library is the file of librealsense2. If empty, it is searched for, see rs2.Load.
	Library string
	// Serials are the serial numbers of the cameras, in the order of their bits in
	// pointcloud.Cloud.Sources. If empty, all connected cameras are used, sorted.
	Serials []string
	// Width, Height and FPS apply to both depth and colour. Recordings have their own.
	Width, Height, FPS int
	Filters            Filters
	// Record is the file for recording every frame before Filters. With several cameras, the serial
	// number precedes its extension; after each return of a camera, a number is added.
	Record string
	// Calibration has the poses of cameras, by serial number.
	Calibration depth.Calibration
	// Log receives messages about lost and returned cameras; nil disables them.
	Log *slog.Logger
}

// DefaultConfig returns settings that suit most cameras of the D400 family: depth at its native
// aspect ratio.
func DefaultConfig() Config { return Config{Width: 848, Height: 480, FPS: 30} }

func (c Config) validate() error {
	switch {
	case c.Width < 1 || c.Height < 1 || c.Width > depth.MaxPixels/c.Height:
		return fmt.Errorf("%w: size is %dx%d, expected for instance 848x480", ErrConfig, c.Width, c.Height)
	case c.FPS < 1:
		return fmt.Errorf("%w: frame rate is %d, expected for instance 30", ErrConfig, c.FPS)
	case len(c.Serials) > depth.MaxCameras:
		return fmt.Errorf("%w: %d cameras, expected at most %d", ErrConfig, len(c.Serials), depth.MaxCameras)
	}
	for i, serial := range c.Serials {
		if serial == "" || slices.Contains(c.Serials[:i], serial) {
			return fmt.Errorf("%w: serial numbers are %q, expected each once", ErrConfig, c.Serials)
		}
	}
	return nil
}

func (c Config) log() *slog.Logger {
	if c.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Log
}

// ParseSize reads WIDTHxHEIGHT.
func ParseSize(text string) (width, height int, err error) {
	before, after, ok := strings.Cut(text, "x")
	if ok {
		if width, err = strconv.Atoi(before); err == nil {
			height, err = strconv.Atoi(after)
		}
	}
	if !ok || err != nil || width < 1 || height < 1 {
		return 0, 0, fmt.Errorf("%w: size is %.32q, expected WIDTHxHEIGHT such as 848x480", ErrConfig, text)
	}
	return width, height, nil
}

// Filters are the library's filters of depth images, applied in the order recommended by its
// makers: decimation, spatial, temporal, hole filling. Settings have the library's names; 0 means
// the library's default.
type Filters struct {
	Decimation Filter // Magnitude 2 to 8: the factor by which the image shrinks
	Spatial    Filter // Magnitude 1 to 5, Alpha 0.25 to 1, Delta 1 to 50
	Temporal   Filter // Alpha 0 to 1, Delta 1 to 100, Holes 0 to 8: persistence of a pixel
	Holes      Filter // Holes 0 to 2: from the left, the farthest or the nearest neighbour
}

// Filter is one filter with its settings.
type Filter struct {
	On       bool
	Settings []Setting
}

// Setting is a setting that differs from the library's default.
type Setting struct {
	Option rs2.Option
	Value  float64
}

// FilterGrammar is the syntax of filters.
const FilterGrammar = "decimation[=magnitude:2-8] spatial[=alpha:0.25-1/delta:1-50/magnitude:1-5] " +
	"temporal[=alpha:0-1/delta:1-100/holes:0-8] holes[=holes:0-2]"

// settingNames maps names of settings to their ranges in the library and to the filters with them.
var settingNames = map[string]struct {
	option  rs2.Option
	allowed map[string][2]float64
}{
	"magnitude": {rs2.FilterMagnitude, map[string][2]float64{"decimation": {2, 8}, "spatial": {1, 5}}},
	"alpha":     {rs2.FilterSmoothAlpha, map[string][2]float64{"spatial": {0.25, 1}, "temporal": {0, 1}}},
	"delta":     {rs2.FilterSmoothDelta, map[string][2]float64{"spatial": {1, 50}, "temporal": {1, 100}}},
	"holes":     {rs2.HolesFill, map[string][2]float64{"temporal": {0, 8}, "holes": {0, 2}}},
}

// ParseFilters parses filters from parts such as "spatial" and "temporal=alpha:0.4/delta:20", see
// FilterGrammar.
func ParseFilters(parts []string) (Filters, error) {
	var f Filters
	for _, part := range parts {
		if err := f.add(part); err != nil {
			return Filters{}, fmt.Errorf("%w: filter %.80q: %w", ErrConfig, part, err)
		}
	}
	return f, nil
}

func (f *Filters) add(part string) error {
	name, settings, given := strings.Cut(part, "=")
	filter, ok := map[string]*Filter{"decimation": &f.Decimation, "spatial": &f.Spatial, "temporal": &f.Temporal,
		"holes": &f.Holes}[name]
	if !ok {
		return fmt.Errorf("expected one of %s", FilterGrammar)
	}
	if filter.On {
		return fmt.Errorf("expected once, got twice")
	}
	filter.On = true
	if !given {
		return nil
	}
	for written := range strings.SplitSeq(settings, "/") {
		key, number, _ := strings.Cut(written, ":")
		setting := settingNames[key]
		allowed, ok := setting.allowed[name]
		if !ok {
			return fmt.Errorf("the filter has no setting %.32q; expected %s", key, FilterGrammar)
		}
		value, err := strconv.ParseFloat(number, 64)
		if err != nil || !(value >= allowed[0] && value <= allowed[1]) {
			return fmt.Errorf("%s is %.32q, expected %g to %g", key, number, allowed[0], allowed[1])
		}
		filter.Settings = append(filter.Settings, Setting{setting.option, value})
	}
	return nil
}
