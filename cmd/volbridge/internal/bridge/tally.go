package bridge

import "sync/atomic"

// Drop is a reason for which something is not passed on.
type Drop int

// The reasons, each with what it counts.
const (
	// DropDatagram counts datagrams of no type that a connector sends, too short or too long.
	DropDatagram Drop = iota
	// DropSource counts datagrams of others than the connector.
	DropSource
	// DropSecret counts datagrams that present another secret than the bridge's.
	DropSecret
	// DropPacket counts datagrams whose header does not fit what follows it.
	DropPacket
	// DropTrack counts datagrams of a tile or quality that was not announced.
	DropTrack
	// DropNotTaken counts datagrams with media, where media of the connector is not taken.
	DropNotTaken
	// DropContradiction counts datagrams that name another length than the rest of their frame, overlap what came of it
	// in part, or come too scattered.
	DropContradiction
	// DropDuplicate counts datagrams whose piece was there already.
	DropDuplicate
	// DropLate counts datagrams of frames that are complete or given up, or older than those.
	DropLate
	// DropSize counts datagrams of frames that are too long.
	DropSize
	// DropIncomplete counts frames that were given up, since a newer one was complete, too many were under way, or the
	// rest of them did not come.
	DropIncomplete
	// DropHeader counts frames that do not begin with VR2Gather's header.
	DropHeader
	// DropBehind counts frames that came while too many waited to be sent to the server.
	DropBehind
	// DropUnsent counts frames that came while there was no connection to the server, or before the server had taken
	// the publication.
	DropUnsent
	// DropChoice counts choices of quality that could not be read, that name nobody who is here, or that the server has
	// refused.
	DropChoice
	// DropOrder counts received frames that were older than one that the connector has: it would refuse them.
	DropOrder
	// DropClient counts received frames of publishers for whom there is no client number.
	DropClient
	// DropAudio counts received packets of audio that cannot be read.
	DropAudio
	// DropReceived counts received packets of VR2Gather's dialect that cannot be read, or are of more streams than
	// anybody has.
	DropReceived
	// DropOverrun counts received frames that came while too many waited to be sent to the connector.
	DropOverrun
	// DropSuperseded and DropReceivedSuperseded count frames that waited to be transcoded when a newer one came, the
	// connector's and received ones.
	DropSuperseded
	DropReceivedSuperseded
	// DropCodec and DropReceivedCodec count frames that could not be transcoded, the connector's and received ones.
	DropCodec
	DropReceivedCodec
	// DropSilent counts received frames that came while the connector was silent.
	DropSilent
	// DropSocket counts datagrams that could not be sent to the connector.
	DropSocket

	// Reasons is the number of reasons.
	Reasons
)

// reasonNames are what summaries call the reasons.
var reasonNames = [Reasons]string{
	DropDatagram:           "malformed_datagrams",
	DropSource:             "foreign_datagrams",
	DropSecret:             "wrong_secrets",
	DropPacket:             "malformed_packets",
	DropTrack:              "packets_of_unknown_tracks",
	DropNotTaken:           "packets_not_taken",
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

// String is the name of the reason in summaries.
func (d Drop) String() string { return reasonNames[d] }

// Tally counts what was dropped. Its methods are safe for concurrent use.
type Tally struct{ counts [Reasons]atomic.Int64 }

// Add counts one.
func (t *Tally) Add(d Drop) { t.counts[d].Add(1) }

// Count is how often something was dropped for the reason.
func (t *Tally) Count(d Drop) int64 { return t.counts[d].Load() }

// Counts gives the reasons for which anything was dropped, by name, with how often.
func (t *Tally) Counts() map[string]int64 {
	counts := make(map[string]int64)
	for d := range Reasons {
		if n := t.Count(d); n > 0 {
			counts[d.String()] = n
		}
	}
	return counts
}
