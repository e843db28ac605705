package metrics

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics.
const (
	buildInfo          = "volsfu_build_info"
	rooms              = "volsfu_rooms"
	participants       = "volsfu_participants"
	joinSeconds        = "volsfu_join_seconds"
	signallingMessages = "volsfu_signalling_messages_total"
	signallingErrors   = "volsfu_signalling_errors_total"
	tracks             = "volsfu_tracks"
	slots              = "volsfu_slots"
	packets            = "volsfu_packets_total"
	octets             = "volsfu_bytes_total"
	framesForwarded    = "volsfu_frames_forwarded_total"
	framesDropped      = "volsfu_frames_dropped_total"
	switches           = "volsfu_switches_total"
	switchDelay        = "volsfu_switch_delay_seconds"
	residence          = "volsfu_residence_seconds"
	pacerHold          = "volsfu_pacer_hold_seconds"
	frameSeconds       = "volsfu_frame_seconds"
	nacks              = "volsfu_nacks_total"
	nackPackets        = "volsfu_nack_packets_total"
	retransmissions    = "volsfu_retransmissions_total"
	transportFeedback  = "volsfu_transport_feedback_total"
	transportPackets   = "volsfu_transport_feedback_packets_total"
	receiverEstimate   = "volsfu_receiver_estimate_bytes_per_second"
	receiverWanted     = "volsfu_receiver_wanted_bytes_per_second"
	receiverSent       = "volsfu_receiver_sent_bytes_per_second"
	receiverLoss       = "volsfu_receiver_loss_ratio"
	receiverRoundTrip  = "volsfu_receiver_round_trip_seconds"
	probes             = "volsfu_probes_total"
	probesMeasured     = "volsfu_probes_measured_total"
	overuses           = "volsfu_overuses_total"
	feedbackSilences   = "volsfu_feedback_silences_total"
	packetsDropped     = "volsfu_packets_dropped_total"
	keyFrameRequests   = "volsfu_key_frame_requests_total"
	cacheBytes         = "volsfu_cache_bytes"
	receiveQueueDrops  = "volsfu_receive_queue_drops_total"
	receivedDatagrams  = "volsfu_receive_datagrams_total"
	receiveCalls       = "volsfu_receive_calls_total"
	sentDatagrams      = "volsfu_send_datagrams_total"
	sendRuns           = "volsfu_send_runs_total"
	sendCalls          = "volsfu_send_calls_total"
	sendErrors         = "volsfu_send_errors_total"
	ecnPackets         = "volsfu_ecn_packets_total"
	l4sHops            = "volsfu_l4s_hops"
	ecnPublisherHops   = "volsfu_ecn_publisher_hops"
	ecnFallbacks       = "volsfu_ecn_fallbacks_total"
	copiedPackets      = "volsfu_redundancy_copied_packets_total"
	copiedBytes        = "volsfu_redundancy_copied_bytes_total"
	secondPaths        = "volsfu_redundancy_second_paths"
	outages            = "volsfu_redundancy_outages_total"
)

// family is one metric with all label values.
type family struct {
	name, help string
	labels     []string
}

// families are all metrics of volsfu, in the order of the table in docs/operations.md.
var families = slices.Concat([]family{
	{buildInfo, "Version of the server; the value is always 1.", []string{"version"}},
	{rooms, "Rooms with at least one participant.", nil},
	{participants, "Participants in rooms, including disconnected ones that may still resume.", nil},
	{joinSeconds, "Time from opening the websocket to the connected peer connection of a participant.", nil},
	{signallingMessages, "Signalling messages by direction (in, out) and type; unknown types count as other.",
		[]string{"direction", "type"}},
	{signallingErrors, "Error messages to clients by code; unknown codes count as other.", []string{"code"}},
	{tracks, "Published incoming RTP streams.", nil},
	{slots, "Outgoing RTP streams by state: idle (unassigned or off), waiting (for the first frame of the selected " +
		"track), active.", []string{"state"}},
	{packets, "RTP packets by direction (in from publishers, out to receivers) and kind.",
		[]string{"direction", "kind"}},
	{octets, "Bytes of RTP payload by direction and kind; headers are not counted.", []string{"direction", "kind"}},
	{framesForwarded, "Video frames of which at least one packet was sent to a receiver, counted per receiver.", nil},
	{framesDropped, "Video frames not sent in full, counted per receiver, by reason: late (older than the latency " +
		"limit), overrun (left the cache first), budget (queued beyond the latency budget), expired (rest of a " +
		"begun frame beyond the deadline), incomplete (packets missing from the publisher, beyond the parity sent, " +
		"or left to a quality that did not begin), blocked (send buffer full, or no answer to connectivity checks).",
		[]string{"reason"}},
	{switches, "Switches of a slot to another track, or from off to a track.", nil},
	{switchDelay, "Time from reading a request to sending the first packet of the new quality.", nil},
	{residence, "Time from reading a packet to writing it to a receiver's socket, without pacing delay.", nil},
	{pacerHold, "Pacing delay of packets, usually 0.", nil},
	{frameSeconds, "Times of traced frames in the server, counted per receiver, by layer: from the first packet's " +
		"arrival to its departure (hold), to the last packet's arrival (reception), to the last packet's departure " +
		"(distribution).", []string{"layer"}},
	{nacks, "NACK messages by direction: in from receivers, out to publishers.", []string{"direction"}},
	{nackPackets, "Packets requested by NACKs, by direction and outcome.", []string{"direction", "outcome"}},
	{retransmissions, "RTX packets (RFC 4588) by direction: in from publishers, out to receivers.",
		[]string{"direction"}},
	{transportFeedback, "Reports of packet arrivals (transport-wide feedback or RFC 8888) by direction: in from " +
		"receivers, out to publishers.", []string{"direction"}},
	{transportPackets, "Packets to receivers by reported outcome: received, lost (a packet received after it was " +
		"reported lost counts as both), unmatched (reported as received, but never sent, already reported, or given " +
		"up), marked (reported with ECN-CE; received as well), false_mark (reported with ECN-CE, but sent without " +
		"ECT; received as well).", []string{"outcome"}},
	{receiverEstimate, "Estimated rate of each receiver, on the wire; a summary of the current values of receivers " +
		"that report arrivals: quantile 0 is the minimum, 1 the maximum.", nil},
	{receiverWanted, "Rate that each receiver would be sent without a bandwidth limit, on the wire; summarised " +
		"likewise.", nil},
	{receiverSent, "Rate sent to each receiver in the last second, on the wire; summarised likewise.", nil},
	{receiverLoss, "Share of packets to each receiver lost over the last seconds; summarised likewise.", nil},
	{receiverRoundTrip, "Round-trip time to each receiver, queues included; summarised likewise.", nil},
	{probes, "Probes: short trains of packets sent to a receiver above its estimate.", nil},
	{probesMeasured, "Probes whose arrival rate was measured.", nil},
	{overuses, "Reductions of an estimate because the queue on the path grew.", nil},
	{feedbackSilences, "Reductions of an estimate because the receiver stopped reporting.", nil},
	{packetsDropped, "Incoming packets dropped, by reason.", []string{"reason"}},
	{keyFrameRequests, "PLI and FIR by direction: in from receivers, out to publishers; volumetric tracks need " +
		"none.", []string{"direction"}},
	{cacheBytes, "Bytes in the packet caches and in partially received data channel frames.", nil},
	{receiveQueueDrops, "Datagrams dropped by the kernel at the media sockets, mostly because a receive buffer was " +
		"full.", nil},
	{receivedDatagrams, "Datagrams received on the media sockets.", nil},
	{receiveCalls, "System calls that received datagrams.", nil},
	{sentDatagrams, "Datagrams sent on the media sockets.", nil},
	{sendRuns, "Segmented sends: runs of datagrams to one address; datagrams divided by runs is their mean length.",
		nil},
	{sendCalls, "System calls that sent datagrams.", nil},
	{sendErrors, "Datagrams that the kernel refused to send.", nil},
	{ecnPackets, "Datagrams on the media sockets by direction and ECN codepoint (RFC 3168): not_ect, ect1, ect0, ce; " +
		"datagrams with an unknown codepoint count as not_ect.", []string{"direction", "codepoint"}},
	{l4sHops, "Hops to receivers that were sent packets in the last second, by state of L4S: off (without ECN), " +
		"testing (whether ECT(1) arrives), capable (no packet marked lately), marked (the rate follows marks), " +
		"classic (a classic ECN queue), failed (the path does not carry ECT).", []string{"state"}},
	{ecnPublisherHops, "Hops from publishers that sent packets in the last second, by ECN codepoint: ce (at least " +
		"one packet was marked), or the most frequent of not_ect, ect1, ect0.", []string{"codepoint"}},
	{ecnFallbacks, "Ends of L4S on a hop to a receiver, by reason: bleached (ECT(1) arrives as Not-ECT), rewritten " +
		"(as ECT(0)), all_marked (everything is marked without a queue), dropped (ECT is lost while other packets " +
		"arrive), classic (marks come from a classic ECN queue).", []string{"reason"}},
	{copiedPackets, "RTP packets that left on the second path of a receiver, too, by class: audio, lowest_quality " +
		"(of a tile), frame_end (the last packet of another frame), repair (a retransmission), other (during an " +
		"outage of the first path, or on request).", []string{"class"}},
	{copiedBytes, "Bytes of these copies on the wire, by class.", []string{"class"}},
	{secondPaths, "Receivers with a second path, by its state: untested (no copy has arrived yet), carrying, limited " +
		"(copies are lost or queue), silent (no copy arrives any more).", []string{"state"}},
	{outages, "Outages of the first path of receivers with a second path.", nil},
}, adaptationFamilies, countedFamilies, clusterFamilies)

// Names returns the names of all metrics of volsfu, without the metrics of the Go runtime and of the process.
func Names() []string {
	names := make([]string, 0, len(families))
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// familyOf returns a metric by name. An unknown name is a programming error.
func familyOf(name string) family {
	for _, f := range families {
		if f.name == name {
			return f
		}
	}
	panic(fmt.Sprintf("metric %q is not in the table of metrics", name))
}

func descOf(name string) *prometheus.Desc {
	f := familyOf(name)
	return prometheus.NewDesc(f.name, f.help, f.labels, nil)
}
