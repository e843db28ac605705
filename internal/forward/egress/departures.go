package egress

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// maxExtension is the highest identifier of the one-byte form (RFC 8285 section 4.2).
const maxExtension = 14

// departures number the packets that are queued to one receiver, over all its slots, and match the receiver's reports
// with the packets. With transport-wide congestion control (draft-holmer-rmcat-transport-wide-cc-extensions-01) packets
// carry the number. With RFC 8888 reports identify packets by SSRC and sequence number. The writer owns the departures.
type departures struct {
	// extension is the negotiated identifier of the header extension, 0 if there is none or reports follow RFC 8888.
	extension uint8
	// header holds the extension. The headers of all slots point to this header: a header is read before the next one
	// is numbered.
	header rtp.Header
	// place is the number's position within the extension.
	place   []byte
	history *sender.History
	// counted are the history's statistics that the writer's counters already include.
	counted feedback.TransportHistoryStats
}

// kinds maps packet classes to the kinds of the history.
var kinds = [packetlog.Classes]feedback.PacketKind{
	packetlog.Media: feedback.Media, packetlog.Parity: feedback.Parity, packetlog.Audio: feedback.Audio,
	packetlog.Retransmission: feedback.Retransmission, packetlog.Probe: feedback.Probe,
}

func newDepartures(byStream bool) *departures {
	if byStream {
		return &departures{history: sender.NewByStream()}
	}
	return &departures{history: sender.NewNumbered(uint16(rand.Uint32()))}
}

// extend sets the identifier of the extension, 0 for none.
func (d *departures) extend(extension uint8) {
	d.extension, d.header, d.place = extension, rtp.Header{}, nil
	if extension == 0 {
		return
	}
	if err := feedback.SetTransportSequence(&d.header, extension, 0); err != nil {
		panic("an empty header has no room for the transport-wide sequence number: " + err.Error())
	}
	d.place = d.header.GetExtension(extension)
}

// write sets the number in a header.
func (d *departures) write(h *rtp.Header, number uint16) {
	binary.BigEndian.PutUint16(d.place, number)
	h.Extension, h.ExtensionProfile, h.Extensions = true, d.header.ExtensionProfile, d.header.Extensions
}

// count adds the report statistics since the last call to the counters.
func (d *departures) count(counts *counters.Counts) {
	stats := d.history.Stats()
	counts[counters.TransportReports] += stats.Reports - d.counted.Reports
	counts[counters.TransportReceived] += stats.Received - d.counted.Received
	counts[counters.TransportLost] += stats.Lost - d.counted.Lost
	counts[counters.TransportUnmatched] += stats.Unmatched - d.counted.Unmatched
	counts[counters.TransportMarked] += stats.Marked - d.counted.Marked
	counts[counters.TransportFalseMarks] += stats.FalseMarks - d.counted.FalseMarks
	counts[counters.MalformedRTCP] += stats.Malformed - d.counted.Malformed
	d.counted = stats
}
