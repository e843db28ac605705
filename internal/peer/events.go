package peer

import (
	"errors"
	"io"
	"log/slog"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
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
	case client.Uplink:
		log.Info("uplink", "carries", e.Estimate, "tracks given up", len(e.GaveUp))
	case client.Refused:
		log.Warn("frames are not shown", "participant", e.Track.Participant, "publication", e.Track.Publication,
			"reason", e.Err, "hint", hint(e.Err))
	case client.Interrupted:
		log.Warn("the connection to the server was lost, resuming", "error", e.Err)
	case client.Resumed:
		log.Info("resumed")
	case client.Closing:
		log.Warn("the server is closing", "code", e.Code, "message", e.Message, "grace", e.Grace)
	}
}

// hint returns the measure against refused frames.
func hint(err error) string {
	switch {
	case errors.Is(err, e2ee.ErrNoKey):
		return "give the secret of the room by --e2ee-key-file or " + PassphraseVariable
	case errors.Is(err, e2ee.ErrUnknownEpoch):
		return "the participants have changed the secret: add the new one to the file of --e2ee-key-file"
	case errors.Is(err, e2ee.ErrWrongKey):
		return "compare the secret or passphrase, and the name of the room, with those of the participant"
	case errors.Is(err, e2ee.ErrNotEncrypted):
		return "the participant has to encrypt, or join without a secret to see publications that are not encrypted"
	case errors.Is(err, e2ee.ErrAltered), errors.Is(err, e2ee.ErrReplay):
		return "the server or another participant with the secret sends frames that the publisher has not sent like this"
	}
	return "use programs of the same version"
}

// NewLog returns the log of a command, which writes text to the command's standard error.
func NewLog(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
