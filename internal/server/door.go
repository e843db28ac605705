package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openDoor makes the door in front of all clients and the bounds of their connections, and registers the counts of
// both.
func (s *Server) openDoor(
	registry *prometheus.Registry, counts *metrics.Metrics, log *signalling.Log,
) (*signalling.Door, error) {
	door, err := signalling.NewDoor(s.config.Signalling, counts, log)
	if err != nil {
		return nil, err
	}
	s.connections = newConnections(s.config.Server.AddressConnections, door.Trusts)
	return door, metrics.Register(registry,
		metrics.Counted(metrics.WebsocketsRefused, "address_connections", s.connections.exceeded.Load),
		metrics.Counted(metrics.WebsocketsRefused, "address_open", func() uint64 { return door.Stats().Open }),
		metrics.Counted(metrics.WebsocketsRefused, "address_rate", func() uint64 { return door.Stats().Rate }),
		metrics.Counted(metrics.WebsocketsRefused, "proxy_header", func() uint64 { return door.Stats().Header }),
	)
}
