package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/transport"
)

// registerICETCP adds the counts of an endpoint's ICE-TCP connections to the metrics.
func registerICETCP(registry *prometheus.Registry, endpoint *transport.Endpoint) error {
	for _, gauge := range []struct {
		state string
		count func(transport.TCPStats) int
	}{
		{"proven", func(s transport.TCPStats) int { return s.Open - s.Strangers }},
		{"stranger", func(s transport.TCPStats) int { return s.Strangers }},
	} {
		options := prometheus.GaugeOpts{
			Name: "volsfu_ice_tcp_connections", Help: "ICE-TCP connections by state: proven to be for a participant, or stranger.",
			ConstLabels: prometheus.Labels{"state": gauge.state},
		}
		if err := registry.Register(prometheus.NewGaugeFunc(options, func() float64 { return float64(gauge.count(endpoint.TCPStats())) })); err != nil {
			return err
		}
	}
	stale := prometheus.CounterOpts{Name: "volsfu_ice_tcp_stale_packets_total", Help: "Packets that were dropped since they had waited too long for an ICE-TCP connection."}
	if err := registry.Register(prometheus.NewCounterFunc(stale, func() float64 { return float64(endpoint.TCPStats().Stale) })); err != nil {
		return err
	}
	return registerReasons(registry, "volsfu_ice_tcp_refused_total", "ICE-TCP connections that were refused, or ended without having proven to be for a participant.",
		map[string]func() uint64{
			"address":  func() uint64 { return endpoint.TCPStats().AddressFull },
			"checks":   func() uint64 { return endpoint.TCPStats().TooManyChecks },
			"peer":     func() uint64 { return endpoint.TCPStats().PeerFull },
			"rate":     func() uint64 { return endpoint.TCPStats().TooOften },
			"total":    func() uint64 { return endpoint.TCPStats().Full },
			"unproven": func() uint64 { return endpoint.TCPStats().Unproven },
		})
}
