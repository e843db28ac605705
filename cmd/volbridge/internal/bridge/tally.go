package bridge

import "sync/atomic"

// Drop is a reason for which a datagram, packet, frame or choice is dropped.
type Drop int

// The reasons.
const (
	// DropDatagram counts datagrams of an unknown type or an invalid size.
	DropDatagram Drop = iota
	// DropSource counts datagrams that are not from the connector.
	DropSource
	// DropSecret counts datagrams with a wrong secret.
	DropSecret
	// DropPacket counts datagrams whose header does not match the rest.
	DropPacket
	// DropTrack counts datagrams of a tile or quality that was not announced.
	DropTrack
	// DropUnwanted counts media datagrams if the connector's media is not wanted.
	DropUnwanted
	// DropContradiction counts datagrams that contradict the length of their frame, overlap a received piece partially,
	// or have too many gaps between the pieces.
	DropContradiction
	// DropDuplicate counts datagrams whose piece was received before.
	DropDuplicate
	// DropLate counts datagrams of frames that are complete, dropped, or older than such a frame.
	DropLate
	// DropSize counts datagrams of frames that are too long.
	DropSize
	// DropIncomplete counts incomplete frames that were dropped because a newer one was complete, there were too many,
	// or the rest did not arrive.
	DropIncomplete
	// DropHeader counts frames without VR2Gather's header.
	DropHeader
	// DropBehind counts frames that arrived while the queue to the server was full.
	DropBehind
	// DropUnsent counts frames that arrived without a connection to the server, or before the server accepted the
	// publication.
	DropUnsent
	// DropChoice counts quality choices that could not be parsed, address an unknown client, or were refused by the
	// server.
	DropChoice
	// DropOrder counts received frames that are older than a frame that the connector has. The connector would refuse
	// them.
	DropOrder
	// DropClient counts received frames of publishers without a client number.
	DropClient
	// DropAudio counts malformed received audio packets.
	DropAudio
	// DropReceived counts received packets of VR2Gather's dialect that are malformed or exceed the number of streams.
	DropReceived
	// DropOverrun counts received frames that arrived while the queue to the connector was full.
	DropOverrun
	// DropSuperseded and DropReceivedSuperseded count frames that were replaced by a newer one while waiting for
	// transcoding: those of the connector and received ones.
	DropSuperseded
	DropReceivedSuperseded
	// DropCodec and DropReceivedCodec count frames that could not be transcoded: those of the connector and received
	// ones.
	DropCodec
	DropReceivedCodec
	// DropSilent counts received frames that arrived while the connector was silent.
	DropSilent
	// DropSocket counts datagrams that could not be sent to the connector.
	DropSocket

	// Reasons is the number of reasons.
	Reasons
)

// reasonNames has the names of the reasons in summaries.
var reasonNames = [Reasons]string{
	DropDatagram:           "malformed_datagrams",
	DropSource:             "foreign_datagrams",
	DropSecret:             "wrong_secrets",
	DropPacket:             "malformed_packets",
	DropTrack:              "packets_of_unknown_tracks",
	DropUnwanted:           "packets_not_taken",
	DropContradiction:      "contradictory_packets",
	DropDuplicate:          "duplicate_packets",
	DropLate:               "late_packets",
	DropSize:               "packets_of_too_long_frames",
	DropIncomplete:         "incomplete_frames",
	DropHeader:             "frames_without_header",
	DropBehind:             "frames_queue_full",
	DropUnsent:             "frames_not_connected",
	DropChoice:             "choices_ignored",
	DropOrder:              "received_frames_out_of_order",
	DropClient:             "received_frames_without_client",
	DropAudio:              "received_audio_malformed",
	DropReceived:           "received_packets_malformed",
	DropOverrun:            "received_frames_queue_full",
	DropSuperseded:         "frames_superseded",
	DropReceivedSuperseded: "received_frames_superseded",
	DropCodec:              "frames_not_transcoded",
	DropReceivedCodec:      "received_frames_not_transcoded",
	DropSilent:             "received_frames_connector_silent",
	DropSocket:             "datagrams_not_sent",
}

// String returns the name of the reason in summaries.
func (d Drop) String() string { return reasonNames[d] }

// Tally counts drops by reason. The methods are safe for concurrent use.
type Tally struct{ counts [Reasons]atomic.Int64 }

// Add counts one drop.
func (t *Tally) Add(d Drop) { t.counts[d].Add(1) }

// Count returns the number of drops for a reason.
func (t *Tally) Count(d Drop) int64 { return t.counts[d].Load() }

// Counts returns the number of drops by the name of the reason, without zeros.
func (t *Tally) Counts() map[string]int64 {
	counts := make(map[string]int64)
	for d := range Reasons {
		if n := t.Count(d); n > 0 {
			counts[d.String()] = n
		}
	}
	return counts
}
