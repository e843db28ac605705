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
	handler, err := signalling.NewVR2GatherServer(
		c.VR2Gather, c.Signalling, onlyNode{s.node}, auth, counts, log, c.Server.Dev,
	)
	if err != nil {
		return err
	}
	err = metrics.Register(registry,
		metrics.Counted(metrics.VR2GatherRefused, "", handler.Refused),
		metrics.Counted(metrics.VR2GatherWithheld, "", s.node.VR2GatherWithheld),
		metrics.Counted(metrics.VR2GatherIgnored, "", s.node.VR2GatherIgnored),
	)
	if err != nil {
		return err
	}
	mux.Handle(signalling.VR2GatherPath, door.Guard(handler))
	mux.Handle(signalling.VR2GatherRoomPath, door.Guard(handler))
	return nil
}
