//go:build linux

package traffic_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/namespace"
	"github.com/volsfu/volsfu/test/traffic"
)

var loopback = netip.MustParseAddr("127.0.0.1")

func newFlow(t *testing.T, change func(*traffic.Options)) *traffic.Flow {
	t.Helper()
	n := namespace.New(t)
	n.Run(t, "ip link set lo up")
	o := traffic.Options{From: n, To: n, Source: loopback, Destination: loopback, Size: 500, Segments: 1, InFlight: 100}
	change(&o)
	f, err := traffic.NewFlow(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestTransfer sends datagrams of each kind of socket over the loopback interface.
func TestTransfer(t *testing.T) {
	for name, change := range map[string]func(*traffic.Options){
		"connected":   func(*traffic.Options) {},
		"unconnected": func(o *traffic.Options) { o.Unconnected, o.Discover = true, unix.IP_PMTUDISC_PROBE },
		"segments":    func(o *traffic.Options) { o.Segments = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t, change)
			for range 2 {
				got, err := f.Transfer(t.Context(), 800, time.Millisecond)
				if err != nil || got != (traffic.Result{Sent: 800, Arrived: 800}) {
					t.Errorf("transferred %+v, %v, want 800 once", got, err)
				}
			}
		})
	}
}

// TestTransferStops ends a transfer of which nothing arrives.
func TestTransferStops(t *testing.T) {
	f := newFlow(t, func(o *traffic.Options) {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := f.Transfer(ctx, 200, time.Hour); err != nil || got.Arrived == 200 {
		t.Errorf("transferred %+v, %v, want less than all", got, err)
	}
}

// TestTransferRate: datagram 399 of 4,000 per second leaves 99.75 ms after the start or later.
func TestTransferRate(t *testing.T) {
	f := newFlow(t, func(o *traffic.Options) { o.Rate = 4000 })
	began := time.Now()
	got, err := f.Transfer(t.Context(), 400, time.Millisecond)
	if took := time.Since(began); err != nil || got.Arrived != 400 || took < 99750*time.Microsecond {
		t.Errorf("transferred %+v in %v, %v, want 400 in 99.75 ms at least", got, took, err)
	}
}

func TestStream(t *testing.T) {
	n := namespace.New(t)
	n.Run(t, "ip link set lo up")
	got, err := traffic.Stream(n, n, loopback, loopback, 1<<20, 10*time.Second)
	if errors.Is(err, traffic.ErrNoBBR) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil || got.Segments == 0 || got.Elapsed <= 0 {
		t.Errorf("streamed %+v, %v", got, err)
	}
}
