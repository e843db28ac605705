package server

import (
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/icetcp"
)

// iceTCPReadings returns the readings of an endpoint's ICE-TCP connections.
func iceTCPReadings(endpoint *transport.Endpoint) []metrics.Reading {
	open := func(state string, count func(icetcp.Stats) int) metrics.Reading {
		value := func() float64 { return float64(count(endpoint.TCPStats())) }
		return metrics.Reading{Name: metrics.ICETCPConnections, Label: state, Value: value}
	}
	refused := func(reason string, count func(icetcp.Stats) uint64) metrics.Reading {
		return metrics.Counted(metrics.ICETCPRefused, reason, func() uint64 { return count(endpoint.TCPStats()) })
	}
	return []metrics.Reading{
		open("proven", func(s icetcp.Stats) int { return s.Open - s.Strangers }),
		open("stranger", func(s icetcp.Stats) int { return s.Strangers }),
		refused("address", func(s icetcp.Stats) uint64 { return s.AddressFull }),
		refused("checks", func(s icetcp.Stats) uint64 { return s.TooManyChecks }),
		refused("peer", func(s icetcp.Stats) uint64 { return s.PeerFull }),
		refused("rate", func(s icetcp.Stats) uint64 { return s.TooOften }),
		refused("total", func(s icetcp.Stats) uint64 { return s.Full }),
		refused("unproven", func(s icetcp.Stats) uint64 { return s.Unproven }),
		metrics.Counted(metrics.ICETCPStale, "", func() uint64 { return endpoint.TCPStats().Stale }),
	}
}
