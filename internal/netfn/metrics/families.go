package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics.
const (
	buildInfo         = "volnet_build_info"
	readopted         = "volnet_readopted"
	peerAlive         = "volnet_peer_alive"
	selectedPackets   = "volnet_selected_packets_total"
	selectedBytes     = "volnet_selected_bytes_total"
	plainPackets      = "volnet_plain_packets_total"
	unnumberedPackets = "volnet_unnumbered_packets_total"
	costFactor        = "volnet_cost_factor"
	pathPackets       = "volnet_path_packets_total"
	pathBytes         = "volnet_path_bytes_total"
	pathFirst         = "volnet_path_first_total"
	pathRepeated      = "volnet_path_repeated_total"
	pathOutside       = "volnet_path_outside_window_total"
	pathOversize      = "volnet_path_oversize_total"
	pathFailedClones  = "volnet_path_failed_clones_total"
	pathRefused       = "volnet_path_refused_total"
	pathMalformed     = "volnet_path_malformed_total"
	pathCongested     = "volnet_path_congested_total"
	pathState         = "volnet_path_state"
	pathMTU           = "volnet_path_mtu_bytes"
	pathLoss          = "volnet_path_loss_ratio"
	pathInTime        = "volnet_path_in_time_ratio"
	pathOnlyInTime    = "volnet_path_only_in_time_ratio"
	pathDelay         = "volnet_path_delay_seconds"
	rulePaths         = "volnet_rule_paths"
	ruleTriggered     = "volnet_rule_triggered"
	controlMessages   = "volnet_control_messages_total"
	controlDropped    = "volnet_control_dropped_total"
	controllerUp      = "volnet_controller_connected"
	controllerFailure = "volnet_controller_failures_total"
)

// family is one metric.
type family struct {
	name, help string
	labels     []string
}

// families are all metrics of an edge, in the order of the table in docs/duplication.md.
var families = []family{
	{buildInfo, "Version of the program; the value is always 1.", []string{"version"}},
	{readopted, "1 if the process found the programs of a process that had died, otherwise 0.", nil},
	{peerAlive, "1 if a valid message of the other edge arrived within the last second, otherwise 0. With 0 the " +
		"sender sends plain packets.", nil},
	{selectedPackets, "Packets that the rules of the sender selected, each counted once.", nil},
	{selectedBytes, "Bytes of these packets, without the headers of copies.", nil},
	{plainPackets, "Selected packets sent unchanged because the other edge does not answer.", nil},
	{unnumberedPackets, "Selected packets sent unchanged because they cannot be numbered.", nil},
	{costFactor, "Packets sent on all paths per selected packet since the edge was attached: 1 without copies, 0 " +
		"before the first packet.", nil},
	{pathPackets, "Copies by path and direction: out of the sender, in at the receiver.",
		[]string{"path", "direction"}},
	{pathBytes, "Bytes of these copies.", []string{"path", "direction"}},
	{pathFirst, "Copies that the receiver passed on as the first of their number.", []string{"path"}},
	{pathRepeated, "Copies that the receiver dropped because another copy had arrived.", []string{"path"}},
	{pathOutside, "Copies that the receiver passed on although their number was outside the window or their flow had " +
		"no window.", []string{"path"}},
	{pathOversize, "Packets sent once, on the primary path, because they exceed the MTU of the path.",
		[]string{"path"}},
	{pathFailedClones, "Copies that the kernel could not make.", []string{"path"}},
	{pathRefused, "Received packets dropped because their peer or their inner address is not configured.",
		[]string{"path"}},
	{pathMalformed, "Received packets dropped because their header is truncated or invalid.", []string{"path"}},
	{pathCongested, "Received copies dropped because the path has marked them (ECN-CE) and the inner packet is " +
		"Not-ECT (RFC 6040).", []string{"path"}},
	{pathState, "1 for the state of the path: up, no-interface, down, no-address, no-route, no-neighbour.",
		[]string{"path", "state"}},
	{pathMTU, "Largest outer packet of the path.", []string{"path"}},
	{pathLoss, "Share of the copies on the path that were lost, as the receiver reported last.", []string{"path"}},
	{pathInTime, "Share of the copies on the path that arrived in time; reported likewise.", []string{"path"}},
	{pathOnlyInTime, "Share of the copies that arrived in time on this path only; reported likewise.",
		[]string{"path"}},
	{pathDelay, "Delay of the path above the fastest copy; reported likewise.", []string{"path"}},
	{rulePaths, "Number of paths of a rule's packets by use: set (every packet), probe (some packets).",
		[]string{"rule", "use"}},
	{ruleTriggered, "1 while a trigger has started copies for the rule, otherwise 0.", []string{"rule"}},
	{controlMessages, "Messages between the edges by type (hello, report) and direction.",
		[]string{"type", "direction"}},
	{controlDropped, "Messages from the network dropped, by reason: malformed, forged (wrong authentication code), " +
		"replayed, reflected (sent by this edge), stale (answers an old message), misplaced (arrived on another path " +
		"than that of its sender).", []string{"reason"}},
	{controllerUp, "1 while the controller answers, otherwise 0; absent without a controller.", nil},
	{controllerFailure, "Polls of the controller that failed; absent without a controller.", nil},
}

// Names returns the names of all metrics of an edge, without the metrics of the Go runtime and of the process.
func Names() []string {
	names := make([]string, 0, len(families))
	for _, f := range families {
		names = append(names, f.name)
	}
	return names
}

func (f family) desc() *prometheus.Desc { return prometheus.NewDesc(f.name, f.help, f.labels, nil) }

// kind is counter for names that end with _total, and gauge for all others.
func (f family) kind() prometheus.ValueType {
	if strings.HasSuffix(f.name, "_total") {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}
