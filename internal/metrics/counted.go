package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics that Register takes.
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
	VR2GatherRefused  = "volsfu_vr2gather_refused_total"
	VR2GatherWithheld = "volsfu_vr2gather_withheld_total"
	VR2GatherIgnored  = "volsfu_vr2gather_ignored_total"
)

// countedFamilies are the metrics whose values other parts of the server count, with one label at most.
var countedFamilies = []family{
	{Panics, "Panics that ended one client or one room and not the server, by the kind of goroutine.", []string{"where"}},
	{WebsocketsRefused, "Connections, websockets and requests for the list of rooms that were refused before anything was known of " +
		"who asked, by reason: address_connections, address_open and address_rate (limits of an address), " +
		"proxy_header (of a trusted proxy, unreadable).", []string{"reason"}},
	{KeyFramesLimited, "PLI and entries of FIR that were not looked at, because one receiver asked too often.", nil},
	{ICEChecksRefused, "Connectivity checks of ICE that were not looked at, because they came from more addresses than one client " +
		"may have.", nil},
	{ControlLimited, "STUN messages and DTLS records that were dropped, because one client or one address sent too many.", nil},
	{Unconsented, "Datagrams that were not sent, because the client had not answered connectivity checks for 5 s (RFC 7675).", nil},
	{SendDrops, "Datagrams that were dropped, because the host's send buffer had no room for them for 5 ms.", nil},
	{ICETCPConnections, "ICE-TCP connections by state: proven to be for a participant, or stranger.", []string{"state"}},
	{ICETCPRefused, "ICE-TCP connections that were refused (total, address, peer, rate), or ended (checks: too many STUN " +
		"messages; unproven to be for a participant).", []string{"reason"}},
	{ICETCPStale, "Packets that were dropped since they had waited too long for an ICE-TCP connection.", nil},
	{VR2GatherRefused, "Peers of VR2Gather's dialect that were refused, or whose connection the server ended; absent without the " +
		"dialect.", nil},
	{VR2GatherWithheld, "Publications that were not sent to a peer of VR2Gather's dialect, which cannot read them.", nil},
	{VR2GatherIgnored, "Parts of quality messages of VR2Gather's dialect that were ignored: unreadable, or of clients, tiles and " +
		"qualities that there are not.", nil},
}

// Reading is a value that is read whenever the metrics are: of one of the metrics above, for one value of the metric's
// label, which is empty if the metric has none.
type Reading struct {
	Name, Label string
	Value       func() float64
}

// Counted is the reading of a count.
func Counted(name, label string, count func() uint64) Reading {
	return Reading{name, label, func() float64 { return float64(count()) }}
}

// Register adds readings to the metrics. Metrics whose name ends with _total are counters, the others gauges. A name
// that is none of those above is a fault of the caller's.
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
