package server

import (
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/trace"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/redundancy"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/udp"
)

// dataPlane converts the statistics of the engine and the socket to those of package metrics.
type dataPlane struct {
	engine   *forward.Engine
	endpoint *transport.Endpoint
}

// Snapshot implements metrics.DataPlane.
func (d dataPlane) Snapshot() metrics.Snapshot {
	s, sockets, paths := d.engine.Stats(), d.endpoint.Stats(), d.engine.Paths(nil)
	return metrics.Snapshot{
		Tracks: s.Tracks,
		Slots: metrics.SlotCounts{Idle: max(0, s.Slots-s.ActiveSlots-s.WaitingSlots), Waiting: s.WaitingSlots,
			Active: s.ActiveSlots},
		Received:        traffic(s.Received),
		Sent:            traffic(s.Sent),
		FramesForwarded: s.FramesForwarded,
		FramesDropped: metrics.FrameDrops{
			Late: s.DroppedLate, Overrun: s.DroppedOverrun, Budget: s.DroppedBudget, Expired: s.DroppedExpired,
			Incomplete: s.DroppedIncomplete,
			Blocked:    s.DroppedBlocked,
		},
		Switches:    s.Switches,
		SwitchDelay: histogram(s.SwitchDelay),
		Residence:   histogram(s.Residence),
		PacerHold:   histogram(s.PacerHold),
		Paced:       s.Paced,

		FrameHold: histogram(s.FrameHold), FrameReception: histogram(s.FrameReception),
		FrameDistribution: histogram(s.FrameDistribution),
		NACKsReceived: metrics.NACKsReceived{
			Messages: s.NACKsReceived, Answered: s.NACKed.Answered, Owed: s.NACKed.Owed, Unknown: s.NACKed.Unknown,
			Expired: s.NACKed.Expired, Suppressed: s.NACKed.Suppressed, Limited: s.NACKed.Limited,
			Refused: s.NACKed.Refused,
		},
		NACKsSent: metrics.NACKsSent{
			Messages: s.NACKsSent, Recovered: s.Recovered, Delayed: s.Delayed, Lost: s.Lost, Limited: s.RequestsLimited,
		},
		TransportFeedback: metrics.TransportFeedback{
			Received: s.TransportReports, Sent: s.TransportReportsSent,
			PacketsReceived: s.TransportReceived, PacketsLost: s.TransportLost,
			PacketsUnmatched: s.TransportUnmatched, PacketsMarked: s.TransportMarked,
			FalseMarks: s.TransportFalseMarks,
		},
		Receivers:          receivers(paths),
		Probes:             metrics.Probes{Sent: s.Probes, Measured: s.ProbesMeasured},
		Overuses:           s.Overuses,
		FeedbackSilences:   s.Silences,
		KeyFramesAsked:     s.KeyFramesAsked,
		KeyFramesRequested: s.KeyFramesRequested,
		PacketsDropped: metrics.PacketDrops{
			MalformedRTP: s.MalformedRTP, MalformedRTCP: s.MalformedRTCP, MalformedPayload: s.MalformedPayload,
			UnknownSSRC: s.UnknownSSRC, Duplicate: s.Duplicates, Late: s.Late, Feedback: s.TransportDropped,
		},
		CacheBytes:        s.CacheBytes,
		ReceiveQueueDrops: sockets.ReceiveDrops,
		Sockets: metrics.Sockets{
			Received: metrics.Transfers{
				Datagrams: sockets.Received, Calls: sockets.Receives, Codepoints: codepoints(sockets.ReceivedECN),
			},
			Sent: metrics.Transfers{
				Datagrams: sockets.Sent, Calls: sockets.Sends, Codepoints: codepoints(sockets.SentECN),
			},
			Runs:       sockets.Runs,
			SendErrors: sockets.SendErrors,
		},
		L4SHops:       l4sHops(paths),
		PublisherHops: publisherHops(d.engine.PublisherHops()),
		ECNFallbacks:  ecnFallbacks(s.ECNFallbacks),
		Redundancy: metrics.Redundancy{
			Copied: copies(s.Copied), SecondPaths: secondPaths(paths), Outages: s.Outages,
		},
	}
}

func copies(n [redundancy.Classes]counters.Traffic) metrics.Copies {
	count := func(c redundancy.Class) metrics.Count { return metrics.Count{Packets: n[c].Packets, Bytes: n[c].Bytes} }
	return metrics.Copies{
		Audio: count(redundancy.Audio), LowestQuality: count(redundancy.Lowest), FrameEnd: count(redundancy.FrameEnd),
		Repair: count(redundancy.Repair), Other: count(redundancy.Other),
	}
}

// secondPaths counts the receivers with a second path by its state.
func secondPaths(paths []egress.Path) metrics.SecondPaths {
	var n [redundancy.States]int
	for _, p := range paths {
		if p.Second != nil {
			n[p.Second.State]++
		}
	}
	return metrics.SecondPaths{
		Untested: n[redundancy.Untested], Carrying: n[redundancy.Carrying], Limited: n[redundancy.Limited],
		Silent: n[redundancy.Silent],
	}
}

func traffic(t counters.TrafficByKind) metrics.Traffic {
	count := func(t counters.Traffic) metrics.Count { return metrics.Count{Packets: t.Packets, Bytes: t.Bytes} }
	return metrics.Traffic{
		Media: count(t.Media), Retransmission: count(t.Retransmission), Parity: count(t.Parity), Probe: count(t.Probe),
		Audio: count(t.Audio),
	}
}

func codepoints(c udp.CodepointCounts) metrics.Codepoints {
	return metrics.Codepoints{NotECT: c[ecn.NotECT], ECT1: c[ecn.ECT1], ECT0: c[ecn.ECT0], CE: c[ecn.CE]}
}

// l4sHops counts the paths to receivers that were sent packets by state of L4S.
func l4sHops(paths []egress.Path) metrics.L4SHops {
	var n [congestion.L4SStates]int
	for _, p := range paths {
		if p.Sent > 0 {
			n[p.L4S]++
		}
	}
	return metrics.L4SHops{
		Off: n[congestion.L4SOff], Testing: n[congestion.L4STesting], Capable: n[congestion.L4SCapable],
		Marked: n[congestion.L4SMarked], Classic: n[congestion.L4SClassic], Failed: n[congestion.L4SFailed],
	}
}

func publisherHops(n [ecn.CE + 1]int) metrics.PublisherHops {
	return metrics.PublisherHops{NotECT: n[ecn.NotECT], ECT1: n[ecn.ECT1], ECT0: n[ecn.ECT0], CE: n[ecn.CE]}
}

func ecnFallbacks(n [congestion.Fallbacks]uint64) metrics.ECNFallbacks {
	return metrics.ECNFallbacks{
		Bleached: n[congestion.Bleached], Rewritten: n[congestion.Rewritten], AllMarked: n[congestion.AllMarked],
		Dropped: n[congestion.Dropped], Classic: n[congestion.Classic],
	}
}

// receivers returns the paths of receivers that report packet arrivals.
func receivers(paths []egress.Path) []metrics.ReceiverPath {
	known := make([]metrics.ReceiverPath, 0, len(paths))
	for _, p := range paths {
		if p.Known {
			known = append(known, metrics.ReceiverPath{
				Estimate: float64(p.Estimate), Wanted: float64(p.Wanted), Sent: float64(p.Sent), Loss: p.Loss,
				RoundTrip: p.RTT,
			})
		}
	}
	return known
}

func histogram(h trace.Histogram) metrics.Histogram {
	return metrics.Histogram{Bounds: h.Bounds(), Counts: h.Counts[:], Sum: h.Sum}
}
