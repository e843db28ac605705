package server

import (
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/transport"
)

// limitReadings returns the readings of client requests beyond rate limits, and of packets that could not be sent.
func limitReadings(engine *forward.Engine, endpoint *transport.Endpoint) []metrics.Reading {
	return []metrics.Reading{
		metrics.Counted(metrics.KeyFramesLimited, "", func() uint64 { return engine.Stats().KeyFramesLimited }),
		metrics.Counted(metrics.ICEChecksRefused, "", func() uint64 { return endpoint.Limits().ChecksRefused }),
		metrics.Counted(metrics.ControlLimited, "", func() uint64 { return endpoint.Limits().ControlLimited }),
		metrics.Counted(metrics.Unconsented, "", func() uint64 { return endpoint.Limits().Unconsented }),
		metrics.Counted(metrics.SendDrops, "", func() uint64 { return endpoint.Stats().SendDrops }),
	}
}
