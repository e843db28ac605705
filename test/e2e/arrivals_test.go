package e2e

import (
	"context"
	"testing"

	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestBothDirectionsReportArrivals checks the server's metrics of reports to a publisher and from a receiver, and the
// content of these.
func TestBothDirectionsReportArrivals(t *testing.T) {
	c := startConference(t, wide)
	alice := join(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{body(1, 1)}})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Receive: true})
	metric := func(series string) float64 {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		value, err := c.Metric(ctx, series)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	const received = `volsfu_transport_feedback_packets_total{outcome="received"}`
	for _, series := range []string{`volsfu_transport_feedback_total{direction="in"}`,
		`volsfu_transport_feedback_total{direction="out"}`} {
		wait.Until(t, series+" grows", func() bool { return metric(series) > 5 })
	}
	wait.Until(t, "bob reports his received packets", func() bool { return metric(received) > 100 })
	// Every packet is reported as received once. The number of sent packets is read later, so it is larger.
	reported := metric(received)
	sent := 0.
	for _, kind := range []string{"media", "parity", "retransmission", "probe"} {
		sent += metric(`volsfu_packets_total{direction="out",kind="` + kind + `"}`)
	}
	if reported > sent {
		t.Errorf("%v packets were reported as received, but %v sent", reported, sent)
	}
	if frames(bob, tile("alice", "body", 0)) == 0 {
		t.Error("bob has no frames")
	}
	for _, p := range []*testbed.Peer{alice, bob} {
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
}
