// Package build describes how a program was built. The linker sets the variables.
package build

import (
	"cmp"
	"fmt"
	"runtime/debug"
)

// commit and date are the commit and its date, of releases and of make build. If they are empty, Line uses the stamp of
// go build or go install.
var commit, date string

// Line returns the line that a program prints about itself: name, version, and the commit with its date if known.
func Line(name, version string) string {
	c, d := commit, date
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c = cmp.Or(c, s.Value[:min(len(s.Value), 12)])
			case "vcs.time":
				d = cmp.Or(d, s.Value)
			}
		}
	}
	line := name + " " + version
	switch {
	case c != "" && d != "":
		return fmt.Sprintf("%s (commit %s, %s)", line, c, d)
	case c != "":
		return fmt.Sprintf("%s (commit %s)", line, c)
	}
	return line
}
