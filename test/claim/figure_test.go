package claim

import (
	"math"
	"testing"
)

// TestFigures parses figures as the testing package prints them, and nothing else.
func TestFigures(t *testing.T) {
	for _, l := range []Line{
		Exactly("broken or rejected frames", 3, "", 0),
		AtMost("one way, p99", 1.25, "ms", 2),
		AtLeast("connections: 20 of 20", math.NaN(), "", 20),
		Information("frames → received", 123456, "frames"),
		Skip("namespaces", "takes root"),
	} {
		for _, before := range []string{"", "    server_test.go:12: ", "        figures_test.go:7: "} {
			if got, ok := ReadFigure(before + Figure(l)); !ok || got != l {
				t.Errorf("%q: got %+v, %t", before+Figure(l), got, ok)
			}
		}
	}
	for _, text := range []string{
		"", "=== RUN   TestBridge", "    bridge_test.go:3: figure: 12", "figure: {}",
		`figure: {"name":"x","figure":1,"met":true`, `figure: {"name":"x","more":1}`,
		`{"name":"x","figure":1,"met":true}`, `figure: {"name":"x","figure":"1"}`,
	} {
		if got, ok := ReadFigure(text); ok || got != (Line{}) {
			t.Errorf("%q: got %+v, %t", text, got, ok)
		}
	}
}
