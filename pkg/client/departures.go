package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

// wireOverhead is what a packet takes on the wire beside its RTP header and payload, in bytes: 8 for the header extension that numbers it, 16 for the
// authentication tag of AES-GCM (RFC 7714), 8 for UDP and 20 for IPv4.
const wireOverhead = 8 + 16 + 8 + 20

// departures number the packets of a connection, and gather what the server's reports say of them until the sending goroutine takes it. They
// belong to media's lock.
type departures struct {
	*feedback.TransportHistory
	// fresh is what came since the sending goroutine looked; its history bounds it, which reports on a packet twice at most.
	fresh []congestion.PacketResult
	wake  chan<- struct{}
}

// Feedback takes one packet of transport-wide feedback, as the history does, and wakes the sending goroutine.
func (d *departures) Feedback(packet []byte, now time.Time, results []feedback.PacketResult) []feedback.PacketResult {
	first := len(results)
	results = d.TransportHistory.Feedback(packet, now, results)
	for _, r := range results[first:] {
		d.fresh = append(d.fresh, congestion.PacketResult{
			Sequence: r.Sequence,
			Size:     r.Size + wireOverhead,
			Sent:     r.Sent,
			Arrived:  r.Arrived,
			Received: r.Received,
		})
	}
	if len(d.fresh) > 0 {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
	return results
}
