package leaderboard

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab/control"
)

// documented is the folder of this project's page.
var documented = filepath.Join("..", "..", "docs")

// TestEntries runs each controller on a constant link, and on one that loses half of its rate for a while.
func TestEntries(t *testing.T) {
	trace := netem.RateTrace{Duration: 40 * time.Second, Steps: []netem.RateStep{
		{RateBPS: 10e6}, {At: 20 * time.Second, RateBPS: 5e6}, {At: 30 * time.Second, RateBPS: 10e6}}}
	least := map[string]float64{"pion": 20, "pion-corrected": 20, "cubic": 30, "bbr": 50}
	for _, e := range entries() {
		if e.Skipped != "" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			j := job{entry: &e, name: "link", text: "trace", seed: 1, trace: &trace}
			c, err := j.run(t.Context(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := least[e.Name]
			if want == 0 {
				want = 75
			}
			if c.Utilisation < want || c.Utilisation > 110 || c.Latency < 20 || c.Latency > 1000 {
				t.Errorf("expected %g %% or more, got %+v", want, c)
			}
		})
	}
}

// TestLinks checks the list of recorded links: names are unique, both parts have links of each kind that they need, and
// every source has a licence.
func TestLinks(t *testing.T) {
	links, err := KnownLinks()
	if err != nil {
		t.Fatal(err)
	}
	seen, held := make(map[string]bool), 0
	for _, l := range links.Links {
		if seen[l.Name] {
			t.Errorf("two links have the name %s", l.Name)
		}
		seen[l.Name] = true
		if !l.Tuned {
			held++
		}
	}
	if held < 5 {
		t.Errorf("expected at least 5 links that were not used to change GCC, got %d", held)
	}
	for _, s := range links.Sources {
		if s.Licence == "" || s.Origin == "" || s.URL != "" && len(s.SHA256) != 64 {
			t.Errorf("expected licence, origin and hash, got %+v", s)
		}
	}
}

func TestParsePackets(t *testing.T) {
	// Two packets in the first half second, none in the second, one in the third.
	trace, err := (&Link{Format: FormatPackets}).parse([]byte("0\n499\n1000\n"))
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Steps) != 3 || trace.Steps[0].RateBPS != 48_000 || trace.Steps[1].RateBPS != 0 ||
		trace.Steps[2].RateBPS != 24_000 || trace.Duration != 1500*time.Millisecond {
		t.Errorf("got %+v", trace)
	}
	for _, text := range []string{"", "x\n", "-1\n"} {
		if _, err := (&Link{Format: FormatPackets}).parse([]byte(text)); !errors.Is(err, errFormat) {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestGNetTrackRates(t *testing.T) {
	row := func(second, rate string) []string { return []string{"2020.01.16_09.00." + second, rate} }
	trace, err := gNetTrackRates([][]string{row("00", "10"), row("01", "2000"), row("01", "3000"), row("03", "500")},
		0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(trace.Steps) != 2 || trace.Steps[0].RateBPS != 3e6 || trace.Steps[1].At != 2*time.Second ||
		trace.Duration != 3*time.Second {
		t.Errorf("got %+v", trace)
	}
	for _, rows := range [][][]string{nil, {row("00", "x")}, {row("00", "-")}, {row("05", "2000"), row("04", "2000")}} {
		if _, err := gNetTrackRates(rows, 0, 1); !errors.Is(err, errFormat) {
			t.Errorf("%v: got %v", rows, err)
		}
	}
}

// TestFetch fetches a file, refuses one with another hash, and reads an archive without the member.
func TestFetch(t *testing.T) {
	content := []byte("0\n")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(content)
	}))
	defer server.Close()
	folder := t.TempDir()
	s := Source{File: "a", URL: server.URL, SHA256: "9a271f2a916b0b6ee6cecb2426f0b3206ef074578be55d9bc94f6f3fe3ab86aa"}
	for _, want := range []string{"fetched", "present"} {
		if state, err := s.fetch(t.Context(), folder, ""); err != nil || state != want {
			t.Errorf("expected %s, got %s, %v", want, state, err)
		}
	}
	content = []byte("1\n")
	s.File = "b"
	if _, err := s.fetch(t.Context(), folder, ""); !errors.Is(err, ErrLink) {
		t.Errorf("expected an error, got %v", err)
	}
	if names, _ := os.ReadDir(folder); len(names) != 1 {
		t.Errorf("expected one file, got %v", names)
	}
	if _, err := s.fetch(t.Context(), folder, t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("expected an error, got %v", err)
	}
}

// board runs some entries on the shortest case.
func board(t *testing.T) *Board {
	t.Helper()
	b, err := Run(context.Background(), Options{Only: []string{"volsfu-gcc", "cubic", "scream"}, Cases: []string{"5.1"},
		Seeds: 2})
	if err != nil {
		t.Fatal(err)
	}
	b.Command, b.Version = "vollab bench cc", "v1"
	return b
}

// TestHandTypedFigures changes a figure of a page by hand.
func TestHandTypedFigures(t *testing.T) {
	b, folder := board(t), t.TempDir()
	if len(b.Cells) != 4 {
		t.Fatalf("expected 2 entries with 2 seeds, got %+v", b.Cells)
	}
	if err := b.Write(folder); err != nil {
		t.Fatal(err)
	}
	if err := CheckPage(folder); err != nil {
		t.Errorf("expected a page as written, got %v", err)
	}
	name := filepath.Join(folder, pageName)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 5.1 |", "Not run: ", "`volsfu-gcc`"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte(" %; "), []byte("1 %; "), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CheckPage(folder); !errors.Is(err, ErrPage) {
		t.Errorf("expected an error, got %v", err)
	}
}

// TestDocumentedPage checks the page of this project, if there is one.
func TestDocumentedPage(t *testing.T) {
	if err := CheckPage(documented); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestPacketLog writes a log, which has every packet with its fate.
func TestPacketLog(t *testing.T) {
	folder := t.TempDir()
	packet, end, err := packetLog(folder)("entry", "case", 1)
	if err != nil {
		t.Fatal(err)
	}
	packet(control.PacketFate{Flow: 1, Size: 1200, Arrived: time.Second, Waited: 2 * time.Millisecond})
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(folder, "entry_case_1.csv.gz")); err != nil || info.Size() == 0 {
		t.Errorf("expected a log, got %v, %v", info, err)
	}
}
