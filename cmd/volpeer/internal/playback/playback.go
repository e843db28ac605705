// Package playback implements volpeer replay: it plays the recording of a room into a room, each recorded participant
// as a participant of its own.
package playback

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/timeline"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// options has the flags of volpeer replay.
type options struct {
	room      peer.Room
	prefix    string
	speed     float64
	keepTimes bool
	most      peer.Bitrate
	seconds   float64
	json      bool
}

var (
	errSpeed = errors.New("--speed: expected 0.1 to 10")
	errRoom  = errors.New("expected --room, or a --token that names the room")
	errKeys  = errors.New("a replay sends frames as they were recorded: unset " + peer.PassphraseVariable +
		", and leave out the key file")
)

// Command returns the command volpeer replay.
func Command() *cobra.Command {
	o := &options{}
	cmd := timeline.Command("replay", "Play the recording of a room, a folder or one segment, into a room", o.run)
	f := cmd.Flags()
	o.room.Flags(f)
	f.StringVar(&o.prefix, "prefix", "", "put in front of the names of all participants, for a room in which their "+
		"names are taken; encrypted frames need the recorded names")
	f.Float64Var(&o.speed, "speed", 1, "times as fast as recorded, 0.1 to 10")
	f.BoolVar(&o.keepTimes, "keep-times", false, "keep the recorded capture times in frames instead of the present "+
		"time; always kept in encrypted frames, which are valid with their time only")
	f.Var(&o.most, "max-bitrate", "largest bitrate to send for each participant, such as 20Mbit; the default is the "+
		"estimated capacity")
	f.Float64Var(&o.seconds, "seconds", 0, "time to play in seconds; 0 means to the end of the recording")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end")
	if flag := f.Lookup("identity"); flag != nil {
		flag.Hidden = true
	}
	return cmd
}

// queueBudget is the time for which a frame may wait for the uplink: a replay has no one who waits for its frames, so
// frames are late rather than lost.
const queueBudget = time.Second

// run plays the recording.
func (o *options) run(ctx context.Context, path string, out io.Writer, log *slog.Logger) error {
	switch {
	case !(o.speed >= 0.1 && o.speed <= 10):
		return fmt.Errorf("%w, got %g", errSpeed, o.speed)
	case o.room.Name == "" && o.room.Token == "":
		return errRoom
	case o.room.Encrypts():
		return errKeys
	case o.seconds < 0:
		return fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	reader, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = reader.Close() }()
	ctx, cancel := peer.Limit(ctx, o.seconds)
	defer cancel()
	s := newStage(reader, log, func(identity string) *performer {
		room := o.room
		room.Identity = o.prefix + identity
		return newPerformer(room.Identity, log,
			func(ctx context.Context, publications []volumetric.Publication) (*client.Session, error) {
				return room.Join(ctx, client.Config{
					Publications: publications, MaxUplink: volumetric.Bitrate(o.most), QueueBudget: queueBudget,
					Log: log,
				})
			})
	})
	s.speed, s.keepTimes = o.speed, o.keepTimes
	err = s.play(ctx)
	s.counts.Damage = reader.Damage()
	report(log, &s.counts)
	if o.json {
		err = errors.Join(err, json.NewEncoder(out).Encode(s.counts))
	}
	return err
}

// report logs the end of a replay, and the parts of the recording that are missing.
func report(log *slog.Logger, c *Counts) {
	log.Info("the replay has ended", "seconds", c.Seconds, "participants", c.Participants, "publications",
		c.Publications, "frames", c.Frames, "unwanted", c.Unwanted, "unsent", c.Unsent)
	if d := c.Damage; d.CutOff > 0 || d.Skipped > 0 {
		log.Warn("the recording is damaged or still in progress", "segments without an end", d.CutOff,
			"incomplete bytes at the end", d.Torn, "unreadable bytes", d.Skipped)
	}
	if c.Lost.Total() > 0 {
		log.Warn("the recording is incomplete", "incomplete frames", c.Lost.Incomplete, "packets not read in time",
			c.Lost.Overrun, "frames that the disk did not take", c.Lost.Discarded)
	}
}
