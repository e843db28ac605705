package hardening

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

func TestImpact(t *testing.T) {
	began := time.Unix(1000, 0)
	var arrivals []testbed.Arrival
	arrive := func(number int64, complete, latency time.Duration) {
		at := began.Add(complete)
		arrivals = append(arrivals, testbed.Arrival{Number: number, Capture: at.Add(-latency), Complete: at})
	}
	// Frames 10 to 69 of 2 tiles over 2 s: 60 arrive in the first second, 30 in the second, some 10 after the end.
	for n := range int64(30) {
		arrive(10+n, time.Duration(n)*time.Second/30, 5*time.Millisecond)
		arrive(10+n, time.Duration(n)*time.Second/30, 5*time.Millisecond)
	}
	for n := range int64(30) {
		arrive(40+n, time.Second+time.Duration(n)*time.Second/30, 200*time.Millisecond)
	}
	for n := range int64(10) {
		arrive(40+n, 2500*time.Millisecond, time.Second)
	}
	// Frames before and after are outside the window.
	arrive(9, 0, time.Millisecond)
	arrive(70, time.Second, time.Millisecond)
	got := impactOf(arrivals, began, began.Add(2*time.Second), 10, 70)
	if got.sent != 120 || got.lost != 20 || got.worst != 15 || got.mean != 22.5 ||
		got.latency.Count() != 120 || got.latency.Max() != settling {
		t.Errorf("got %d sent, %d lost, %v worst, %v mean, %d latencies up to %v, expected 120, 20, 15, 22.5, 120, 2s",
			got.sent, got.lost, got.worst, got.mean, got.latency.Count(), got.latency.Max())
	}
}

func TestLogMeter(t *testing.T) {
	m := logMeter{ready: make(chan lab.Ready, 1)}
	text := `{"msg":"before"}` + "\nno JSON\n" +
		`{"msg":"volsfu is ready","admin":"127.0.0.1:9","signalling":"ws://10.8.0.1:8080/v1/signal"}` + "\nmore\n"
	for i := range len(text) {
		if _, err := m.Write([]byte{text[i]}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case r := <-m.ready:
		if r.Admin != "127.0.0.1:9" {
			t.Errorf("got %+v", r)
		}
	default:
		t.Error("the line that reports readiness was not found")
	}
	if m.lines.Load() != 4 || m.bytes.Load() != int64(len(text)) {
		t.Errorf("%d lines and %d bytes, expected 4 and %d", m.lines.Load(), m.bytes.Load(), len(text))
	}
}

// rooted creates a network of two hosts, or skips the test without root.
func rooted(t *testing.T) (n *network, here, there *namespace) {
	t.Helper()
	n, err := newNetwork()
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	t.Cleanup(n.close)
	if here, err = n.host("here"); err != nil {
		t.Fatal(err)
	}
	if there, err = n.host("there"); err != nil {
		t.Fatal(err)
	}
	return n, here, there
}

// TestSpoofedDatagramsReachTheTap sends datagrams with an unassigned source address.
func TestSpoofedDatagramsReachTheTap(t *testing.T) {
	_, here, there := rooted(t)
	tapped, err := there.newTap()
	if err != nil {
		t.Fatal(err)
	}
	spoof, err := here.newSpoofer()
	if err != nil {
		t.Fatal(err)
	}
	defer spoof.close()
	from, to := netip.AddrPortFrom(unused(1, 1), 7), netip.AddrPortFrom(there.address, 9)
	for _, data := range []string{"\x80media", "\x16record", "\xbfmedia", "\x00"} {
		if err := spoof.send(from, to, []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	wait.Until(t, "four datagrams are counted", func() bool { return tapped.datagrams.Load() == 4 })
	tapped.close()
	if tapped.media.Load() != 2 || tapped.bytes.Load() != 20 || tapped.missed.Load() != 0 {
		t.Errorf("%d of media, %d bytes, %d missed, expected 2, 20 and 0",
			tapped.media.Load(), tapped.bytes.Load(), tapped.missed.Load())
	}
}

// TestFloodReachesTheTap sends at a rate.
func TestFloodReachesTheTap(t *testing.T) {
	_, here, there := rooted(t)
	tapped, err := there.newTap()
	if err != nil {
		t.Fatal(err)
	}
	defer tapped.close()
	conn, err := here.listenUDP()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	to := netip.AddrPortFrom(there.address, 9)
	hello := func(b []byte) int { return copy(b, "hello") }
	sent, err := flood(t.Context(), to, 200*time.Millisecond, 1000, hello, conn)
	if err != nil {
		t.Fatal(err)
	}
	if sent.packets == 0 || sent.rate() > 1000 || sent.bytes != 5*sent.packets {
		t.Errorf("%d datagrams, %d bytes in %v, expected some, at most 1,000/s", sent.packets, sent.bytes, sent.lasted)
	}
	wait.Until(t, "all datagrams are counted", func() bool { return tapped.datagrams.Load() == sent.packets })
}

func TestNamed(t *testing.T) {
	o := DefaultOptions()
	if Named("neighbours", o, lab.Progress{}) == nil || Named("none such", o, lab.Progress{}) != nil {
		t.Error("expected a check named neighbours, and none with an unknown name")
	}
	seen := map[string]bool{}
	for _, c := range Checks(DefaultOptions(), lab.Progress{}) {
		if c.Name() == "" || seen[c.Name()] {
			t.Errorf("a check has the name %q, expected a unique name", c.Name())
		}
		seen[c.Name()] = true
	}
}

// TestDecodersOfProgram: no decoder accepts a hostile frame. Memory and time are measured without the race detector, by
// vollab check hardening.
func TestDecodersOfProgram(t *testing.T) {
	lines := decodersOfProgram()
	if decoded := lines[0].Figure; decoded == 0 {
		t.Error("no frame was decoded")
	}
	for _, l := range lines {
		if l.Missed() && strings.HasPrefix(l.Target, "= ") {
			t.Error(l)
		}
	}
}

// TestPagesWithoutSource: the tests that drive the browser are in a checkout. Without a checkout nothing is measured,
// and no line is missed.
func TestPagesWithoutSource(t *testing.T) {
	lines, err := decodersOfPages(t.Context(), lab.Progress{}, t.TempDir())
	if err != nil || len(lines) != 1 || !strings.Contains(lines[0].Skipped, "run this command in one") {
		t.Errorf("got %v and %v, expected one line that is skipped", lines, err)
	}
}
