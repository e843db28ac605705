package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openVR2Gather serves VR2Gather's dialect, and adds its counts to the metrics.
func (s *Server) openVR2Gather(
	mux *http.ServeMux, door *signalling.Door, registry *prometheus.Registry, auth signalling.Authenticator,
	counts *metrics.Metrics, log *signalling.Log,
) error {
	c := s.config
	handler, err := signalling.NewVR2GatherServer(c.VR2Gather, c.Signalling, s.node, auth, counts, log, c.Server.Dev)
	if err != nil {
		return err
	}
	for _, counter := range []struct {
		name, help string
		count      func() uint64
	}{
		{"volsfu_vr2gather_refused_total", "Peers of VR2Gather's dialect that were refused, or whose connection the server ended.", handler.Refused},
		{"volsfu_vr2gather_withheld_total", "Publications that were not sent to a peer of VR2Gather's dialect, which cannot read them.", s.node.VR2GatherWithheld},
		{"volsfu_vr2gather_ignored_total", "What quality messages of VR2Gather's dialect said in vain: unreadable, or of clients, tiles and qualities that there are not.",
			s.node.VR2GatherIgnored},
	} {
		options := prometheus.CounterOpts{Name: counter.name, Help: counter.help}
		if err := registry.Register(prometheus.NewCounterFunc(options, func() float64 { return float64(counter.count()) })); err != nil {
			return err
		}
	}
	mux.Handle(signalling.VR2GatherPath, door.Guard(handler))
	mux.Handle(signalling.VR2GatherRoomPath, door.Guard(handler))
	return nil
}
