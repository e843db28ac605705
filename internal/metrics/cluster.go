package metrics

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The names of the metrics of a node of a cluster.
const (
	clusterNodes        = "volsfu_cluster_nodes"
	clusterConnected    = "volsfu_cluster_connected"
	clusterRoutes       = "volsfu_cluster_routes"
	clusterLoad         = "volsfu_cluster_load_ratio"
	clusterHeartbeats   = "volsfu_cluster_heartbeats_total"
	clusterMessages     = "volsfu_cluster_messages_total"
	clusterDropped      = "volsfu_cluster_messages_dropped_total"
	clusterRepairs      = "volsfu_cluster_repairs_total"
	clusterUndelivered  = "volsfu_cluster_undelivered_total"
	clusterDataDropped  = "volsfu_cluster_data_dropped_total"
	clusterRefused      = "volsfu_cluster_certificates_refused_total"
	clusterJoins        = "volsfu_cluster_joins_total"
	clusterJoinsRefused = "volsfu_cluster_joins_refused_total"
	clusterProxied      = "volsfu_cluster_proxied_websockets"
	clusterRecords      = "volsfu_cluster_session_records"
	clusterRecordBytes  = "volsfu_cluster_session_record_bytes"
	clusterRecordsLost  = "volsfu_cluster_session_records_dropped_total"
	trunkCount          = "volsfu_trunks"
	trunkLanes          = "volsfu_trunk_lanes"
	trunkRoundTrip      = "volsfu_trunk_round_trip_seconds"
	trunkEstimate       = "volsfu_trunk_estimate_bytes_per_second"
	trunkPackets        = "volsfu_trunk_packets_total"
	trunkBytes          = "volsfu_trunk_bytes_total"
	trunkMasked         = "volsfu_trunk_masked_tracks"
	trunkCopies         = "volsfu_trunk_copies"
	trunkPassed         = "volsfu_trunk_passed_publications"
	trunkUntaken        = "volsfu_trunk_untaken_packets_total"
	trunkMalformed      = "volsfu_trunk_messages_refused_total"
	trunkPayloads       = "volsfu_trunk_payloads_dropped_total"
	trunkOpened         = "volsfu_trunks_opened_total"
	trunkClosed         = "volsfu_trunks_closed_total"
	trunkHandshakes     = "volsfu_trunk_handshakes_refused_total"
)

// clusterFamilies are the metrics derived from a Cluster.
var clusterFamilies = []family{
	{clusterNodes, "Other nodes of the cluster by state: alive, draining, suspected (no heartbeats), dead; this " +
		"and all other metrics of the cluster and of trunks are absent without --cluster.", []string{"state"}},
	{clusterConnected, "1 while a NATS server is reachable, otherwise 0.", nil},
	{clusterRoutes, "Connections of the embedded NATS server to those of other nodes.", nil},
	{clusterLoad, "Used share of this node's capacity, 0 to 1, as other nodes are told.", nil},
	{clusterHeartbeats, "Heartbeats of other nodes by result: on_time, late (more than half the time after which a " +
		"node is suspected since the former one), refused (versions that this node does not share).",
		[]string{"result"}},
	{clusterMessages, "Messages between nodes over NATS, by direction.", []string{"direction"}},
	{clusterDropped, "Messages and events between nodes that were dropped, by reason: queue (full), invalid, stale " +
		"(of an earlier incarnation or an unknown node), limit (of rate or memory), events (a room did not take " +
		"them in time), unsent (NATS was not reachable, or the message was too large).", []string{"reason"}},
	{clusterRepairs, "Repairs of the state by kind: gap (a missing change), requested, received and served " +
		"(snapshots).", []string{"kind"}},
	{clusterUndelivered, "Data messages of this node that did not reach another node, by reason: dead (or without " +
		"the room), unlinked (no trunk within 5 s), limit (of a trunk or its queue), size, lossy (any reason, for " +
		"lossy messages).", []string{"reason"}},
	{clusterDataDropped, "Data messages of other nodes that this node did not deliver, by reason: limit (of " +
		"deliveries in a room; each recipient counts), sender (the room does not have the participant), invalid, " +
		"queue (too many events waited; lossy messages only).", []string{"reason"}},
	{clusterRefused, "Certificates of peers that are not those of the cluster.", nil},
	{clusterJoins, "Clients by the way in which the cluster handled their join or session: moved (sent to another " +
		"node), proxied (their websocket is proxied), adopted (a session of another node continues here), resumed " +
		"(a session of this node).", []string{"way"}},
	{clusterJoinsRefused, "Joins and resumes that were refused, by reason: full (all nodes are), ticket (invalid), " +
		"expired (ticket), unreachable (the node to which the websocket is proxied).", []string{"reason"}},
	{clusterProxied, "Open websockets that are proxied, by side: entry (to another node), home (from another " +
		"node).", []string{"side"}},
	{clusterRecords, "Records of sessions of other nodes that this node keeps.", nil},
	{clusterRecordBytes, "Bytes of these records.", nil},
	{clusterRecordsLost, "Records of sessions that were dropped because of a limit.", nil},
	{trunkCount, "Open trunks to other nodes.", nil},
	{trunkLanes, "Lanes of the open trunks.", nil},
	{trunkRoundTrip, "Round-trip time of each open trunk; a summary of the current values: quantile 0 is the " +
		"minimum, 1 the maximum.", nil},
	{trunkEstimate, "Estimated rate of each open trunk, on the wire; summarised likewise.", nil},
	{trunkPackets, "RTP packets of trunks by direction.", []string{"direction"}},
	{trunkBytes, "Bytes of these packets on the wire, by direction.", []string{"direction"}},
	{trunkMasked, "Tracks that other nodes take and that the trunks do not carry, because the estimate is too low.",
		nil},
	{trunkCopies, "Nodes to which this node sends a publication of its own, of the publication with the most.", nil},
	{trunkPassed, "Publications of other nodes that pass through a node between their home and the last node, by " +
		"side: parent (this node passes the publication on), child (another node passes it on to this node).",
		[]string{"side"}},
	{trunkUntaken, "Packets of tracks that this node has not taken.", nil},
	{trunkMalformed, "Control messages of trunks that were refused; the trunk is closed.", nil},
	{trunkPayloads, "Poses and data messages that were not sent to a node, by reason: size, rate, backlog (too " +
		"many bytes wait), unlinked (no trunk).", []string{"reason"}},
	{trunkOpened, "Trunks that were opened.", nil},
	{trunkClosed, "Trunks that ended.", nil},
	{trunkHandshakes, "Failed handshakes of trunks, by reason: certificate (not one of the cluster), other.",
		[]string{"reason"}},
}

// Cluster is the state of this server as a node of a cluster. All fields except Nodes, Connected, Routes, Load,
// Proxied, Records, RecordBytes, Trunks, Masked, Copies and PassedOn are counters since the start.
type Cluster struct {
	Nodes     ClusterNodes
	Connected bool
	Routes    int
	// Load is the used share of the capacity, 0 to 1.
	Load                                       float64
	Heartbeats                                 Heartbeats
	MessagesReceived, MessagesSent             uint64
	Dropped                                    ClusterDrops
	Repairs                                    Repairs
	Undelivered                                Undelivered
	DataDropped                                DataDrops
	CertificatesRefused                        uint64
	Joins                                      ClusterJoins
	Proxied                                    ProxiedWebsockets
	Records                                    int
	RecordBytes                                int
	RecordsDropped                             uint64
	Trunks                                     []Trunk
	TrunkReceived, TrunkSent                   Count
	Masked                                     int
	Copies                                     int
	PassedOn                                   PassedPublications
	Untaken, Malformed                         uint64
	Payloads                                   PayloadDrops
	TrunksOpened, TrunksClosed                 uint64
	HandshakesRefused, CertificatesWrongOnLane uint64
}

// ClusterNodes counts the other nodes by state.
type ClusterNodes struct {
	Alive, Draining, Suspected, Dead int
}

// Heartbeats counts heartbeats of other nodes. Received includes Late.
type Heartbeats struct {
	Received, Late, Refused uint64
}

// ClusterDrops counts dropped messages and events of other nodes.
type ClusterDrops struct {
	Queue, Invalid, Stale, Limit, Events, Unsent uint64
}

// Repairs counts repairs of the state of rooms.
type Repairs struct {
	Gaps, Requested, Received, Served uint64
}

// Undelivered counts data messages that did not reach other nodes.
type Undelivered struct {
	Dead, Unlinked, Limit, Size, Lossy uint64
}

// DataDrops counts data messages of other nodes that this node did not deliver. Limit counts each recipient.
type DataDrops struct {
	Limit, Sender, Invalid, Queue uint64
}

// ClusterJoins counts joins and resumes, and those that were refused.
type ClusterJoins struct {
	Moved, Proxied, Adopted, Resumed   uint64
	Full, Ticket, Expired, Unreachable uint64
}

// ProxiedWebsockets are the numbers of open websockets to and from other nodes.
type ProxiedWebsockets struct {
	Entry, Home int
}

// PassedPublications are the numbers of publications of other nodes that this node passes on, and of those that others
// pass on to this node.
type PassedPublications struct {
	Parent, Child int
}

// Trunk is the state of one open trunk.
type Trunk struct {
	Lanes     int
	RoundTrip time.Duration
	// Estimate is in bit/s, 0 while unknown.
	Estimate float64
}

// PayloadDrops counts poses and data messages that were not sent on a trunk.
type PayloadDrops struct {
	Size, Rate, Backlog, Unlinked uint64
}

// clusterCollector converts the state of a node to metrics.
type clusterCollector struct {
	read  func() Cluster
	descs map[string]*prometheus.Desc
}

// RegisterCluster registers the metrics of a node of a cluster. read is called at each scrape, by several goroutines at
// once.
func RegisterCluster(registerer prometheus.Registerer, read func() Cluster) error {
	c := &clusterCollector{read, make(map[string]*prometheus.Desc, len(clusterFamilies))}
	for _, f := range clusterFamilies {
		c.descs[f.name] = descOf(f.name)
	}
	if err := registerer.Register(c); err != nil {
		return fmt.Errorf("register metrics of the cluster: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c *clusterCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range c.descs {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *clusterCollector) Collect(to chan<- prometheus.Metric) {
	s := c.read()
	e := emitter{c.descs, to}
	e.gauge(clusterNodes, float64(s.Nodes.Alive), "alive")
	e.gauge(clusterNodes, float64(s.Nodes.Draining), "draining")
	e.gauge(clusterNodes, float64(s.Nodes.Suspected), "suspected")
	e.gauge(clusterNodes, float64(s.Nodes.Dead), "dead")
	connected := 0.0
	if s.Connected {
		connected = 1
	}
	e.gauge(clusterConnected, connected)
	e.gauge(clusterRoutes, float64(s.Routes))
	e.gauge(clusterLoad, s.Load)
	e.count(clusterHeartbeats, s.Heartbeats.Received-s.Heartbeats.Late, "on_time")
	e.count(clusterHeartbeats, s.Heartbeats.Late, "late")
	e.count(clusterHeartbeats, s.Heartbeats.Refused, "refused")
	e.count(clusterMessages, s.MessagesReceived, in)
	e.count(clusterMessages, s.MessagesSent, out)
	e.count(clusterDropped, s.Dropped.Queue, "queue")
	e.count(clusterDropped, s.Dropped.Invalid, "invalid")
	e.count(clusterDropped, s.Dropped.Stale, "stale")
	e.count(clusterDropped, s.Dropped.Limit, "limit")
	e.count(clusterDropped, s.Dropped.Events, "events")
	e.count(clusterDropped, s.Dropped.Unsent, "unsent")
	e.count(clusterRepairs, s.Repairs.Gaps, "gap")
	e.count(clusterRepairs, s.Repairs.Requested, "requested")
	e.count(clusterRepairs, s.Repairs.Received, "received")
	e.count(clusterRepairs, s.Repairs.Served, "served")
	e.count(clusterUndelivered, s.Undelivered.Dead, "dead")
	e.count(clusterUndelivered, s.Undelivered.Unlinked, "unlinked")
	e.count(clusterUndelivered, s.Undelivered.Limit, "limit")
	e.count(clusterUndelivered, s.Undelivered.Size, "size")
	e.count(clusterUndelivered, s.Undelivered.Lossy, "lossy")
	e.count(clusterDataDropped, s.DataDropped.Limit, "limit")
	e.count(clusterDataDropped, s.DataDropped.Sender, "sender")
	e.count(clusterDataDropped, s.DataDropped.Invalid, "invalid")
	e.count(clusterDataDropped, s.DataDropped.Queue, "queue")
	e.count(clusterRefused, s.CertificatesRefused)
	e.joins(s)
	e.gauge(clusterRecords, float64(s.Records))
	e.gauge(clusterRecordBytes, float64(s.RecordBytes))
	e.count(clusterRecordsLost, s.RecordsDropped)
	e.trunks(s)
}

func (e emitter) joins(s Cluster) {
	e.count(clusterJoins, s.Joins.Moved, "moved")
	e.count(clusterJoins, s.Joins.Proxied, "proxied")
	e.count(clusterJoins, s.Joins.Adopted, "adopted")
	e.count(clusterJoins, s.Joins.Resumed, "resumed")
	e.count(clusterJoinsRefused, s.Joins.Full, "full")
	e.count(clusterJoinsRefused, s.Joins.Ticket, "ticket")
	e.count(clusterJoinsRefused, s.Joins.Expired, "expired")
	e.count(clusterJoinsRefused, s.Joins.Unreachable, "unreachable")
	e.gauge(clusterProxied, float64(s.Proxied.Entry), "entry")
	e.gauge(clusterProxied, float64(s.Proxied.Home), "home")
}

func (e emitter) trunks(s Cluster) {
	lanes := 0
	trips, estimates := make([]float64, len(s.Trunks)), make([]float64, len(s.Trunks))
	for i, t := range s.Trunks {
		lanes += t.Lanes
		trips[i], estimates[i] = t.RoundTrip.Seconds(), t.Estimate/8
	}
	e.gauge(trunkCount, float64(len(s.Trunks)))
	e.gauge(trunkLanes, float64(lanes))
	e.summary(trunkRoundTrip, trips)
	e.summary(trunkEstimate, estimates)
	e.count(trunkPackets, s.TrunkReceived.Packets, in)
	e.count(trunkPackets, s.TrunkSent.Packets, out)
	e.count(trunkBytes, s.TrunkReceived.Bytes, in)
	e.count(trunkBytes, s.TrunkSent.Bytes, out)
	e.gauge(trunkMasked, float64(s.Masked))
	e.gauge(trunkCopies, float64(s.Copies))
	e.gauge(trunkPassed, float64(s.PassedOn.Parent), "parent")
	e.gauge(trunkPassed, float64(s.PassedOn.Child), "child")
	e.count(trunkUntaken, s.Untaken)
	e.count(trunkMalformed, s.Malformed)
	e.count(trunkPayloads, s.Payloads.Size, "size")
	e.count(trunkPayloads, s.Payloads.Rate, "rate")
	e.count(trunkPayloads, s.Payloads.Backlog, "backlog")
	e.count(trunkPayloads, s.Payloads.Unlinked, "unlinked")
	e.count(trunkOpened, s.TrunksOpened)
	e.count(trunkClosed, s.TrunksClosed)
	e.count(trunkHandshakes, s.CertificatesWrongOnLane, "certificate")
	e.count(trunkHandshakes, s.HandshakesRefused-s.CertificatesWrongOnLane, "other")
}
