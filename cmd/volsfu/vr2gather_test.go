package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

// TestVR2GatherFlags reads command lines as VR2Gather's orchestrator writes them.
func TestVR2GatherFlags(t *testing.T) {
	f, err := parseVR2Gather(strings.Fields("--addr :8094 -p 9000:9100 -s -t 9 --q=3 -l 2 -r 10.8."), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c := f.settings()
	switch {
	case c.Server.Listen != ":8094" || c.Admin.Listen != "" || c.Server.Dev || c.Log.Level != "debug":
		t.Errorf("server is %+v, log %+v", c.Server, c.Log)
	case !c.VR2Gather.Enabled || c.VR2Gather.RequireToken || c.VR2Gather.Tiles != 9 || c.VR2Gather.Qualities != 3 ||
		c.VR2Gather.Candidates != "10.8.":
		t.Errorf("dialect is %+v", c.VR2Gather)
	case len(c.Media.STUNServers) != 1 || c.Media.TCP:
		t.Errorf("media is %+v", c.Media)
	}
	if err := c.VR2Gather.Validate(); err != nil {
		t.Error(err)
	}
	if f, err = parseVR2Gather(nil, io.Discard); err != nil || f.address != ":8080" || f.ports != "" ||
		len(f.settings().Media.STUNServers) > 0 {
		t.Errorf("without flags %+v, %v", f, err)
	}
	var help strings.Builder
	if _, err := parseVR2Gather([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) ||
		!strings.Contains(help.String(), "-addr") {
		t.Errorf("help is %q, %v", help.String(), err)
	}
	for _, wrong := range []string{"-x", "-t many", "more"} {
		if _, err := parseVR2Gather(strings.Fields(wrong), io.Discard); err == nil {
			t.Errorf("%q passes", wrong)
		}
	}
}

func TestVR2GatherPorts(t *testing.T) {
	for text, want := range map[string][2]int{"": {0, 0}, "9000:9100": {9000, 9100}, "9000:9000": {9000, 9000}} {
		first, last, err := parsePorts(text)
		if err != nil || first != want[0] || last != want[1] {
			t.Errorf("%q is %d to %d, %v", text, first, last, err)
		}
	}
	for _, wrong := range []string{"9000", "9100:9000", "0:9", "1:65536", "a:b", ":", "1:2:3"} {
		if _, _, err := parsePorts(wrong); !errors.Is(err, errPorts) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
