package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openAddressLimits creates the limits of addresses, which all requests of clients pass, and the limits of their
// connections, and registers the counters of both.
func (s *Server) openAddressLimits(
	registry *prometheus.Registry, counts *metrics.Metrics, log *signalling.Log,
) (*signalling.AddressLimits, error) {
	limits, err := signalling.NewAddressLimits(s.config.Signalling, counts, log)
	if err != nil {
		return nil, err
	}
	s.connections = newConnections(s.config.Server.AddressConnections, limits.Trusts)
	return limits, metrics.Register(registry,
		metrics.Counted(metrics.WebsocketsRefused, "address_connections", s.connections.exceeded.Load),
		metrics.Counted(metrics.WebsocketsRefused, "address_open", func() uint64 { return limits.Stats().Open }),
		metrics.Counted(metrics.WebsocketsRefused, "address_rate", func() uint64 { return limits.Stats().Rate }),
		metrics.Counted(metrics.WebsocketsRefused, "proxy_header", func() uint64 { return limits.Stats().Header }),
	)
}
