//go:build unix

package cast

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// actor is a program with the interface of vollab peer: it reports that it listens and receives, and on SIGTERM it
// writes a summary and a record.
const actor = `#!/bin/sh
while [ $# -gt 0 ]; do
	case "$1" in
	--summary) summary="$2"; shift ;;
	--records) records="$2"; shift ;;
	--name) name="$2"; shift ;;
	esac
	shift
done
finish() {
	echo '{"transport":"trial","name":"'$name'","seconds":3}' > "$summary"
	if [ -n "$records" ]; then
		record='{"participant":"a","publication":"body","tile":1,"quality":0,"frame":7,"bytes":9,'
		echo "$record"'"stamps_ns":{"captured":1000000}}' > "$records"
	fi
	exit 0
}
trap finish TERM
echo 'hello' >&2
if [ "$name" = "broken" ]; then echo 'no such figure' >&2; exit 1; fi
echo '{"ready":"127.0.0.1:4711"}' >&2
echo '{"receiving":"'$name'"}' >&2
while :; do sleep 0.05; done
`

func settings(t *testing.T) *experiment.Settings {
	t.Helper()
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "vollab"), []byte(actor), 0o755); err != nil {
		t.Fatal(err)
	}
	return &experiment.Settings{Duration: 10 * time.Millisecond, Folder: t.TempDir(), Programs: programs}
}

// TestSignBeforeTheEnd: a sign counts even if the player has ended since.
func TestSignBeforeTheEnd(t *testing.T) {
	said := newSigns()
	if _, err := said.Write([]byte(`{"receiving":"left"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		program, err := lab.StartCommand("true", exec.Command("/bin/sh", "-c", "exit 0"), nil)
		if err != nil {
			t.Fatal(err)
		}
		<-program.Ended()
		p := &Player{Program: program, name: "left", signs: said}
		if err := p.Receiving(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Ready(t.Context()); err == nil {
			t.Fatal("the player has ended without the report that it listens")
		}
	}
}

func TestCast(t *testing.T) {
	ctx := t.Context()
	c, err := Open(ctx, settings(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if listen := c.Listen("anywhere"); listen != "127.0.0.1:0" {
		t.Errorf("expected loopback without a network, got %s", listen)
	}
	p, err := c.Peer(ctx, "left", "left", "--role", "watch")
	if err != nil {
		t.Fatal(err)
	}
	if address, err := p.Ready(ctx); err != nil || address != "127.0.0.1:4711" {
		t.Fatalf("expected an address, got %q, %v", address, err)
	}
	if err := p.Receiving(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	summary, err := p.Summary()
	if err != nil || summary.Name != "left" || summary.Seconds != 3 {
		t.Errorf("expected the summary, got %+v, %v", summary, err)
	}
	records, err := p.Records()
	if err != nil || len(records) != 1 || records[0].Frame != 7 {
		t.Errorf("expected one record of frame 7, got %+v, %v", records, err)
	}
}

func TestServersWithoutRecords(t *testing.T) {
	c, err := Open(t.Context(), settings(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Peer(t.Context(), "server", "server", "--role", "server")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Records(); err == nil {
		t.Error("expected no records of a server")
	}
}

func TestPlayersThatFail(t *testing.T) {
	c, err := Open(t.Context(), settings(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	p, err := c.Peer(t.Context(), "left", "broken")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no such figure") {
		t.Errorf("expected the last output, got %v", err)
	}
}

func TestSigns(t *testing.T) {
	s := newSigns()
	for _, part := range []string{"2026 log\n{\"rea", "dy\":\"a:1\"}\n{\"ready\":\"b:2\"}\n",
		strings.Repeat("x", 3*maxLine), "\n{\"receiving\":\"p\"}\n"} {
		if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("expected that all bytes are written, got %d, %v", n, err)
		}
	}
	<-s.ready
	<-s.receiving
	if s.address() != "a:1" {
		t.Errorf("expected the first address, got %q", s.address())
	}
}

// record returns a record of a frame of tile 0.
func record(frame int64, stamps map[frametimes.Stamp]int64) frametimes.Record {
	r := frametimes.Record{Frame: frame}
	for stamp, at := range stamps {
		r.Times[stamp] = at * int64(time.Millisecond)
	}
	return r
}

func TestJoin(t *testing.T) {
	sent := []frametimes.Record{
		record(1, map[frametimes.Stamp]int64{frametimes.Captured: 100, frametimes.Encoded: 120}),
		record(2, map[frametimes.Stamp]int64{frametimes.Captured: 200, frametimes.Encoded: 225}),
	}
	received := []frametimes.Record{
		record(2, map[frametimes.Stamp]int64{frametimes.Captured: 200, frametimes.Reassembled: 260,
			frametimes.Decoded: 270}),
		record(1, map[frametimes.Stamp]int64{frametimes.Captured: 100, frametimes.Reassembled: 150,
			frametimes.Decoded: 155}),
		record(3, map[frametimes.Stamp]int64{frametimes.Captured: 300, frametimes.Reassembled: 350}),
	}
	joined := Join(sent, received)
	if got := Between(joined, frametimes.Encoded, frametimes.Reassembled); !slices.Equal(got, []float64{30, 35}) {
		t.Errorf("expected 30 and 35 ms in the order of capture, got %v", got)
	}
	w := Window{From: time.Unix(0, 150e6), To: time.Unix(0, 300e6)}
	if in := In(joined, w); len(in) != 1 || in[0].Frame != 2 {
		t.Errorf("expected frame 2 in the window, got %+v", in)
	}
	if got := Layer(joined, frametimes.Service); !slices.Equal(got, []float64{55, 70}) {
		t.Errorf("expected latencies of 55 and 70 ms, got %v", got)
	}
	if !Finished(&joined[0]) || Finished(&joined[2]) {
		t.Error("expected decoded frames to be finished, and only these")
	}
}

func TestWindowJudges(t *testing.T) {
	o := experiment.NewOutcome()
	w := Window{Busy: 0.5}
	if w.Judge(o, 100, 99, 1); o.Validity != experiment.Valid {
		t.Errorf("expected a valid outcome, got %s", o.Validity)
	}
	if w.Judge(o, 100, 90, 10); o.Validity != experiment.CPUBound {
		t.Errorf("expected that frames dropped by computing count, got %s", o.Validity)
	}
	o, w.Late = experiment.NewOutcome(), "by an hour"
	if w.Judge(o, 100, 99, 1); o.Validity != experiment.Valid || o.Late != "by an hour" {
		t.Errorf("expected a late network to count, got %s and %q", o.Validity, o.Late)
	}
	w.Disturbed = "for an hour"
	if w.Judge(o, 100, 99, 1); o.Validity != experiment.Invalid || !strings.Contains(o.Reason, "for an hour") {
		t.Errorf("expected a disturbance to make it invalid, got %s: %s", o.Validity, o.Reason)
	}
}
