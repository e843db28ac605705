package server

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/transport"
)

// registerLimits adds to the metrics what clients do too often for it to be looked at.
func registerLimits(registry *prometheus.Registry, engine *forward.Engine, endpoint *transport.Endpoint) error {
	for _, counter := range []struct {
		name, help string
		count      func() uint64
	}{
		{"volsfu_key_frame_requests_limited_total", "PLI and entries of FIR that were not looked at, because one receiver asked too often.",
			func() uint64 { return engine.Stats().KeyFramesLimited }},
		{"volsfu_ice_checks_refused_total", "Connectivity checks of ICE that were not looked at, because they came from more addresses than one client may have.",
			func() uint64 { return endpoint.Limits().ChecksRefused }},
		{"volsfu_control_datagrams_limited_total", "STUN messages and DTLS records that were dropped, because one client or one address sent too many.",
			func() uint64 { return endpoint.Limits().ControlLimited }},
		{"volsfu_unconsented_datagrams_total", "Datagrams that were not sent, because the client had not answered connectivity checks for 5 s (RFC 7675).",
			func() uint64 { return endpoint.Limits().Unconsented }},
		{"volsfu_send_drops_total", "Datagrams that were dropped, because the host's send buffer had no room for them for 5 ms.",
			func() uint64 { return endpoint.Stats().SendDrops }},
	} {
		options := prometheus.CounterOpts{Name: counter.name, Help: counter.help}
		if err := registry.Register(prometheus.NewCounterFunc(options, func() float64 { return float64(counter.count()) })); err != nil {
			return err
		}
	}
	return nil
}

// registerReasons adds a counter with a reason as its label, each of which is counted elsewhere.
func registerReasons(registry *prometheus.Registry, name, help string, reasons map[string]func() uint64) error {
	for reason, count := range reasons {
		options := prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"reason": reason}}
		if err := registry.Register(prometheus.NewCounterFunc(options, func() float64 { return float64(count()) })); err != nil {
			return err
		}
	}
	return nil
}
