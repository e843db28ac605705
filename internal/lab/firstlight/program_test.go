package firstlight

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/lab"
)

func TestReadyAddress(t *testing.T) {
	tests := []struct {
		line, want string
	}{
		{`{"level":"info","msg":"volsfu is ready","signalling":"ws://127.0.0.1:8080/v1/signal","media_port":7882}`, "ws://127.0.0.1:8080"},
		{`{"level":"info","msg":"something else"}`, ""},
		{`{"signalling":"nonsense"}`, ""},
		{`not JSON`, ""},
		{``, ""},
	}
	for _, test := range tests {
		if got, ok := readyAddress([]byte(test.line)); got != test.want || ok != (test.want != "") {
			t.Errorf("%s: got %q, %v; want %q", test.line, got, ok, test.want)
		}
	}
}

func TestTail(t *testing.T) {
	var kept tail
	if kept.text() != "nothing" {
		t.Errorf("before anything was written: %q", kept.text())
	}
	for range 100 {
		_, _ = kept.Write([]byte(strings.Repeat("x", 99) + "\n"))
	}
	_, _ = kept.Write([]byte("the end\n"))
	if text := kept.text(); len(text) > tailBytes || !strings.HasSuffix(text, "the end") {
		t.Errorf("%d bytes are kept, ending in %q", len(text), text[len(text)-20:])
	}
}

// TestProgramsAbsent: beside a test program there is no volsfu.
func TestProgramsAbsent(t *testing.T) {
	if _, err := NewDemo(lab.Progress{}).Run(context.Background()); !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("got %v, want ErrProgram and what to do", err)
	}
}

func TestDataAbsent(t *testing.T) {
	s := NewSources(lab.Progress{})
	s.Data = t.TempDir()
	lines, err := s.Run(context.Background())
	if err != nil || len(lines) != 2 {
		t.Fatalf("got %v, %v; want a line for each source", lines, err)
	}
	for _, l := range lines {
		if l.Skipped == "" || !l.Met || !strings.Contains(l.Skipped, testDataVariable) {
			t.Errorf("%v: want it skipped, and what to set", l)
		}
	}
}

func TestProcess(t *testing.T) {
	good, err := start("true", "/bin/sh", nil, "-c", "echo out; echo err >&2")
	if err != nil {
		t.Fatal(err)
	}
	if err := good.wait(context.Background()); err != nil || good.output.String() != "out\n" || good.errors.text() != "err" {
		t.Errorf("got %v, %q, %q", err, good.output.String(), good.errors.text())
	}
	bad, err := start("false", "/bin/sh", nil, "-c", "echo why >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.wait(context.Background()); !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want ErrProgram and what it said", err)
	}
	long, err := start("sleep", "/bin/sh", nil, "-c", "trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.05; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.Await(context.Background(), "the trap is set", func() bool { return long.errors.text() == "ready" }); err != nil {
		t.Fatal(err)
	}
	if err := long.stop(); err != nil {
		t.Errorf("a program that ends when it is asked to: %v", err)
	}
}

// TestSummary reads what volpeer watch --json prints, and what it prints where nothing came.
func TestSummary(t *testing.T) {
	tests := []struct {
		name, text string
		missed     []string
	}{
		{"all is well", `{"fps":29.5,"frames_undecodable":0,"latency_ms":{"p50":20,"p95":30,"p99":35,"max":50},"publications":[` +
			strings.TrimSuffix(strings.Repeat(`{"fps":29},`, 8), ",") + `]}`, nil},
		{"slow, and with broken frames", `{"fps":26.9,"frames_undecodable":2,"latency_ms":{"p50":20,"p95":30,"p99":35,"max":50},"publications":[` +
			strings.TrimSuffix(strings.Repeat(`{"fps":29},`, 7), ",") + `]}`,
			[]string{"frames decoded per second and tile", "tiles received", "frames undecodable"}},
		{"nothing came", `{"fps":0,"frames_undecodable":0,"latency_ms":{"p50":null,"p95":null,"p99":null,"max":null},"publications":[]}`,
			[]string{"frames decoded per second and tile", "tiles received"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var s show
			if err := json.Unmarshal([]byte(test.text), &s.watch); err != nil {
				t.Fatal(err)
			}
			var missed []string
			for _, l := range s.lines("", 30) {
				if !l.Met {
					missed = append(missed, l.Name)
				}
			}
			if strings.Join(missed, "|") != strings.Join(test.missed, "|") {
				t.Errorf("missed %q, want %q", missed, test.missed)
			}
		})
	}
}
