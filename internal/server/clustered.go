package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/cluster"
	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/cluster/entry"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/trunk"
)

// nodeIdleTimeout is the time after which an unused connection to another node is closed. A console asks every second.
const nodeIdleTimeout = 10 * time.Second

// clustered is the cluster of a server from the view of operators. clustered implements admin.Cluster.
type clustered struct {
	*Server
	own *certificate.Node
	// transport connects to the API of other nodes. The host of a URL is the name of a node.
	transport *http.Transport
}

func newClustered(s *Server, own *certificate.Node) *clustered {
	c := &clustered{Server: s, own: own}
	dialer := nodeDialer{s.member, own}
	c.transport = &http.Transport{
		DialTLSContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			// The host of the URL is the name of a node.
			node, _, _ := strings.Cut(address, ":")
			return dialer.dial(ctx, node)
		},
		MaxIdleConnsPerHost: 1, IdleConnTimeout: nodeIdleTimeout,
	}
	return c
}

// Self implements admin.Cluster.
func (c *clustered) Self() string { return c.own.Name }

// Nodes implements admin.Cluster.
func (c *clustered) Nodes() []admin.NodeState {
	trunks := make(map[string]trunk.LinkState)
	for _, t := range c.member.Trunks() {
		trunks[t.Node] = t
	}
	self := c.member.Self()
	self.Home.Node = c.own.Name
	states := []admin.NodeState{nodeState(self)}
	states[0].Self, states[0].Beat = true, time.Now()
	for _, node := range c.member.Nodes() {
		state := nodeState(node)
		if t, ok := trunks[node.Home.Node]; ok {
			state.Trunk = &admin.TrunkState{Lanes: t.Lanes, RoundTrip: milliseconds(t.RTT),
				Estimate: float64(t.Estimate), Silent: t.Silent}
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b admin.NodeState) int { return strings.Compare(a.Name, b.Name) })
	return states
}

// nodeState returns the state of a node without its trunk.
func nodeState(n cluster.Node) admin.NodeState {
	life := admin.NodeAlive
	switch n.State {
	case cluster.Suspected:
		life = admin.NodeSuspected
	case cluster.Dead:
		life = admin.NodeDead
	}
	return admin.NodeState{
		Name: n.Home.Node, Region: n.Region, URL: n.URL, State: life, Draining: n.Draining, Load: n.Load,
		Rooms: n.Rooms, Participants: n.Participants, Version: n.Version,
		Started: time.UnixMicro(int64(n.Home.Incarnation)).UTC(), Beat: n.Beat,
	}
}

// Do implements admin.Cluster.
func (c *clustered) Do(node string, r *http.Request) (*http.Response, error) {
	r.URL.Scheme, r.URL.Host = "https", node
	return c.transport.RoundTrip(r)
}

// Move implements admin.Cluster.
func (c *clustered) Move(room, node string) (moved, remaining int, err error) {
	if c.entry == nil {
		return 0, 0, fmt.Errorf("%w: the clients of this node cannot be moved", admin.ErrUnsuitable)
	}
	moved, remaining, err = c.entry.Move(room, node)
	if errors.Is(err, entry.ErrNode) {
		err = fmt.Errorf("%w: %w", admin.ErrUnsuitable, err)
	}
	return moved, remaining, err
}

// operateCluster serves the requests of other nodes about rooms, and registers the metrics of a node.
func (s *startup) operateCluster() error {
	if s.member == nil {
		return nil
	}
	s.clustered = newClustered(s.Server, s.own)
	s.toNodes = s.clustered.transport
	s.nodes.Handle(admin.APIPath, admin.NewAPI(nil, s.node, s.host, s.requests, s.clustered).ForNodes())
	return metrics.RegisterCluster(s.registry, s.clusterMetrics)
}

// api returns the operators' API for requests that the gate admits.
func (s *startup) api(gate admin.Gate) *admin.API {
	if s.clustered == nil {
		return admin.NewAPI(gate, s.node, s.host, s.requests, nil)
	}
	return admin.NewAPI(gate, s.node, s.host, s.requests, s.clustered)
}

// clusterMetrics returns the values of the metrics of this node.
func (s *Server) clusterMetrics() metrics.Cluster {
	counts := s.member.Counts()
	c := metrics.Cluster{
		Connected: s.member.Connected(), Routes: counts.Fabric.Routes, Load: s.member.Self().Load,
		Heartbeats: metrics.Heartbeats{Received: counts.Replica.Beats, Late: counts.Replica.LateBeats,
			Refused: counts.Replica.RefusedBeats},
		MessagesReceived: counts.Fabric.Received, MessagesSent: counts.Fabric.Sent,
		Dropped: metrics.ClusterDrops{Queue: counts.Fabric.Dropped, Invalid: counts.Invalid,
			Stale: counts.Replica.Stale, Limit: counts.Replica.Limited, Events: counts.Dropped,
			Unsent: counts.Fabric.Failed},
		Repairs: metrics.Repairs{Gaps: counts.Replica.Gaps, Requested: counts.Replica.Requested,
			Received: counts.Replica.Received, Served: counts.Replica.Served},
		Undelivered: metrics.Undelivered{Dead: counts.Lost.Dead, Unlinked: counts.Lost.Unlinked,
			Limit: counts.Lost.Limited, Size: counts.Lost.Large, Lossy: counts.Lost.Lossy},
		DataDropped:         metrics.DataDrops(s.node.DataLosses()),
		CertificatesRefused: counts.Refused,
		Records:             counts.Sessions.Foreign, RecordBytes: counts.Sessions.Bytes,
		RecordsDropped: counts.Sessions.Dropped,
	}
	for _, node := range s.member.Nodes() {
		switch {
		case node.State == cluster.Dead:
			c.Nodes.Dead++
		case node.State == cluster.Suspected:
			c.Nodes.Suspected++
		case node.Draining:
			c.Nodes.Draining++
		default:
			c.Nodes.Alive++
		}
	}
	for _, t := range s.member.Trunks() {
		c.Trunks = append(c.Trunks, metrics.Trunk{Lanes: t.Lanes, RoundTrip: t.RTT, Estimate: float64(t.Estimate)})
	}
	trunkMetrics(&c, counts.Trunk)
	if s.entry != nil {
		joins, proxies := s.entry.Counts(), s.signalling.Proxies()
		c.Joins = metrics.ClusterJoins{Moved: joins.Moved, Proxied: joins.Proxied, Adopted: joins.Adopted,
			Resumed: joins.Resumed, Full: joins.Refused.Full, Ticket: joins.Refused.Ticket,
			Expired: joins.Refused.Expired, Unreachable: joins.Refused.Unreachable}
		c.Proxied = metrics.ProxiedWebsockets{Entry: proxies.Entry, Home: proxies.Home}
	}
	return c
}

// trunkMetrics sets the counts of the trunks.
func trunkMetrics(c *metrics.Cluster, s trunk.Stats) {
	c.TrunkReceived = metrics.Count{Packets: s.Received.Packets, Bytes: s.Received.Bytes}
	c.TrunkSent = metrics.Count{Packets: s.Sent.Packets, Bytes: s.Sent.Bytes}
	c.Masked, c.Untaken, c.Malformed = s.Masked, s.Untaken, s.Malformed
	c.Copies, c.PassedOn = s.Copies, metrics.PassedPublications{Parent: s.Passed, Child: s.Fed}
	c.Payloads = metrics.PayloadDrops{Size: s.TooLarge, Rate: s.TooMany, Backlog: s.Unsent, Unlinked: s.Unlinked}
	c.TrunksOpened, c.TrunksClosed = s.Opened, s.Closed
	c.HandshakesRefused, c.CertificatesWrongOnLane = s.Refused, s.WrongCertificate
}
