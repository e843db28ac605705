package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics for Register.
const (
	Panics            = "volsfu_panics_total"
	WebsocketsRefused = "volsfu_websockets_refused_total"
	KeyFramesLimited  = "volsfu_key_frame_requests_limited_total"
	ICEChecksRefused  = "volsfu_ice_checks_refused_total"
	ControlLimited    = "volsfu_control_datagrams_limited_total"
	Unconsented       = "volsfu_unconsented_datagrams_total"
	SendDrops         = "volsfu_send_drops_total"
	ICETCPConnections = "volsfu_ice_tcp_connections"
	ICETCPRefused     = "volsfu_ice_tcp_refused_total"
	ICETCPStale       = "volsfu_ice_tcp_stale_packets_total"
	TURNAllocations   = "volsfu_turn_allocations"
	TURNConnections   = "volsfu_turn_connections"
	TURNPackets       = "volsfu_turn_packets_total"
	TURNBytes         = "volsfu_turn_bytes_total"
	TURNRefused       = "volsfu_turn_refused_total"
	TURNWorks         = "volsfu_turn_works"
	VR2GatherRefused  = "volsfu_vr2gather_refused_total"
	VR2GatherWithheld = "volsfu_vr2gather_withheld_total"
	VR2GatherIgnored  = "volsfu_vr2gather_ignored_total"
	EdgeTrouble       = "volsfu_edge_trouble"
	EdgeOrders        = "volsfu_edge_orders_total"
	WebhookEvents     = "volsfu_webhook_events_total"
	WebhookDeliveries = "volsfu_webhook_deliveries_total"
	WebhookQueue      = "volsfu_webhook_queued_events"

	RecordedRooms     = "volsfu_recording_rooms"
	RecordedFrames    = "volsfu_recording_frames_total"
	RecordedBytes     = "volsfu_recording_written_bytes_total"
	RecordingLost     = "volsfu_recording_lost_total"
	RecordingFailures = "volsfu_recording_failures_total"
	RecordingDeleted  = "volsfu_recording_deleted_segments_total"
	RecordingDisk     = "volsfu_recording_disk_bytes"
	RecordingQueue    = "volsfu_recording_queue_bytes"
)

// countedFamilies are the metrics counted by other parts of the server, with at most one label.
var countedFamilies = []family{
	{Panics, "Panics confined to one client or one room, by kind of goroutine.", []string{"where"}},
	{WebsocketsRefused, "Connections, websockets and room list requests refused before authentication, by reason: " +
		"address_connections, address_open and address_rate (limits per address), proxy_header (invalid header of a " +
		"trusted proxy).", []string{"reason"}},
	{KeyFramesLimited, "PLI and FIR entries ignored because a receiver exceeded its rate limit.", nil},
	{ICEChecksRefused, "ICE connectivity checks ignored because a client exceeded its number of addresses.", nil},
	{ControlLimited, "STUN messages and DTLS records dropped because a client or an address exceeded its rate " +
		"limit.", nil},
	{Unconsented, "Datagrams not sent because the client had not answered connectivity checks for 5 s (RFC 7675).",
		nil},
	{SendDrops, "Datagrams dropped because the host's send buffer was full for 5 ms.", nil},
	{ICETCPConnections, "ICE-TCP connections by state: proven (belongs to a participant) or stranger.",
		[]string{"state"}},
	{ICETCPRefused, "ICE-TCP connections refused (total, address, peer, rate) or closed (checks: too many STUN " +
		"messages; unproven: no participant), by reason.", []string{"reason"}},
	{ICETCPStale, "Packets dropped because they were queued too long for an ICE-TCP connection.", nil},
	{TURNAllocations, "Allocations of TURN; absent without TURN, as are the other metrics of TURN.", nil},
	{TURNConnections, "TCP and TLS connections of TURN, with and without allocations.", nil},
	{TURNPackets, "Packets relayed, by direction: up (to the media port) or down.", []string{"direction"}},
	{TURNBytes, "Bytes of the packets relayed, by direction: up or down.", []string{"direction"}},
	{TURNRefused, "Requests of TURN refused, by reason: credential (wrong), expired, session (has ended), peer (not " +
		"the media port), address, quota and total (allocations of an address, of a session, in all), connections, " +
		"rate (requests of an address), method (malformed or not offered).", []string{"reason"}},
	{TURNWorks, "1 if the self-test of TURN at start has succeeded, otherwise 0.", nil},
	{VR2GatherRefused, "VR2Gather peers refused or disconnected by the server; absent if the dialect is disabled.",
		nil},
	{VR2GatherWithheld, "Publications not sent to a VR2Gather peer because the peer cannot decode them.", nil},
	{VR2GatherIgnored, "Ignored parts of VR2Gather quality messages: malformed, or with unknown clients, tiles or " +
		"qualities.", nil},
	{EdgeTrouble, "1 while the receivers behind the edge of server.edge are in trouble, otherwise 0; absent without " +
		"an edge.", nil},
	{EdgeOrders, "Orders to the edge to copy packets, by result: accepted or failed; absent without an edge.",
		[]string{"result"}},
	{WebhookEvents, "Events of rooms that left the queue of an endpoint, by outcome: delivered, or dropped as full " +
		"(the queue was full) or expired (not accepted within 10 min); absent without webhooks.", []string{"outcome"}},
	{WebhookDeliveries, "Requests to endpoints of webhooks, by result: accepted (status 200 to 299), rejected " +
		"(another status) or failed (no answer); absent without webhooks.", []string{"result"}},
	{WebhookQueue, "Events of rooms that wait for an endpoint or are in flight; absent without webhooks.", nil},
	{RecordedRooms, "Rooms that are being recorded; this and all other metrics of recordings are absent without " +
		"recordings.directory.", nil},
	{RecordedFrames, "Frames, and packets of audio, that were written to recordings.", nil},
	{RecordedBytes, "Bytes that were written to recordings.", nil},
	{RecordingLost, "Losses of recordings: incomplete (frames that did not arrive whole), overrun (packets that were " +
		"not read in time), discarded (frames for which the disk was too slow or full).", []string{"reason"}},
	{RecordingFailures, "Failed attempts to write a recording: errors of the disk, and limits that are reached.", nil},
	{RecordingDeleted, "Segments deleted because of a limit.", nil},
	{RecordingDisk, "Bytes of all recordings on the disk.", nil},
	{RecordingQueue, "Bytes of recordings that wait for the disk.", nil},
}

// Reading is a value read at each scrape: of one of the metrics above, for one value of the metric's label, which is
// empty if the metric has no label.
type Reading struct {
	Name, Label string
	Value       func() float64
}

// Counted returns the reading of a counter.
func Counted(name, label string, count func() uint64) Reading {
	return Reading{name, label, func() float64 { return float64(count()) }}
}

// Register adds readings to the metrics. Metrics whose name ends with _total are counters, the others gauges. Register
// panics if a name is not in the list above.
func Register(registry *prometheus.Registry, readings ...Reading) error {
	for _, r := range readings {
		f := familyOf(r.Name)
		options := prometheus.Opts{Name: f.name, Help: f.help}
		if len(f.labels) > 0 {
			options.ConstLabels = prometheus.Labels{f.labels[0]: r.Label}
		}
		var collector prometheus.Collector = prometheus.NewGaugeFunc(prometheus.GaugeOpts(options), r.Value)
		if strings.HasSuffix(r.Name, "_total") {
			collector = prometheus.NewCounterFunc(prometheus.CounterOpts(options), r.Value)
		}
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}
