package raster

import (
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	_ "github.com/volsfu/volsfu/pkg/codec/dracojpeg" // registers draco, too
	"github.com/volsfu/volsfu/test/long"
)

// TestChecks runs the checks on few frames. Times, and the rates and losses of the frames of a few live seconds, depend
// on the load of the machine and are not judged.
func TestChecks(t *testing.T) {
	long.Test(t)
	o := DefaultOptions()
	o.Frames, o.Compared, o.Repeats, o.Switches, o.Block = 1, 1, 1, 20, time.Second
	for _, c := range Checks(o, lab.NewProgress(t.Output())) {
		// The tests of the source tree judge figures of a quiet machine.
		if _, isTests := c.(*suite.Tests); isTests {
			continue
		}
		lines, err := c.Run(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		if len(lines) == 0 {
			t.Errorf("%s: no lines", c.Name())
		}
		for _, l := range lines {
			if l.Skipped != "" {
				t.Logf("%s: skipped: %s", l.Name, l.Skipped)
			} else if !l.Met && l.Unit != "ms" && l.Unit != "fps" && !strings.Contains(l.Name, ": decodable") {
				t.Errorf("%s: %v %s, expected %s", l.Name, l.Figure, l.Unit, l.Target)
			}
		}
	}
}
