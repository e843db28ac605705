package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
)

// wireOverhead is what a packet takes on the wire beside its RTP header of 12 bytes and its payload, in bytes.
const wireOverhead = congestion.PacketOverhead - 12

// departures number the packets of a connection, and gather what the server's reports say of them until the sending goroutine takes it. They
// belong to media's lock.
type departures struct {
	history *feedback.TransportHistory
	// fresh is what came since the sending goroutine looked; the history bounds it, which tells of a packet twice at most.
	fresh []congestion.PacketResult
}

// report takes one packet of transport-wide feedback. It tells whether there is something for the sending goroutine.
func (d *departures) report(packet []byte, now time.Time) bool {
	d.fresh = d.history.Feedback(packet, now, d.fresh)
	return len(d.fresh) > 0
}
