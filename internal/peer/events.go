package peer

import (
	"io"
	"log/slog"

	"github.com/volsfu/volsfu/pkg/client"
)

// LogEvent logs an event of the room.
func LogEvent(log *slog.Logger, e client.Event) {
	switch e := e.(type) {
	case client.Connected:
		log.Info("connected")
	case client.ParticipantJoined:
		log.Info("participant joined", "participant", e.Participant.Identity)
	case client.ParticipantLeft:
		log.Info("participant left", "participant", e.Identity, "reason", e.Reason)
	case client.Published:
		log.Info("publication", "participant", e.Participant, "publication", e.Publication.Name,
			"tiles", len(e.Publication.Tiles), "qualities", len(e.Publication.Qualities))
	case client.Unpublished:
		log.Info("publication ended", "participant", e.Publication.Participant, "publication",
			e.Publication.Publication)
	case client.Recording:
		if e.Active {
			log.Info("the server records the room")
		} else {
			log.Info("the server no longer records the room")
		}
	case client.Uplink:
		log.Info("uplink", "carries", e.Estimate, "tracks given up", len(e.GaveUp))
	case client.Interrupted:
		log.Warn("the connection to the server was lost, resuming", "error", e.Err)
	case client.Resumed:
		log.Info("resumed")
	case client.Closing:
		log.Warn("the server is closing", "code", e.Code, "message", e.Message, "grace", e.Grace)
	}
}

// NewLog returns the log of a command, which writes text to the command's standard error.
func NewLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
