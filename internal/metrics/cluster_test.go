package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// node is a node of a cluster with a different number in each field.
var node = Cluster{
	Nodes: ClusterNodes{Alive: 1, Draining: 2, Suspected: 3, Dead: 4}, Connected: true, Routes: 5, Load: 0.25,
	Heartbeats:       Heartbeats{Received: 13, Late: 7, Refused: 8},
	MessagesReceived: 9, MessagesSent: 10,
	Dropped:     ClusterDrops{Queue: 11, Invalid: 12, Stale: 13, Limit: 14, Events: 15, Unsent: 16},
	Repairs:     Repairs{Gaps: 17, Requested: 18, Received: 19, Served: 20},
	Undelivered: Undelivered{Dead: 21, Unlinked: 22, Limit: 23, Size: 24, Lossy: 61},
	DataDropped: DataDrops{Limit: 65, Sender: 66, Invalid: 67, Queue: 68}, CertificatesRefused: 25,
	Joins: ClusterJoins{Moved: 26, Proxied: 27, Adopted: 28, Resumed: 29, Full: 30, Ticket: 31, Expired: 32,
		Unreachable: 33},
	Proxied: ProxiedWebsockets{Entry: 34, Home: 35}, Records: 36, RecordBytes: 37, RecordsDropped: 38,
	Trunks: []Trunk{
		{Lanes: 1, RoundTrip: 2 * time.Millisecond, Estimate: 8e6},
		{Lanes: 2, RoundTrip: time.Millisecond, Estimate: 16e6},
	},
	TrunkReceived: Count{39, 40}, TrunkSent: Count{41, 42}, Masked: 43, Untaken: 44, Malformed: 45,
	Copies: 62, PassedOn: PassedPublications{Parent: 63, Child: 64},
	Payloads:     PayloadDrops{Size: 46, Rate: 47, Backlog: 48, Unlinked: 49},
	TrunksOpened: 50, TrunksClosed: 51, HandshakesRefused: 60, CertificatesWrongOnLane: 7,
}

func TestCluster(t *testing.T) {
	registry, _ := newRegistry(t, plane{})
	names := make([]string, len(clusterFamilies))
	for i, f := range clusterFamilies {
		names[i] = f.name
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(expected(t, "cluster.txt")), names...); err != nil {
		t.Error(err)
	}
}
