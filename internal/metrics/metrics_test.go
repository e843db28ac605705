package metrics

import (
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

// TestLabels holds the labels in use against the table, and bounds the number of series.
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
		if n := len(family.GetMetric()); n > 40 {
			t.Errorf("%s: %d series, expected at most 40", family.GetName(), n)
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
	// The client sends what only the server may: that is not a known type in this direction.
	m.SignallingMessage(in, signal.TypeJoined)
	m.SignallingMessage(out, signal.TypeJoined)
	m.SignallingError(signal.CodeLimit)
	m.SignallingError("made up")
	const want = `
# HELP volsfu_build_info The version that runs; the value is always 1.
# TYPE volsfu_build_info gauge
volsfu_build_info{version="1.2.3"} 1
# HELP volsfu_join_seconds Time from the opening of a websocket to the participant's connected peer connection.
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
# HELP volsfu_participants Participants in rooms, including those that may still resume.
# TYPE volsfu_participants gauge
volsfu_participants 4
# HELP volsfu_rooms Rooms that somebody is in.
# TYPE volsfu_rooms gauge
volsfu_rooms 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), buildInfo, joinSeconds, participants, rooms); err != nil {
		t.Error(err)
	}
	for want, counter := range map[float64][]prometheus.Counter{
		0: {m.received.known[signal.TypeLeave], m.sent.other},
		1: {m.received.known[signal.TypeJoin], m.sent.known[signal.TypeJoined], m.errors.known[signal.CodeLimit], m.errors.other},
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
		Tracks:          12,
		Slots:           SlotCounts{Idle: 3, Waiting: 1, Active: 8},
		Received:        Traffic{Media: Count{100, 110_000}, Audio: Count{50, 5_000}, Retransmission: Count{1, 1_100}},
		Sent:            Traffic{Media: Count{300, 330_000}, Retransmission: Count{2, 2_200}, Parity: Count{4, 4_400}, Probe: Count{6, 600}},
		FramesForwarded: 30,
		FramesDropped:   FrameDrops{Late: 1, Overrun: 3, Budget: 33, Expired: 7, Incomplete: 5, Blocked: 35},
		Switches:        7,
		SwitchDelay:     Histogram{Bounds: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond}, Counts: []uint64{1, 2, 3}, Sum: 4500 * time.Millisecond},
		NACKsReceived:   NACKsReceived{Messages: 5, Answered: 6, Owed: 7, Unknown: 8, Expired: 9, Suppressed: 10, Limited: 11, Refused: 12},
		NACKsSent:       NACKsSent{Messages: 13, Recovered: 14, Delayed: 76, Lost: 15, Limited: 32},
		PacketsDropped:  PacketDrops{MalformedRTP: 16, MalformedRTCP: 17, MalformedPayload: 18, UnknownSSRC: 19, Duplicate: 20, Late: 21, Feedback: 34},
		FrameHold:       Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{72, 73}, Sum: 3 * time.Second},
		FrameReception:  Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{74, 75}, Sum: 4 * time.Second},
		PacerHold:       Histogram{Bounds: []time.Duration{time.Millisecond}, Counts: []uint64{35, 36}, Sum: 2 * time.Second},
		Paced:           true,

		TransportFeedback: TransportFeedback{Received: 37, Sent: 38, PacketsReceived: 39, PacketsLost: 40},
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
			Received: Transfers{Datagrams: 26, Calls: 27}, Sent: Transfers{Datagrams: 28, Calls: 29}, Runs: 30, SendErrors: 31,
		},
	}})
	const want = `
# HELP volsfu_bytes_total Bytes of RTP payload by direction and kind; headers are not counted.
# TYPE volsfu_bytes_total counter
volsfu_bytes_total{direction="in",kind="audio"} 5000
volsfu_bytes_total{direction="in",kind="media"} 110000
volsfu_bytes_total{direction="in",kind="parity"} 0
volsfu_bytes_total{direction="in",kind="probe"} 0
volsfu_bytes_total{direction="in",kind="retransmission"} 1100
volsfu_bytes_total{direction="out",kind="audio"} 0
volsfu_bytes_total{direction="out",kind="media"} 330000
volsfu_bytes_total{direction="out",kind="parity"} 4400
volsfu_bytes_total{direction="out",kind="probe"} 600
volsfu_bytes_total{direction="out",kind="retransmission"} 2200
# HELP volsfu_cache_bytes Bytes that the packet caches hold, and frames that come in pieces over data channels.
# TYPE volsfu_cache_bytes gauge
volsfu_cache_bytes 24
# HELP volsfu_feedback_silences_total Times that an estimate was reduced because its receiver did not report what it was sent.
# TYPE volsfu_feedback_silences_total counter
volsfu_feedback_silences_total 44
# HELP volsfu_frame_seconds Where the time of traced frames goes in the server, counted per receiver, by layer: hold (from the first packet's arrival to its leaving), reception (to the last packet's arrival), distribution (to the last packet's leaving).
# TYPE volsfu_frame_seconds histogram
volsfu_frame_seconds_bucket{layer="distribution",le="+Inf"} 0
volsfu_frame_seconds_sum{layer="distribution"} 0
volsfu_frame_seconds_count{layer="distribution"} 0
volsfu_frame_seconds_bucket{layer="hold",le="0.001"} 72
volsfu_frame_seconds_bucket{layer="hold",le="+Inf"} 145
volsfu_frame_seconds_sum{layer="hold"} 3
volsfu_frame_seconds_count{layer="hold"} 145
volsfu_frame_seconds_bucket{layer="reception",le="0.001"} 74
volsfu_frame_seconds_bucket{layer="reception",le="+Inf"} 149
volsfu_frame_seconds_sum{layer="reception"} 4
volsfu_frame_seconds_count{layer="reception"} 149
# HELP volsfu_frames_dropped_total Video frames that a receiver did not get whole, counted per receiver, by reason: late (waited beyond the latency limit), overrun (left the cache before they were sent), budget (waited beyond the receiver's latency budget for its turn), expired (had begun, and its rest waited beyond the receiver's deadline), incomplete (packets of the publisher's did not come, and the parity that the receiver is sent does not make up for them), blocked (found no room in the host's send buffer, or the receiver had stopped answering connectivity checks).
# TYPE volsfu_frames_dropped_total counter
volsfu_frames_dropped_total{reason="blocked"} 35
volsfu_frames_dropped_total{reason="budget"} 33
volsfu_frames_dropped_total{reason="expired"} 7
volsfu_frames_dropped_total{reason="incomplete"} 5
volsfu_frames_dropped_total{reason="late"} 1
volsfu_frames_dropped_total{reason="overrun"} 3
# HELP volsfu_frames_forwarded_total Video frames that were begun to be sent to a receiver, counted per receiver.
# TYPE volsfu_frames_forwarded_total counter
volsfu_frames_forwarded_total 30
# HELP volsfu_key_frame_requests_total PLI and FIR by direction: in from receivers, out to publishers; receivers of volumetric tracks need none.
# TYPE volsfu_key_frame_requests_total counter
volsfu_key_frame_requests_total{direction="in"} 22
volsfu_key_frame_requests_total{direction="out"} 23
# HELP volsfu_nack_packets_total Packets that NACKs asked for, by direction and by what became of the request.
# TYPE volsfu_nack_packets_total counter
volsfu_nack_packets_total{direction="in",outcome="answered"} 6
volsfu_nack_packets_total{direction="in",outcome="expired"} 9
volsfu_nack_packets_total{direction="in",outcome="limited"} 11
volsfu_nack_packets_total{direction="in",outcome="owed"} 7
volsfu_nack_packets_total{direction="in",outcome="refused"} 12
volsfu_nack_packets_total{direction="in",outcome="suppressed"} 10
volsfu_nack_packets_total{direction="in",outcome="unknown"} 8
volsfu_nack_packets_total{direction="out",outcome="delayed"} 76
volsfu_nack_packets_total{direction="out",outcome="limited"} 32
volsfu_nack_packets_total{direction="out",outcome="lost"} 15
volsfu_nack_packets_total{direction="out",outcome="recovered"} 14
# HELP volsfu_nacks_total NACK messages by direction: in from receivers, out to publishers.
# TYPE volsfu_nacks_total counter
volsfu_nacks_total{direction="in"} 5
volsfu_nacks_total{direction="out"} 13
# HELP volsfu_overuses_total Times that the queue on the way to a receiver grew, and its estimate was reduced.
# TYPE volsfu_overuses_total counter
volsfu_overuses_total 43
# HELP volsfu_pacer_hold_seconds What pacers held packets on purpose, most often nothing.
# TYPE volsfu_pacer_hold_seconds histogram
volsfu_pacer_hold_seconds_bucket{le="0.001"} 35
volsfu_pacer_hold_seconds_bucket{le="+Inf"} 71
volsfu_pacer_hold_seconds_sum 2
volsfu_pacer_hold_seconds_count 71
# HELP volsfu_packets_dropped_total Incoming packets that were of no use, by reason.
# TYPE volsfu_packets_dropped_total counter
volsfu_packets_dropped_total{reason="duplicate"} 20
volsfu_packets_dropped_total{reason="feedback"} 34
volsfu_packets_dropped_total{reason="late"} 21
volsfu_packets_dropped_total{reason="malformed_payload"} 18
volsfu_packets_dropped_total{reason="malformed_rtcp"} 17
volsfu_packets_dropped_total{reason="malformed_rtp"} 16
volsfu_packets_dropped_total{reason="unknown_ssrc"} 19
# HELP volsfu_packets_total RTP packets by direction (in from publishers, out to receivers) and kind.
# TYPE volsfu_packets_total counter
volsfu_packets_total{direction="in",kind="audio"} 50
volsfu_packets_total{direction="in",kind="media"} 100
volsfu_packets_total{direction="in",kind="parity"} 0
volsfu_packets_total{direction="in",kind="probe"} 0
volsfu_packets_total{direction="in",kind="retransmission"} 1
volsfu_packets_total{direction="out",kind="audio"} 0
volsfu_packets_total{direction="out",kind="media"} 300
volsfu_packets_total{direction="out",kind="parity"} 4
volsfu_packets_total{direction="out",kind="probe"} 6
volsfu_packets_total{direction="out",kind="retransmission"} 2
# HELP volsfu_probes_measured_total Such trains whose rate of arrival was measured.
# TYPE volsfu_probes_measured_total counter
volsfu_probes_measured_total 42
# HELP volsfu_probes_total Short trains of packets that were sent to a receiver above its estimate, to learn whether its path carries more.
# TYPE volsfu_probes_total counter
volsfu_probes_total 41
# HELP volsfu_receive_calls_total System calls that brought datagrams in.
# TYPE volsfu_receive_calls_total counter
volsfu_receive_calls_total 27
# HELP volsfu_receive_datagrams_total Datagrams that came in on the media sockets.
# TYPE volsfu_receive_datagrams_total counter
volsfu_receive_datagrams_total 26
# HELP volsfu_receive_queue_drops_total Datagrams that the kernel dropped at the media sockets, for the most part because a receive buffer was full.
# TYPE volsfu_receive_queue_drops_total counter
volsfu_receive_queue_drops_total 25
# HELP volsfu_receiver_estimate_bytes_per_second What receivers are estimated to take, on the wire; a summary of the present values of those that report packets' arrivals: quantile 0 is the least, 1 the most.
# TYPE volsfu_receiver_estimate_bytes_per_second summary
volsfu_receiver_estimate_bytes_per_second{quantile="0"} 1.25e+06
volsfu_receiver_estimate_bytes_per_second{quantile="0.1"} 1.25e+06
volsfu_receiver_estimate_bytes_per_second{quantile="0.5"} 2.5e+06
volsfu_receiver_estimate_bytes_per_second{quantile="0.9"} 3.75e+06
volsfu_receiver_estimate_bytes_per_second{quantile="1"} 3.75e+06
volsfu_receiver_estimate_bytes_per_second_sum 7.5e+06
volsfu_receiver_estimate_bytes_per_second_count 3
# HELP volsfu_receiver_loss_ratio Share of the packets to receivers that got lost on the way over the last seconds; summarised likewise.
# TYPE volsfu_receiver_loss_ratio summary
volsfu_receiver_loss_ratio{quantile="0"} 0
volsfu_receiver_loss_ratio{quantile="0.1"} 0
volsfu_receiver_loss_ratio{quantile="0.5"} 0.25
volsfu_receiver_loss_ratio{quantile="0.9"} 0.5
volsfu_receiver_loss_ratio{quantile="1"} 0.5
volsfu_receiver_loss_ratio_sum 0.75
volsfu_receiver_loss_ratio_count 3
# HELP volsfu_receiver_round_trip_seconds Round-trip time to receivers, queues included; summarised likewise.
# TYPE volsfu_receiver_round_trip_seconds summary
volsfu_receiver_round_trip_seconds{quantile="0"} 0.02
volsfu_receiver_round_trip_seconds{quantile="0.1"} 0.02
volsfu_receiver_round_trip_seconds{quantile="0.5"} 0.04
volsfu_receiver_round_trip_seconds{quantile="0.9"} 0.15
volsfu_receiver_round_trip_seconds{quantile="1"} 0.15
volsfu_receiver_round_trip_seconds_sum 0.21
volsfu_receiver_round_trip_seconds_count 3
# HELP volsfu_receiver_sent_bytes_per_second What was sent to receivers in the last second, on the wire; summarised likewise.
# TYPE volsfu_receiver_sent_bytes_per_second summary
volsfu_receiver_sent_bytes_per_second{quantile="0"} 125000
volsfu_receiver_sent_bytes_per_second{quantile="0.1"} 125000
volsfu_receiver_sent_bytes_per_second{quantile="0.5"} 1.125e+06
volsfu_receiver_sent_bytes_per_second{quantile="0.9"} 3.125e+06
volsfu_receiver_sent_bytes_per_second{quantile="1"} 3.125e+06
volsfu_receiver_sent_bytes_per_second_sum 4.375e+06
volsfu_receiver_sent_bytes_per_second_count 3
# HELP volsfu_receiver_wanted_bytes_per_second What would be sent to receivers if they could take it, on the wire; summarised likewise.
# TYPE volsfu_receiver_wanted_bytes_per_second summary
volsfu_receiver_wanted_bytes_per_second{quantile="0"} 5e+06
volsfu_receiver_wanted_bytes_per_second{quantile="0.1"} 5e+06
volsfu_receiver_wanted_bytes_per_second{quantile="0.5"} 6.25e+06
volsfu_receiver_wanted_bytes_per_second{quantile="0.9"} 7.5e+06
volsfu_receiver_wanted_bytes_per_second{quantile="1"} 7.5e+06
volsfu_receiver_wanted_bytes_per_second_sum 1.875e+07
volsfu_receiver_wanted_bytes_per_second_count 3
# HELP volsfu_residence_seconds Time from reading a packet to having written it to a receiver's socket; what a pacer held it on purpose is not counted.
# TYPE volsfu_residence_seconds histogram
volsfu_residence_seconds_bucket{le="+Inf"} 0
volsfu_residence_seconds_sum 0
volsfu_residence_seconds_count 0
# HELP volsfu_retransmissions_total RTX packets (RFC 4588) by direction: in from publishers, out to receivers.
# TYPE volsfu_retransmissions_total counter
volsfu_retransmissions_total{direction="in"} 1
volsfu_retransmissions_total{direction="out"} 2
# HELP volsfu_send_calls_total System calls that sent datagrams.
# TYPE volsfu_send_calls_total counter
volsfu_send_calls_total 29
# HELP volsfu_send_datagrams_total Datagrams that left by the media sockets.
# TYPE volsfu_send_datagrams_total counter
volsfu_send_datagrams_total 28
# HELP volsfu_send_errors_total Datagrams that the system refused to send.
# TYPE volsfu_send_errors_total counter
volsfu_send_errors_total 31
# HELP volsfu_send_runs_total Runs of datagrams to one address that the kernel was handed as one; datagrams by runs is the mean length of a segmented send.
# TYPE volsfu_send_runs_total counter
volsfu_send_runs_total 30
# HELP volsfu_slots Outgoing RTP streams by state: idle (nothing to carry, or switched off), waiting (for the first frame of what was chosen), active.
# TYPE volsfu_slots gauge
volsfu_slots{state="active"} 8
volsfu_slots{state="idle"} 3
volsfu_slots{state="waiting"} 1
# HELP volsfu_switch_delay_seconds Time from reading the request to sending the first packet of the new quality.
# TYPE volsfu_switch_delay_seconds histogram
volsfu_switch_delay_seconds_bucket{le="0.01"} 1
volsfu_switch_delay_seconds_bucket{le="0.1"} 3
volsfu_switch_delay_seconds_bucket{le="+Inf"} 6
volsfu_switch_delay_seconds_sum 4.5
volsfu_switch_delay_seconds_count 6
# HELP volsfu_switches_total Switches of a slot to another track, or on again after it was off.
# TYPE volsfu_switches_total counter
volsfu_switches_total 7
# HELP volsfu_tracks Incoming RTP streams that are published.
# TYPE volsfu_tracks gauge
volsfu_tracks 12
# HELP volsfu_transport_feedback_packets_total Packets to receivers that reports of arrivals spoke of, by outcome: received, lost; one that comes after it was reported lost counts as both.
# TYPE volsfu_transport_feedback_packets_total counter
volsfu_transport_feedback_packets_total{outcome="lost"} 40
volsfu_transport_feedback_packets_total{outcome="received"} 39
# HELP volsfu_transport_feedback_total Reports of packets' arrivals (transport-wide feedback, or RFC 8888) by direction: in from receivers, out to publishers.
# TYPE volsfu_transport_feedback_total counter
volsfu_transport_feedback_total{direction="in"} 37
volsfu_transport_feedback_total{direction="out"} 38
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), dataPlaneFamilies...); err != nil {
		t.Error(err)
	}
}

// TestHoldOfPacersOnly: where nothing is paced there is no hold, not one of nothing.
func TestHoldOfPacersOnly(t *testing.T) {
	for paced, want := range map[bool]int{false: 0, true: 1} {
		registry, _ := newRegistry(t, plane{Snapshot{Paced: paced}})
		if n, err := testutil.GatherAndCount(registry, pacerHold); err != nil || n != want {
			t.Errorf("paced is %t: %d holds (%v), expected %d", paced, n, err, want)
		}
	}
}

// TestNoReceivers: quantiles of nothing are not numbers.
func TestNoReceivers(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	const want = `
# HELP volsfu_receiver_loss_ratio Share of the packets to receivers that got lost on the way over the last seconds; summarised likewise.
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
	registry, _ := newRegistry(t, plane{Snapshot{Residence: Histogram{Bounds: []time.Duration{1, 2}, Counts: []uint64{1, 2}}}})
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
