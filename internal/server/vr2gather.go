package server

import (
	"github.com/volsfu/volsfu/internal/dialect/vr2gather"
	"github.com/volsfu/volsfu/internal/metrics"
)

// serveVR2Gather serves VR2Gather's dialect if it is enabled, and adds its counters to the metrics.
func (s *startup) serveVR2Gather() error {
	c := s.config
	if !c.VR2Gather.Enabled {
		return nil
	}
	handler, err := vr2gather.NewServer(
		c.VR2Gather, c.Signalling, onlyNode{s.node}, s.clients, s.counts, s.requests, c.Server.Dev,
	)
	if err != nil {
		return err
	}
	s.dialect = handler
	err = metrics.Register(s.registry,
		metrics.Counted(metrics.VR2GatherRefused, "", handler.Refused),
		metrics.Counted(metrics.VR2GatherWithheld, "", s.node.Withheld),
		metrics.Counted(metrics.VR2GatherIgnored, "", handler.Ignored),
	)
	if err != nil {
		return err
	}
	s.mux.Handle(vr2gather.Path, s.limits.Guard(handler))
	s.mux.Handle(vr2gather.RoomPath, s.limits.Guard(handler))
	return nil
}
