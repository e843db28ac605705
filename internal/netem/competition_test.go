package netem_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

// constantLoad writes 1,222 bytes, 1,250 with headers, every interval, until end.
func constantLoad(t *testing.T, from *netem.Conn, to net.Addr, interval time.Duration, end time.Time) {
	payload := make([]byte, 1222)
	for time.Now().Before(end) {
		if _, err := from.WriteTo(payload, to); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(interval)
	}
}

// TestNetworkCarriesCubic lets sockets compete with Cubic on 20 Mbit/s: the sockets' 5 Mbit/s are less than half under
// FQ, and arrive without loss or delay.
func TestNetworkCarriesCubic(t *testing.T) {
	type outcome struct {
		received       uint64
		cubic          []netem.CubicStats
		sockets, flows netem.DelayCounts
	}
	compete := func(t *testing.T, discipline string, d netem.Direction) (o outcome) {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(t, 1)
			shaped := with(func(c *netem.Config) {
				c.Delay, c.RateBPS, c.Queue, c.QueueDelay = 10*time.Millisecond, 20_000_000, discipline,
					50*time.Millisecond
			})
			free := netem.Config{Delay: 10 * time.Millisecond}
			up, down := shaped, free
			server, client := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
			from, to := client, server
			if d == netem.Down {
				up, down, from, to = free, shaped, server, client
			}
			if err := to.SetReadBuffer(1 << 24); err != nil { // the buffer is not read
				t.Fatal(err)
			}
			setAccess(t, n, clientAddr, up, down)
			if err := n.AddCubic(clientAddr, d, 1); err != nil {
				t.Fatal(err)
			}
			constantLoad(t, from, to.LocalAddr(), 2*time.Millisecond, time.Now().Add(10*second))
			if err := n.StopCubic(clientAddr, d); err != nil {
				t.Fatal(err)
			}
			time.Sleep(second)
			o.received, o.cubic = to.Stats().Received, n.CubicStats(clientAddr, d)
			o.sockets, o.flows = n.QueueDelays(clientAddr, d)
			time.Sleep(second)
			if later := n.CubicStats(clientAddr, d); later[0].Sent != o.cubic[0].Sent {
				t.Errorf("%d segments sent after the flow was stopped", later[0].Sent-o.cubic[0].Sent)
			}
		})
		return o
	}
	for _, d := range []netem.Direction{netem.Up, netem.Down} {
		o := compete(t, netem.QueueFQ, d)
		rate := float64(o.cubic[0].Acknowledged) * netem.SegmentBytes * 8 / 10
		if o.received != 5000 || o.sockets.Count() != 5000 || o.sockets.Quantile(1) > 2*time.Millisecond {
			t.Errorf("%s, FQ: %d of 5000 packets, %d of them after up to %v in the queue; expected all within 2 ms", d,
				o.received, o.sockets.Count(), o.sockets.Quantile(1))
		}
		if rate < 14e6 || rate > 15.1e6 || o.flows.Quantile(0.5) < 10*time.Millisecond {
			t.Errorf("%s, FQ: Cubic got %.0f bit/s and waited %v, expected the other 15 Mbit/s and a queue of its own",
				d, rate, o.flows.Quantile(0.5))
		}
		if fifo := compete(t, netem.QueueFIFO, d); fifo.sockets.Quantile(0.5) < 10*time.Millisecond ||
			fifo.received == 5000 {
			t.Errorf("%s, FIFO: %d of 5000 packets, after %v in the queue; "+
				"expected them to wait as long as Cubic's, and to be lost", d, fifo.received,
				fifo.sockets.Quantile(0.5))
		}
		if again := compete(t, netem.QueueFQ, d); fmt.Sprint(again) != fmt.Sprint(o) {
			t.Errorf("%s, FQ: another outcome with the same seed", d)
		}
	}
}

func TestNetworkFollowsATrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, 1)
		setAccess(t, n, clientAddr, netem.DefaultConfig(), netem.DefaultConfig())
		server, client := listen(t, n, "10.0.0.1:1"), listen(t, n, "10.0.0.2:1")
		start := time.Now()
		trace := netem.RateTrace{Duration: 2 * second,
			Steps: []netem.RateStep{{0, 10_000_000}, {second / 2, 0}, {second, 1_000_000}}}
		if err := n.SetRate(clientAddr, netem.Up, trace); err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		buffer, payload := make([]byte, 1500), strings.Repeat("x", 1222)
		exchange := func(from, to *netem.Conn) {
			write(t, from, payload, to.LocalAddr())
			if _, _, err := to.ReadFrom(buffer); err != nil {
				t.Fatal(err)
			}
			got = append(got, time.Since(start))
		}
		exchange(client, server)
		time.Sleep(time.Until(start.Add(second/2 - 500*time.Microsecond)))
		exchange(client, server) // half of it after the outage
		exchange(client, server)
		exchange(server, client) // the other direction has no limit
		ms := time.Millisecond
		if expected := []time.Duration{ms, 1005 * ms, 1015 * ms, 1015 * ms}; !slices.Equal(got, expected) {
			t.Errorf("arrivals %v, expected %v", got, expected)
		}
	})
}

func TestCompetitionErrors(t *testing.T) {
	n := newNetwork(t, 1)
	shaped := with(func(c *netem.Config) { c.RateBPS = 10_000_000 })
	setAccess(t, n, clientAddr, shaped, netem.Config{})
	trace := netem.RateTrace{Steps: []netem.RateStep{{0, 1e6}}, Duration: second}
	unknown := netip.MustParseAddr("10.9.9.9")
	tests := []struct {
		name     string
		err      error
		sentinel error
		parts    []string
	}{
		{"no flows", n.AddCubic(clientAddr, netem.Up, 0), netem.ErrConfig, []string{"0 Cubic flows"}},
		{"no access link", n.AddCubic(unknown, netem.Up, 1), netem.ErrAddress,
			[]string{"uplink of 10.9.9.9", "access link"}},
		{"no rate", n.AddCubic(clientAddr, netem.Down, 1), netem.ErrConfig,
			[]string{"downlink of 10.0.0.2", "rate_bps is 0"}},
		{"nothing to stop", n.StopCubic(unknown, netem.Down), netem.ErrAddress, []string{"10.9.9.9"}},
		{"trace for nobody", n.SetRate(unknown, netem.Up, trace), netem.ErrAddress, []string{"10.9.9.9"}},
		{"empty trace", n.SetRate(clientAddr, netem.Up, netem.RateTrace{}), netem.ErrTrace,
			[]string{"uplink of 10.0.0.2", "no steps"}},
		{"no limit of the queue", n.SetRate(clientAddr, netem.Down, trace), netem.ErrConfig,
			[]string{"downlink of 10.0.0.2", "queue_bytes"}},
	}
	for _, test := range tests {
		if !errors.Is(test.err, test.sentinel) {
			t.Errorf("%s: error %v, expected %v", test.name, test.err, test.sentinel)
			continue
		}
		for _, part := range test.parts {
			if !strings.Contains(test.err.Error(), part) {
				t.Errorf("%s: error %q does not name %q", test.name, test.err, part)
			}
		}
	}
	if err := n.AddCubic(clientAddr, netem.Up, 2); err != nil {
		t.Fatal(err)
	}
	if err := n.SetAccess(clientAddr, netem.Config{}, netem.Config{}); !errors.Is(err, netem.ErrConfig) ||
		!strings.Contains(err.Error(), "uplink") {
		t.Errorf("error %v for an unlimited rate beside Cubic flows, expected ErrConfig", err)
	}
	if err := n.StopCubic(clientAddr, netem.Up); err != nil {
		t.Fatal(err)
	}
	setAccess(t, n, clientAddr, netem.Config{}, netem.Config{})
	if stats := n.CubicStats(unknown, netem.Up); stats != nil {
		t.Errorf("%v of a host that is not there", stats)
	}
	if sockets, cubic := n.QueueDelays(unknown, netem.Up); sockets.Count()+cubic.Count() != 0 {
		t.Error("delays of a host that is not there")
	}
	_ = n.Close()
	for _, err := range []error{n.AddCubic(clientAddr, netem.Up, 1), n.StopCubic(clientAddr, netem.Up),
		n.SetRate(clientAddr, netem.Up, trace)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("error %v of a closed network, expected net.ErrClosed", err)
		}
	}
}
