package lab

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

func TestReady(t *testing.T) {
	tests := []struct {
		line, url, admin string
	}{
		{`{"level":"info","msg":"volsfu is ready","signalling":"ws://127.0.0.1:8080/v1/signal",` +
			`"media_port":7882,"admin":"127.0.0.1:9090"}`,
			"ws://127.0.0.1:8080", "127.0.0.1:9090"},
		{`{"level":"info","msg":"something else"}`, "", ""},
		{`{"signalling":"nonsense"}`, "", ""},
		{`not JSON`, "", ""},
		{``, "", ""},
	}
	for _, test := range tests {
		got, ok := parseReady([]byte(test.line))
		if ok != (test.url != "") || ok && (got.URL() != test.url || got.Admin != test.admin || got.MediaPort != 7882) {
			t.Errorf("%s: got %+v, %v; want %q and %q", test.line, got, ok, test.url, test.admin)
		}
	}
}

func TestTail(t *testing.T) {
	var kept Tail
	if kept.Text() != "nothing" {
		t.Errorf("before anything was written: %q", kept.Text())
	}
	for range 100 {
		_, _ = kept.Write([]byte(strings.Repeat("x", 99) + "\n"))
	}
	_, _ = kept.Write([]byte("the end\n"))
	if text := kept.Text(); len(text) > tailBytes || !strings.HasSuffix(text, "the end") {
		t.Errorf("%d bytes are kept, ending in %q", len(text), text[len(text)-20:])
	}
}

// TestWaitAfterTheContext: if both the program and the context have ended, the program's result counts.
func TestWaitAfterTheContext(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	p := &Program{ended: make(chan struct{})}
	if err := p.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	close(p.ended)
	for range 100 {
		if err := p.Wait(over); err != nil {
			t.Fatalf("got %v from a program that ended with status 0", err)
		}
	}
}

func TestProcess(t *testing.T) {
	good, err := StartProgram("true", "/bin/sh", nil, "-c", "echo out; echo err >&2")
	if err != nil {
		t.Fatal(err)
	}
	err = good.Wait(context.Background())
	if err != nil || string(good.Output()) != "out\n" || good.LastOutput() != "err" {
		t.Errorf("got %v, %q, %q", err, good.Output(), good.LastOutput())
	}
	bad, err := StartProgram("false", "/bin/sh", nil, "-c", "echo why >&2; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	if err := bad.Wait(context.Background()); !errors.Is(err, ErrProgram) || !strings.Contains(err.Error(), "why") {
		t.Errorf("got %v, want ErrProgram and the output of the program", err)
	}
	long, err := StartProgram("sleep", "/bin/sh", nil, "-c",
		"trap 'exit 0' TERM; echo ready >&2; while :; do sleep 0.05; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := testbed.Await(context.Background(), "the trap is set",
		func() bool { return long.LastOutput() == "ready" }); err != nil {
		t.Fatal(err)
	}
	if err := long.Stop(); err != nil {
		t.Errorf("a program that ends on SIGTERM: %v", err)
	}
}

// TestServerAbsent: a program that is not a server ends before it is ready.
func TestServerAbsent(t *testing.T) {
	if _, err := StartServer(context.Background(), "/bin/true"); !errors.Is(err, ErrProgram) ||
		!strings.Contains(err.Error(), "before it was ready") {
		t.Errorf("got %v, want ErrProgram and the reason", err)
	}
	if _, err := StartServer(context.Background(), "/nowhere/volsfu"); !errors.Is(err, ErrProgram) {
		t.Errorf("got %v, want ErrProgram", err)
	}
}

// TestAwaitSign: a value on the channel ends the wait. The error names a program that ends first or sends no value in
// time.
func TestAwaitSign(t *testing.T) {
	start := func(script string) *Program {
		p, err := StartCommand("the program", exec.Command("/bin/sh", "-c", script), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Stop() })
		return p
	}
	sign := make(chan string, 1)
	sign <- "here"
	if said, err := AwaitSign(t.Context(), start("exec sleep 60"), sign, wait.Patience); err != nil || said != "here" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := AwaitSign(t.Context(), start("echo no luck >&2; exit 3"), sign, wait.Patience); !errors.Is(err,
		ErrProgram) || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a program that ended first: %v", err)
	}
	if _, err := AwaitSign(t.Context(), start("exec sleep 60"), sign, time.Millisecond); !errors.Is(err, ErrProgram) ||
		!strings.Contains(err.Error(), "the program was not ready") {
		t.Errorf("a program without a sign: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AwaitSign(cancelled, start("exec sleep 60"), sign, wait.Patience); !errors.Is(err, context.Canceled) {
		t.Errorf("the context has ended: %v", err)
	}
}

// TestTailKeepsPanics: Tail drops the progress before a panic and the end of a long trace. A log line that contains the
// word panic has no effect.
func TestTailKeepsPanics(t *testing.T) {
	for _, test := range []struct{ name, before, want string }{
		{"after progress", strings.Repeat("progress\n", 1000), "panic: fire"},
		{"at once", "", "panic: fire"},
		{"after a log", `{"msg":"panic: one client"}` + "\n" + strings.Repeat("progress\n", 1000), "panic: fire"},
	} {
		var kept Tail
		for _, part := range []string{test.before, "pan", "ic: fire\n", strings.Repeat("goroutine\n", 1000)} {
			if n, err := kept.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("%s: %d, %v", test.name, n, err)
			}
		}
		if text := kept.Text(); !strings.HasPrefix(text, test.want) || len(text) > tailBytes {
			t.Errorf("%s: kept %d bytes that begin with %.40q", test.name, len(text), text)
		}
	}
}
