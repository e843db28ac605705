package server

import (
	"runtime"
	"time"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/internal/forward/counters"
)

// operating is the server from the view of operators. operating implements admin.Host.
type operating struct {
	*Server
	version string
	started time.Time
}

// State implements admin.Host.
func (o operating) State() admin.ServerState {
	s := o.engine.Stats()
	return admin.ServerState{
		Version: o.version, Started: o.started, Now: time.Now(), Draining: o.draining.Load(),
		Goroutines: runtime.NumGoroutine(),
		Tracks:     s.Tracks, Slots: s.Slots, ActiveSlots: s.ActiveSlots, CacheBytes: s.CacheBytes,
		Received: adminTraffic(s.Received), Sent: adminTraffic(s.Sent),
		Frames: admin.Frames{Forwarded: s.FramesForwarded, Late: s.DroppedLate, Overrun: s.DroppedOverrun,
			Budget: s.DroppedBudget},
		Switches: s.Switches,
		NACKs: admin.NACKs{
			Received: s.NACKsReceived, Answered: s.NACKed.Answered,
			Requested: s.Requested, Recovered: s.Recovered, Delayed: s.Delayed, Lost: s.Lost,
		},
		ResidenceP50: milliseconds(s.Residence.Quantile(0.5)), ResidenceP99: milliseconds(s.Residence.Quantile(0.99)),
		Addresses: o.toldAddresses(), TURN: o.turnState(),
	}
}

func adminTraffic(t counters.TrafficByKind) admin.Traffic {
	return admin.Traffic{
		Packets: t.Media.Packets + t.Parity.Packets + t.Retransmission.Packets + t.Audio.Packets + t.Probe.Packets,
		Media:   t.Media.Bytes, Parity: t.Parity.Bytes, Retransmission: t.Retransmission.Bytes, Audio: t.Audio.Bytes,
		Probe: t.Probe.Bytes,
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// StartDrain implements admin.Host.
func (o operating) StartDrain() {
	select {
	case o.leaving <- struct{}{}:
	default:
		// A drain is already requested.
	}
}

// DrainRequested is signalled when an operator requests a drain.
func (s *Server) DrainRequested() <-chan struct{} { return s.leaving }
