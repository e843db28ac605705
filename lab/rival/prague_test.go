package rival

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/test/wait"
)

var (
	loopback4 = netip.MustParseAddrPort("127.0.0.1:0")
	loopback6 = netip.MustParseAddrPort("[::1]:0")
)

// listen opens a Sink, or skips the test if the system does not have the address.
func listen(t *testing.T, address netip.AddrPort) *Sink {
	t.Helper()
	sink, err := Listen(address)
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	t.Cleanup(func() {
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	})
	return sink
}

// marking is a sink that acknowledges every segment as marked, and calls end after a number of segments.
func marking(t *testing.T, segments int, end func()) netip.AddrPort {
	t.Helper()
	port, err := udp.Listen(udp.Config{Address: loopback4})
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for inbox := udp.NewInbox(); port.Sockets()[0].Receive(inbox) == nil; {
			for _, m := range inbox.Messages() {
				for d := range m.Datagrams() {
					number, _ := parseSegment(d)
					if segments--; segments == 0 {
						end()
					}
					ack := appendAcknowledgements(nil, []acknowledgement{{number, ecn.CE}})
					_ = port.Sockets()[0].Send([]udp.Message{{Peer: m.Peer, Data: ack}})
				}
			}
		}
	})
	t.Cleanup(func() {
		_ = port.Close()
		reading.Wait()
	})
	return port.Address()
}

// TestPragueOverLoopback sends without a bottleneck: every segment arrives as ECT(1), and the counts of both ends
// agree.
func TestPragueOverLoopback(t *testing.T) {
	for _, address := range []netip.AddrPort{loopback4, loopback6} {
		sink := listen(t, address)
		sender, err := Open(sink.Address())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var sum *Summary
		var running sync.WaitGroup
		running.Go(func() { sum, err = sender.Run(ctx) })
		// Checks are 5 ms apart: 40 of them that find new segments cover at least two samples.
		progress, latest := 0, uint64(0)
		wait.Until(t, "segments have arrived for 0.2 s", func() bool {
			if now := sink.Summary().Segments; now > latest {
				progress, latest = progress+1, now
			}
			return progress == 40
		})
		cancel()
		running.Wait()
		got := sink.Summary()
		if err != nil || sum.Acknowledged < 100 || sum.Mbps <= 0 || sum.RTT <= 0 || sum.Bleached != 0 ||
			sum.Marked != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
		if got.Segments < sum.Acknowledged || got.Segments > sum.Sent || got.ECT1 != got.Segments ||
			got.Bytes != got.Segments*netem.SegmentBytes || got.Unknown != 0 {
			t.Errorf("the sink counts %+v, the sender %d sent and %d acknowledged", got, sum.Sent, sum.Acknowledged)
		}
	}
}

// TestPragueRespondsToMarks: if every segment is marked, the rate falls to two segments in a virtual round trip of 25
// ms, 0.96 Mbit/s. The first 20 segments leave faster, and 40 more take 0.5 s.
func TestPragueRespondsToMarks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sender, err := Open(marking(t, 60, cancel))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := sender.Run(ctx)
	if err != nil || len(sum.Samples) < 2 {
		t.Fatalf("%+v, %v", sum, err)
	}
	// On a busy machine no acknowledgement may be read within a sample.
	busy := slices.DeleteFunc(sum.Samples, func(s Sample) bool { return s.Mbps == 0 })
	last := busy[len(busy)-1]
	if sum.Marked == 0 || sum.Marked != sum.Acknowledged || last.Marked != 1 || last.Alpha < 0.9 || last.Mbps > 1.5 {
		t.Errorf("%+v, expected 0.96 Mbit/s with every segment marked", sum)
	}
}

// TestBursts: no call of send exceeds the segments of 250 µs at the rate, and a full burst is followed by a pause.
func TestBursts(t *testing.T) {
	sink := listen(t, loopback4)
	sender, err := Open(sink.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sender.port.Close() }()
	var out burst
	// Each round trip of 10 ms doubles the window and more.
	now := time.Now()
	acknowledged := uint64(0)
	for range 12 {
		now = now.Add(10 * time.Millisecond)
		for end := now.Add(10 * time.Millisecond); now.Before(end); {
			before := sender.prague.Stats()
			full := sender.send(&out, now)
			sent := sender.prague.Stats().Sent - before.Sent
			if limit := max(1, before.RateBPS*netem.PragueBurst.Seconds()/8/netem.SegmentBytes); float64(sent) > limit {
				t.Fatalf("%d segments left at once at %.1f Mbit/s, expected at most %.1f", sent, before.RateBPS/1e6,
					limit)
			}
			wait := sender.wait(now, full)
			if full && wait < netem.PragueBurst/2 {
				t.Fatalf("after a full burst the sender waits for %v", wait)
			}
			now = now.Add(max(wait, 10*time.Microsecond))
		}
		for sent := sender.prague.Stats().Sent; acknowledged < sent; acknowledged++ {
			sender.prague.Acknowledge(acknowledged, false, now)
		}
	}
	if rate := sender.prague.Stats().RateBPS; rate < 50e6 {
		t.Errorf("the rate is %.1f Mbit/s, expected bursts of several segments", rate/1e6)
	}
}

// TestSilence: a sender to a socket that does not answer ends, and says so.
func TestSilence(t *testing.T) {
	port, err := udp.Listen(udp.Config{Address: loopback4})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	sender, err := Open(port.Address())
	if err != nil {
		t.Fatal(err)
	}
	sender.patience = 50 * time.Millisecond
	if sum, err := sender.Run(t.Context()); !errors.Is(err, ErrSilent) || sum.Sent == 0 {
		t.Errorf("%+v, %v, expected ErrSilent", sum, err)
	}
}

// TestOthersAreIgnored: a sink counts datagrams that are not segments, and a sender ignores acknowledgements of others
// and of segments that it never sent.
func TestOthersAreIgnored(t *testing.T) {
	sink := listen(t, loopback4)
	port, err := udp.Listen(udp.Config{Address: loopback4})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	segment := appendSegment(nil, 9, 100)
	err = port.Sockets()[0].Send([]udp.Message{
		{Peer: sink.Address(), Data: []byte("hello")}, {Peer: sink.Address(), Data: segment, ECN: ecn.CE},
	})
	if err != nil {
		t.Fatal(err)
	}
	inbox := udp.NewInbox()
	if err := port.Sockets()[0].Receive(inbox); err != nil {
		t.Fatal(err)
	}
	list, ok := parseAcknowledgements(inbox.Messages()[0].Data, nil)
	if !ok || len(list) != 1 || list[0] != (acknowledgement{9, ecn.CE}) {
		t.Errorf("acknowledged %v, %v", list, ok)
	}
	if got := sink.Summary(); got.Unknown != 1 || got.Segments != 1 || got.CE != 1 {
		t.Errorf("%+v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, to := range []netip.AddrPort{{}, loopback4} {
		if _, err := Open(to); !errors.Is(err, udp.ErrAddress) {
			t.Errorf("%v: %v", to, err)
		}
	}
}

// run runs vollab rival and returns its output.
func run(t *testing.T, ctx context.Context, arguments ...string) ([]byte, error) {
	t.Helper()
	cmd := Command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&bytes.Buffer{})
	cmd.SetArgs(arguments)
	err := cmd.ExecuteContext(ctx)
	return out.Bytes(), err
}

func TestCommand(t *testing.T) {
	for _, wrong := range [][]string{
		{"prague"}, {"prague", "--to", "127.0.0.1:1", "--listen", "127.0.0.1:0"}, {"prague", "--to", "localhost"},
		{"prague", "--listen", "here"}, {"prague", "--to", "127.0.0.1:9", "--seconds", "-1"},
	} {
		if _, err := run(t, t.Context(), wrong...); !errors.Is(err, errFlags) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
	text, err := run(t, t.Context(), "prague", "--listen", "127.0.0.1:0", "--seconds", "0.01", "--json")
	var counts SinkSummary
	if err != nil || json.Unmarshal(text, &counts) != nil || counts.Segments != 0 {
		t.Errorf("%s, %v", text, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	text, err = run(t, ctx, "prague", "--to", marking(t, 40, cancel).String(), "--json")
	var sum Summary
	if err != nil || json.Unmarshal(text, &sum) != nil || sum.Marked == 0 || len(sum.Samples) == 0 {
		t.Errorf("%s, %v", text, err)
	}
}
