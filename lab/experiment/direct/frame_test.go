package direct

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

const log = `{"frame":1,"capture_us":1000000,"first_sent_us":1010000,"last_received_us":1035500,` +
	`"points":40000,"bytes":120000,"bound":"rate","outcome":"intact"}
{"frame":2,"capture_us":1033333,"first_sent_us":1040000,"last_received_us":0,"outcome":"lost"}
{"frame":3,"capture_us":1066666,"first_sent_us":0,"dropped":true,"outcome":"unsent"}
`

func TestParseFrames(t *testing.T) {
	frames, err := ParseFrames(strings.NewReader(log))
	if err != nil || len(frames) != 3 {
		t.Fatalf("%d frames, %v", len(frames), err)
	}
	if f := frames[0]; f.Number != 1 || f.Points != 40000 || f.Bytes != 120000 || f.Bound != "rate" ||
		f.Outcome != Intact {
		t.Errorf("got %+v", f)
	}
	if !frames[0].Sent() || !frames[1].Sent() || frames[2].Sent() {
		t.Error("two frames were sent, and the last one was not")
	}
	if got := Span(frames, FirstSent, LastReceived); fmt.Sprint(got) != "[25.5]" {
		t.Errorf("transport took %v, want 25.5 ms of the frame that arrived", got)
	}
	if some := Between(frames, 30*time.Millisecond, 60*time.Millisecond); len(some) != 1 || some[0].Number != 2 {
		t.Errorf("between 30 and 60 ms there is %+v", some)
	}
	if some := Between(frames, 0, 0); len(some) != 3 {
		t.Errorf("all frames: got %d", len(some))
	}
	for text, want := range map[string]string{"{}\nx": "line 2", `{"frame":"a"}`: "line 1",
		strings.Repeat(" ", maxLine+1): "too long"} {
		if _, err := ParseFrames(strings.NewReader(text)); !errors.Is(err, ErrLog) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: %v", text, err)
		}
	}
	if _, err := ReadFrames(filepath.Join(t.TempDir(), "none.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing log: %v", err)
	}
}

// TestPace: frames that were due and never captured count as much as frames dropped later.
func TestPace(t *testing.T) {
	s := Summary{Captured: 10, Missed: 50, Skipped: 3}
	frames := []Frame{{Outcome: Intact, Decoded: 1}, {Outcome: Intact, Decoded: 2}, {Outcome: Intact, Superseded: true},
		{Outcome: "lost"}}
	if got := s.Pace(frames); got != (experiment.Pace{Wanted: 60, Done: 2, DroppedByCPU: 54}) {
		t.Errorf("got %+v, expected 60 wanted, 2 done and 54 dropped by computing", got)
	}
	o := experiment.NewOutcome()
	if o.Judge(s.Pace(frames)); o.Validity != experiment.CPUBound {
		t.Errorf("10 of 60 frames are %s", o.Validity)
	}
}

func TestDeviation(t *testing.T) {
	if got := Deviation([]float64{2, 4, 4, 4, 5, 5, 7, 9}); got != 2 {
		t.Errorf("got %g, want 2", got)
	}
	if got := Deviation(nil); got != 0 || math.IsNaN(got) {
		t.Errorf("without frames: %g", got)
	}
}

// TestSources: without test data the synthetic figure is used, and the report contains a note.
func TestSources(t *testing.T) {
	data := t.TempDir()
	for _, dir := range []string{"desk-human", "cesium-man"} {
		if err := os.Mkdir(filepath.Join(data, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(data, "cesium-man", "CesiumMan.glb"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		scene, data, spec string
		points            int
		says              string
	}{
		{Figure, "", "synthetic", 1000, "synthetic"}, {Desk, "", "synthetic", deskPoints, "replaces"},
		{Figure, data, "glb:" + filepath.Join(data, "cesium-man", "CesiumMan.glb"), 1000, "cesium-man"},
		{Desk, data, "ply:" + filepath.Join(data, "desk-human"), deskPoints, "one frame"},
		{Desk, t.TempDir(), "synthetic", deskPoints, "replaces"},
	}
	for _, test := range tests {
		got := SourceOf(test.scene, 1000, test.data)
		if got.Spec != test.spec || got.Points != test.points || !strings.Contains(got.Says, test.says) {
			t.Errorf("%s: got %+v", test.scene, got)
		}
	}
	source := Source{Spec: "synthetic", Points: 1000}
	if got := strings.Join(source.Flags(30, &experiment.Settings{Seed: 7}),
		" "); got != "--source synthetic --points 1000 --fps 30 --seed 7" {
		t.Errorf("flags %s", got)
	}
}

// TestListen: the address is found among other lines, and later lines are consumed.
func TestListen(t *testing.T) {
	found := make(chan string, 1)
	listen(strings.NewReader("time=x level=WARN msg=other address=1.2.3.4:5\n"+
		"time=x level=INFO msg=\"waiting for the other side\" address=198.18.0.1:4711\nmore\n"), found)
	if got := <-found; got != "198.18.0.1:4711" {
		t.Errorf("got %s", got)
	}
}

func FuzzParseFrames(f *testing.F) {
	f.Add([]byte(log))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		frames, err := ParseFrames(bytes.NewReader(text))
		if err != nil && !errors.Is(err, ErrLog) || len(frames) > len(text) {
			t.Errorf("%d frames of %d bytes, %v", len(frames), len(text), err)
		}
	})
}
