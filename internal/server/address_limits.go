package server

import (
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openAddressLimits creates the limits of addresses, which all requests of clients pass, and the limits of their
// connections, and registers the counters of both.
func (s *startup) openAddressLimits() error {
	limits, err := signalling.NewAddressLimits(s.config.Signalling, s.counts, s.requests)
	if err != nil {
		return err
	}
	s.limits = limits
	s.connections = newConnections(s.config.Server.AddressConnections, limits.Trusts)
	return metrics.Register(s.registry,
		metrics.Counted(metrics.WebsocketsRefused, "address_connections", s.connections.exceeded.Load),
		metrics.Counted(metrics.WebsocketsRefused, "address_open", func() uint64 { return limits.Stats().Open }),
		metrics.Counted(metrics.WebsocketsRefused, "address_rate", func() uint64 { return limits.Stats().Rate }),
		metrics.Counted(metrics.WebsocketsRefused, "proxy_header", func() uint64 { return limits.Stats().Header }),
	)
}
