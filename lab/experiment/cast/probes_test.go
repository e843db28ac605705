package cast

import (
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/lab/probe"
)

func TestParseLines(t *testing.T) {
	got, err := parseLines[probe.Departure]([]byte("{\"sequence\":1,\"sent_ns\":2}\n{\"sequence\":2}\n"))
	if err != nil || len(got) != 2 || got[0].Sent != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := parseLines[probe.Departure]([]byte("{}\nx")); !errors.Is(err, ErrProbes) ||
		!strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseLines(f *testing.F) {
	f.Add([]byte("{\"sequence\":1,\"sent_ns\":2}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if list, err := parseLines[probe.Arrival](text); err != nil && !errors.Is(err, ErrProbes) ||
			len(list) > len(text) {
			t.Errorf("%d of %d bytes, %v", len(list), len(text), err)
		}
	})
}

// TestSign: the receiver's line is found among other lines.
func TestSign(t *testing.T) {
	s := make(sign, 1)
	for _, text := range []string{"something else\n", "{\"ready\":\"198.18.0.2:4711\"}\n", "{\"ready\":\"again\"}\n"} {
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil {
			t.Fatal(n, err)
		}
	}
	if got := <-s; got != "198.18.0.2:4711" {
		t.Errorf("got %s", got)
	}
}
