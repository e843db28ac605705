package topology

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
)

// TestSummaryOfClasses: only a link with dualpi2 has figures of its two queues.
func TestSummaryOfClasses(t *testing.T) {
	l4s := netem.ClassStats{Packets: 100, Marked: 7, Dropped: 1}
	for range l4s.Packets {
		l4s.Waited.Add(800 * time.Microsecond)
	}
	s := Statistics{Duration: time.Second, Wires: []WireStatistics{
		{Link: "access", Way: Forth, Classes: &router.Classes{L4S: l4s}},
		{Link: "access", Way: Back, Stats: netem.Stats{DroppedECN: 5}},
	}}
	var text, object bytes.Buffer
	if err := s.Summary().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := s.Summary().WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	var read Summary
	if err := json.Unmarshal(object.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	forth, back := read.Links[0], read.Links[1]
	if c := forth.LowLatency; c == nil || c.Packets != 100 || c.Marked != 7 || c.Dropped != 1 || c.WaitedP99 < 0.8 ||
		c.WaitedP99 > 0.83 || forth.Classic == nil || forth.Classic.Packets != 0 {
		t.Errorf("got %+v and %+v, expected the counters of the two queues", forth.LowLatency, forth.Classic)
	}
	if back.LowLatency != nil || back.Classic != nil || back.DroppedECN != 5 {
		t.Errorf("got %+v, expected no queues and 5 packets dropped for their codepoint", back)
	}
	for _, line := range []string{"low-latency", "classic"} {
		if strings.Count(text.String(), line) != 1 {
			t.Errorf("expected one line of the %s queue in\n%s", line, text.String())
		}
	}
}
