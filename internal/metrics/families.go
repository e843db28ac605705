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
)

// family is one metric with all its labels' values.
type family struct {
	name, help string
	labels     []string
}

// families are all metrics of volsfu, in the order of the operators' table.
var families = slices.Concat([]family{
	{buildInfo, "The version that runs; the value is always 1.", []string{"version"}},
	{rooms, "Rooms that somebody is in.", nil},
	{participants, "Participants in rooms, including those that may still resume.", nil},
	{joinSeconds, "Time from the opening of a websocket to the participant's connected peer connection.", nil},
	{signallingMessages, "Signalling messages by direction (in, out) and type; types that the server does not know count as other.", []string{"direction", "type"}},
	{signallingErrors, "Errors that clients were told, by code; codes that the protocol does not know count as other.", []string{"code"}},
	{tracks, "Incoming RTP streams that are published.", nil},
	{slots, "Outgoing RTP streams by state: idle (nothing to carry, or switched off), waiting (for the first frame of what was chosen), active.", []string{"state"}},
	{packets, "RTP packets by direction (in from publishers, out to receivers) and kind.", []string{"direction", "kind"}},
	{octets, "Bytes of RTP payload by direction and kind; headers are not counted.", []string{"direction", "kind"}},
	{framesForwarded, "Video frames that were begun to be sent to a receiver, counted per receiver.", nil},
	{framesDropped, "Video frames that a receiver did not get whole, counted per receiver, by reason: late (waited beyond the latency limit), overrun (left the cache before they were sent), budget (waited beyond the receiver's latency budget for its turn), expired (had begun, and its rest waited beyond the receiver's deadline), incomplete (packets of the publisher's did not come, and the parity that the receiver is sent does not make up for them), blocked (found no room in the host's send buffer, or the receiver had stopped answering connectivity checks).", []string{"reason"}},
	{switches, "Switches of a slot to another track, or on again after it was off.", nil},
	{switchDelay, "Time from reading the request to sending the first packet of the new quality.", nil},
	{residence, "Time from reading a packet to having written it to a receiver's socket; what a pacer held it on purpose is not counted.", nil},
	{pacerHold, "What pacers held packets on purpose, most often nothing.", nil},
	{frameSeconds, "Where the time of traced frames goes in the server, counted per receiver, by layer: hold (from the first packet's arrival to its leaving), reception (to the last packet's arrival), distribution (to the last packet's leaving).", []string{"layer"}},
	{nacks, "NACK messages by direction: in from receivers, out to publishers.", []string{"direction"}},
	{nackPackets, "Packets that NACKs asked for, by direction and by what became of the request.", []string{"direction", "outcome"}},
	{retransmissions, "RTX packets (RFC 4588) by direction: in from publishers, out to receivers.", []string{"direction"}},
	{transportFeedback, "Reports of packets' arrivals (transport-wide feedback, or RFC 8888) by direction: in from receivers, out to publishers.", []string{"direction"}},
	{transportPackets, "Packets to receivers that reports of arrivals spoke of, by outcome: received, lost; one that comes after it was reported lost counts as both.", []string{"outcome"}},
	{receiverEstimate, "What receivers are estimated to take, on the wire; a summary of the present values of those that report packets' arrivals: quantile 0 is the least, 1 the most.", nil},
	{receiverWanted, "What would be sent to receivers if they could take it, on the wire; summarised likewise.", nil},
	{receiverSent, "What was sent to receivers in the last second, on the wire; summarised likewise.", nil},
	{receiverLoss, "Share of the packets to receivers that got lost on the way over the last seconds; summarised likewise.", nil},
	{receiverRoundTrip, "Round-trip time to receivers, queues included; summarised likewise.", nil},
	{probes, "Short trains of packets that were sent to a receiver above its estimate, to learn whether its path carries more.", nil},
	{probesMeasured, "Such trains whose rate of arrival was measured.", nil},
	{overuses, "Times that the queue on the way to a receiver grew, and its estimate was reduced.", nil},
	{feedbackSilences, "Times that an estimate was reduced because its receiver did not report what it was sent.", nil},
	{packetsDropped, "Incoming packets that were of no use, by reason.", []string{"reason"}},
	{keyFrameRequests, "PLI and FIR by direction: in from receivers, out to publishers; receivers of volumetric tracks need none.", []string{"direction"}},
	{cacheBytes, "Bytes that the packet caches hold, and frames that come in pieces over data channels.", nil},
	{receiveQueueDrops, "Datagrams that the kernel dropped at the media sockets, for the most part because a receive buffer was full.", nil},
	{receivedDatagrams, "Datagrams that came in on the media sockets.", nil},
	{receiveCalls, "System calls that brought datagrams in.", nil},
	{sentDatagrams, "Datagrams that left by the media sockets.", nil},
	{sendRuns, "Runs of datagrams to one address that the kernel was handed as one; datagrams by runs is the mean length of a segmented send.", nil},
	{sendCalls, "System calls that sent datagrams.", nil},
	{sendErrors, "Datagrams that the system refused to send.", nil},
}, adaptationFamilies, countedFamilies)

// Names lists every metric of volsfu. Those of the Go runtime and of the process are not among them.
func Names() []string {
	names := make([]string, 0, len(families))
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

// familyOf finds a metric by its name.
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
