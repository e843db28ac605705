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
	history *feedback.TransportHistory
	// fresh is what came since the sending goroutine looked; the history bounds it, which tells of a packet twice at most.
	fresh []congestion.PacketResult
}

// report takes one packet of transport-wide feedback. It tells whether there is something for the sending goroutine.
func (d *departures) report(packet []byte, now time.Time) bool {
	d.fresh = d.history.Feedback(packet, now, d.fresh)
	return len(d.fresh) > 0
}
