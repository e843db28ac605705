// Package cameras has the flags of --source realsense.
package cameras

import (
	"cmp"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/pkg/capture/realsense"
)

// Flags has the values of the flags.
type Flags struct {
	serials, filters      []string
	size, record, library string
}

// Add registers the flags.
func (c *Flags) Add(f *pflag.FlagSet) {
	f.StringSliceVar(&c.serials, "realsense-serials", nil,
		"comma-separated serial numbers of the cameras; the default is all connected cameras")
	f.StringVar(&c.size, "realsense-size", usualSize(), "size of depth and colour images; recordings have their own "+
		"size")
	f.StringSliceVar(&c.filters, "realsense-filters", nil,
		"comma-separated depth filters of librealsense: "+realsense.FilterGrammar)
	f.StringVar(&c.record, "realsense-record", "",
		"file for a recording of the cameras, .db3 or another format of the installed librealsense; with several "+
			"cameras, each file has the serial number in its name")
	f.StringVar(&c.library, "realsense-library", "",
		"file of librealsense2; the default is VOLSFU_REALSENSE_LIBRARY, or the library of the system")
}

func usualSize() string {
	usual := realsense.DefaultConfig()
	return fmt.Sprintf("%dx%d", usual.Width, usual.Height)
}

// Set checks the flags and stores their values in config.
func (c *Flags) Set(config *realsense.Config, log *slog.Logger) error {
	var err error
	if config.Width, config.Height, err = realsense.ParseSize(cmp.Or(c.size, usualSize())); err != nil {
		return fmt.Errorf("--realsense-size: %w", err)
	}
	config.FPS = realsense.DefaultConfig().FPS
	if config.Filters, err = realsense.ParseFilters(c.filters); err != nil {
		return fmt.Errorf("--realsense-filters: %w", err)
	}
	config.Serials, config.Record, config.Library, config.Log = c.serials, c.record, c.library, log
	return nil
}
