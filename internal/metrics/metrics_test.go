package metrics

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/volsfu/volsfu/pkg/signal"
)

// plane is a data plane with fixed numbers.
type plane struct{ snapshot Snapshot }

func (p plane) Snapshot() Snapshot { return p.snapshot }

func newRegistry(t *testing.T, p plane) (*prometheus.Registry, *Metrics) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := New(registry, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	if err := RegisterDataPlane(registry, p); err != nil {
		t.Fatal(err)
	}
	for _, f := range countedFamilies {
		label := ""
		if len(f.labels) > 0 {
			label = "any"
		}
		if err := Register(registry, Counted(f.name, label, func() uint64 { return 7 })); err != nil {
			t.Fatal(err)
		}
	}
	if err := RegisterCluster(registry, func() Cluster { return node }); err != nil {
		t.Fatal(err)
	}
	return registry, m
}

func TestNames(t *testing.T) {
	registry, _ := newRegistry(t, plane{Snapshot{Paced: true}})
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	goRuntime, process := false, false
	for _, family := range gathered {
		name := family.GetName()
		if strings.HasPrefix(name, "volsfu_") {
			got = append(got, name)
		}
		goRuntime = goRuntime || name == "go_goroutines"
		process = process || name == "process_open_fds"
	}
	want := Names()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the registry has %v, expected Names() %v", got, want)
	}
	if !goRuntime || !process {
		t.Errorf("metrics of the Go runtime: %v, of the process: %v, expected both", goRuntime, process)
	}
}

func TestLint(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	problems, err := testutil.GatherAndLint(registry, Names()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestLabels compares the labels in use with the table, and bounds the number of series.
func TestLabels(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range gathered {
		if !strings.HasPrefix(family.GetName(), "volsfu_") {
			continue
		}
		want := slices.Sorted(slices.Values(familyOf(family.GetName()).labels))
		for _, metric := range family.GetMetric() {
			var got []string
			for _, pair := range metric.GetLabel() {
				got = append(got, pair.GetName())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: labels are %v, expected %v", family.GetName(), got, want)
			}
		}
		// The most series has the metric of messages: one for each type that clients send, and one for each of servers.
		if n := len(family.GetMetric()); n > 60 {
			t.Errorf("%s: %d series, expected at most 60", family.GetName(), n)
		}
	}
}

func TestControlPlane(t *testing.T) {
	registry, m := newRegistry(t, plane{})
	m.Rooms(2)
	m.Participants(5)
	m.Participants(4)
	m.ParticipantConnected(120 * time.Millisecond)
	m.ParticipantConnected(time.Minute)
	m.SignallingMessage(in, signal.TypeJoin)
	m.SignallingMessage(in, "dance")
	m.SignallingMessage(in, "sing")
	// A client sends a message type of the server: not a known type in this direction.
	m.SignallingMessage(in, signal.TypeJoined)
	m.SignallingMessage(out, signal.TypeJoined)
	m.SignallingError(signal.CodeLimit)
	m.SignallingError("made up")
	const want = `
# HELP volsfu_build_info Version of the server; the value is always 1.
# TYPE volsfu_build_info gauge
volsfu_build_info{version="1.2.3"} 1
# HELP volsfu_join_seconds Time from opening the websocket to the connected peer connection of a participant.
# TYPE volsfu_join_seconds histogram
volsfu_join_seconds_bucket{le="0.05"} 0
volsfu_join_seconds_bucket{le="0.1"} 0
volsfu_join_seconds_bucket{le="0.2"} 1
volsfu_join_seconds_bucket{le="0.3"} 1
volsfu_join_seconds_bucket{le="0.5"} 1
volsfu_join_seconds_bucket{le="0.75"} 1
volsfu_join_seconds_bucket{le="1"} 1
volsfu_join_seconds_bucket{le="1.5"} 1
volsfu_join_seconds_bucket{le="2"} 1
volsfu_join_seconds_bucket{le="3"} 1
volsfu_join_seconds_bucket{le="5"} 1
volsfu_join_seconds_bucket{le="10"} 1
volsfu_join_seconds_bucket{le="30"} 1
volsfu_join_seconds_bucket{le="+Inf"} 2
volsfu_join_seconds_sum 60.12
volsfu_join_seconds_count 2
# HELP volsfu_participants Participants in rooms, including disconnected ones that may still resume.
# TYPE volsfu_participants gauge
volsfu_participants 4
# HELP volsfu_rooms Rooms with at least one participant.
# TYPE volsfu_rooms gauge
volsfu_rooms 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), buildInfo, joinSeconds, participants,
		rooms); err != nil {
		t.Error(err)
	}
	for want, counter := range map[float64][]prometheus.Counter{
		0: {m.received.known[signal.TypeLeave], m.sent.other},
		1: {m.received.known[signal.TypeJoin], m.sent.known[signal.TypeJoined], m.errors.known[signal.CodeLimit],
			m.errors.other},
		3: {m.received.other},
	} {
		for _, c := range counter {
			if got := testutil.ToFloat64(c); got != want {
				t.Errorf("%s is %g, expected %g", c.Desc(), got, want)
			}
		}
	}
}

// TestUnknownValuesMakeNoSeries: a client must not be able to fill the server's memory with labels.
func TestUnknownValuesMakeNoSeries(t *testing.T) {
	registry, m := newRegistry(t, plane{})
	before, err := testutil.GatherAndCount(registry, signallingMessages, signallingErrors)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		m.SignallingMessage(in, signal.Type(strings.Repeat("x", i)))
		m.SignallingMessage(out, signal.Type(strings.Repeat("x", i)))
		m.SignallingError(signal.Code(strings.Repeat("x", i)))
	}
	after, err := testutil.GatherAndCount(registry, signallingMessages, signallingErrors)
	if err != nil {
		t.Fatal(err)
	}
	if after != before {
		t.Errorf("%d series, expected %d", after, before)
	}
}

func TestDataPlane(t *testing.T) {
	registry, _ := newRegistry(t, plane{Snapshot{
		Tracks:   12,
		Slots:    SlotCounts{Idle: 3, Waiting: 1, Active: 8},
		Received: Traffic{Media: Count{100, 110_000}, Audio: Count{50, 5_000}, Retransmission: Count{1, 1_100}},
		Sent: Traffic{Media: Count{300, 330_000}, Retransmission: Count{2, 2_200}, Parity: Count{4, 4_400},
			Probe: Count{6, 600}},
		FramesForwarded: 30,
		FramesDropped:   FrameDrops{Late: 1, Overrun: 3, Budget: 33, Expired: 7, Incomplete: 5, Blocked: 35},
		Switches:        7,
		SwitchDelay: Histogram{Bounds: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond},
			Counts: []uint64{1, 2, 3}, Sum: 4500 * time.Millisecond},
		NACKsReceived: NACKsReceived{Messages: 5, Answered: 6, Owed: 7, Unknown: 8, Expired: 9, Suppressed: 10,
			Limited: 11, Refused: 12},
		NACKsSent: NACKsSent{Messages: 13, Recovered: 14, Delayed: 76, Lost: 15, Limited: 32},
		PacketsDropped: PacketDrops{MalformedRTP: 16, MalformedRTCP: 17, MalformedPayload: 18, UnknownSSRC: 19,
			Duplicate: 20, Late: 21, Feedback: 34},
		FrameHold: Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{72, 73},
			Sum: 3 * time.Second},
		FrameReception: Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{74, 75},
			Sum: 4 * time.Second},
		PacerHold: Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{35, 36}, Sum: 2 * time.Second},
		Paced:     true,

		TransportFeedback: TransportFeedback{Received: 37, Sent: 38, PacketsReceived: 39, PacketsLost: 40,
			PacketsUnmatched: 77, PacketsMarked: 99, FalseMarks: 78},
		Receivers: []ReceiverPath{
			{Estimate: 30e6, Wanted: 60e6, Sent: 25e6, Loss: 0.25, RoundTrip: 20 * time.Millisecond},
			{Estimate: 10e6, Wanted: 40e6, Sent: 9e6, Loss: 0.5, RoundTrip: 150 * time.Millisecond},
			{Estimate: 20e6, Wanted: 50e6, Sent: 1e6, RoundTrip: 40 * time.Millisecond},
		},
		Probes:   Probes{Sent: 41, Measured: 42},
		Overuses: 43, FeedbackSilences: 44,
		KeyFramesAsked:     22,
		KeyFramesRequested: 23,
		CacheBytes:         24,
		ReceiveQueueDrops:  25,
		Sockets: Sockets{
			Received: Transfers{Datagrams: 26, Calls: 27, Codepoints: Codepoints{NotECT: 5, ECT1: 6, ECT0: 7, CE: 8}},
			Sent: Transfers{
				Datagrams: 28, Calls: 29, Codepoints: Codepoints{NotECT: 20, ECT1: 5, ECT0: 2, CE: 1},
			},
			Runs:       30,
			SendErrors: 31,
		},
		L4SHops:       L4SHops{Off: 79, Testing: 80, Capable: 81, Marked: 82, Classic: 83, Failed: 84},
		PublisherHops: PublisherHops{NotECT: 85, ECT1: 86, ECT0: 87, CE: 88},
		ECNFallbacks:  ECNFallbacks{Bleached: 89, Rewritten: 90, AllMarked: 91, Dropped: 92, Classic: 93},
		Redundancy: Redundancy{
			Copied: Copies{
				Audio: Count{100, 101}, LowestQuality: Count{102, 103}, FrameEnd: Count{104, 105},
				Repair: Count{106, 107}, Other: Count{108, 109},
			},
			SecondPaths: SecondPaths{Untested: 110, Carrying: 111, Limited: 112, Silent: 113},
			Outages:     114,
		},
	}})
	want := expected(t, "dataplane.txt")
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), dataPlaneFamilies...); err != nil {
		t.Error(err)
	}
}

// expected returns a file of testdata: metrics in the text format of Prometheus.
func expected(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestHoldHistogramNeedsPacing checks that without pacing the histogram is absent, not empty.
func TestHoldHistogramNeedsPacing(t *testing.T) {
	for paced, want := range map[bool]int{false: 0, true: 1} {
		registry, _ := newRegistry(t, plane{Snapshot{Paced: paced}})
		if n, err := testutil.GatherAndCount(registry, pacerHold); err != nil || n != want {
			t.Errorf("paced is %t: %d holds (%v), expected %d", paced, n, err, want)
		}
	}
}

// TestNoReceivers: without receivers the quantiles are NaN.
func TestNoReceivers(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	const want = `
# HELP volsfu_receiver_loss_ratio Share of packets to each receiver lost over the last seconds; summarised likewise.
# TYPE volsfu_receiver_loss_ratio summary
volsfu_receiver_loss_ratio{quantile="0"} NaN
volsfu_receiver_loss_ratio{quantile="0.1"} NaN
volsfu_receiver_loss_ratio{quantile="0.5"} NaN
volsfu_receiver_loss_ratio{quantile="0.9"} NaN
volsfu_receiver_loss_ratio{quantile="1"} NaN
volsfu_receiver_loss_ratio_sum 0
volsfu_receiver_loss_ratio_count 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), receiverLoss); err != nil {
		t.Error(err)
	}
}

func TestBrokenHistogram(t *testing.T) {
	registry, _ := newRegistry(t, plane{Snapshot{Residence: Histogram{Bounds: []time.Duration{1, 2},
		Counts: []uint64{1, 2}}}})
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), residence) {
		t.Errorf("error is %v, expected one that names %s", err, residence)
	}
}

func TestRegisteredTwice(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	if _, err := New(registry, "1.2.3"); err == nil {
		t.Error("a second registration of the control plane succeeded")
	}
	if err := RegisterDataPlane(registry, plane{}); err == nil {
		t.Error("a second registration of the data plane succeeded")
	}
}
