package server

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/volsfu/volsfu/internal/dialect/vr2gather"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/signalling"
)

// openVR2Gather serves VR2Gather's dialect, and adds its counters to the metrics.
func (s *Server) openVR2Gather(
	mux *http.ServeMux, limits *signalling.AddressLimits, registry *prometheus.Registry, auth signalling.Authenticator,
	counts *metrics.Metrics, log *signalling.Log,
) error {
	c := s.config
	handler, err := vr2gather.NewServer(
		c.VR2Gather, c.Signalling, onlyNode{s.node}, auth, counts, log, c.Server.Dev,
	)
	if err != nil {
		return err
	}
	s.dialect = handler
	err = metrics.Register(registry,
		metrics.Counted(metrics.VR2GatherRefused, "", handler.Refused),
		metrics.Counted(metrics.VR2GatherWithheld, "", s.node.Withheld),
		metrics.Counted(metrics.VR2GatherIgnored, "", handler.Ignored),
	)
	if err != nil {
		return err
	}
	mux.Handle(vr2gather.Path, limits.Guard(handler))
	mux.Handle(vr2gather.RoomPath, limits.Guard(handler))
	return nil
}
