// Package publish implements volpeer publish: it joins a room, publishes a source and optional audio, and prints a
// summary.
//
// A broadcast is owned by the goroutine of its method run. The feed and the audio have a goroutine each. The counters
// are atomic or guarded by a mutex.
package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/replay"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/timing"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// options has the flags of volpeer publish.
type options struct {
	production.Options
	room       peer.Room
	audio      string
	camera     string
	screen     string
	most       peer.Bitrate
	controller string
	pose       string
	seconds    float64
	json       bool
	times      timing.Measurement
}

// errName is returned if the object has the name of the audio publication or of a picture.
var errName = errors.New("--publication: expected another name than those of the audio and of the pictures")

// Command returns the command volpeer publish.
func Command() *cobra.Command {
	p := &options{Options: production.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Publish point clouds, pictures and audio",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), peer.NewLog(cmd.ErrOrStderr()))
		},
	}
	p.room.Flags(cmd.Flags())
	p.room.InterfaceFlags(cmd.Flags())
	p.room.KeyFlags(cmd.Flags())
	f := cmd.Flags()
	p.Flags(f, 40000)
	p.PublishFlags(f)
	f.StringVar(&p.audio, "audio", "", "audio to publish: tone, or an Ogg Opus file that is played in a loop")
	f.StringVar(&p.camera, "camera", "", "webcam to publish: "+fileGrammar)
	f.StringVar(&p.screen, "screen", "", "screen to publish, with the same grammar as --camera")
	f.Var(&p.most, "max-bitrate", "largest bitrate to send, such as 20Mbit; the default is the estimated capacity")
	f.StringVar(&p.controller, "controller", string(client.ControllerAuto),
		"congestion control: auto, which is L4S if the server reports the ECN field; gcc; or paper000")
	f.StringVar(&p.pose, "pose", "", "position of the object in the room, or of the pictures if there is no object: "+
		"X,Y,Z in metres, and optionally YAW in degrees to the left")
	f.Float64Var(&p.seconds, "seconds", 0, "time to publish in seconds; 0 means until interrupted")
	f.BoolVar(&p.json, "json", false, "print one JSON object at the end")
	p.times.Flags(f)
	return cmd
}

// soundName is the name of the audio publication.
const soundName = "audio"

// run publishes until the context ends or the broadcast fails permanently.
func (p *options) run(ctx context.Context, out, console io.Writer, log *slog.Logger) error {
	settings, err := p.check(log)
	if err != nil {
		return err
	}
	b, err := p.open(ctx, settings)
	if err != nil {
		return err
	}
	defer b.producer.Close()
	b.console, b.log = console, log
	if err := p.times.Open(log); err != nil {
		return err
	}
	session, err := p.enter(ctx, b)
	if err != nil {
		return errors.Join(err, p.times.Close())
	}
	p.times.Follow(session)
	log.Info("joined", "room", session.Room(), "identity", session.Identity(), "source", p.Source, "tiles",
		len(b.description.Tiles), "qualities", len(b.description.Qualities))
	err = b.run(ctx, session, p.seconds)
	_ = session.Close()
	if p.json {
		sum := b.summary()
		sum.Layers = p.times.Sum()
		err = errors.Join(err, json.NewEncoder(out).Encode(sum))
	} else {
		_, printed := fmt.Fprint(out, p.times.Sum().Table())
		err = errors.Join(err, printed)
	}
	return errors.Join(err, p.times.Close())
}

// settings are the checked flags.
type settings struct {
	production.Settings
	sound    *opus.Recording // nil without audio
	pose     *client.Pose    // nil without a pose
	pictures []*picture.Player
}

// check parses and checks the flags.
func (p *options) check(log *slog.Logger) (s settings, err error) {
	if err := p.room.Check(); err != nil {
		return s, err
	}
	switch {
	case p.audio != "" && p.Name == soundName, p.camera != "" && p.Name == cameraName,
		p.screen != "" && p.Name == screenName:
		return s, fmt.Errorf("%w, got %q", errName, p.Name)
	case p.seconds < 0:
		return s, fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	// Without --identity the token contains the identity.
	p.TakeLooksFrom(cmp.Or(p.room.Identity, p.room.Token))
	if s.Settings, err = p.Settings(log); err != nil {
		return s, err
	}
	if s.sound, err = openSound(p.audio); err != nil {
		return s, fmt.Errorf("--audio: %w", err)
	}
	if s.pose, err = placed(p.pose); err != nil {
		return s, fmt.Errorf("--pose: %w", err)
	}
	if s.pictures, err = openPictures(p.camera, p.screen); err != nil {
		return s, err
	}
	if p.Source == sourceNone && len(s.pictures) == 0 {
		return s, errNothing
	}
	return s, nil
}

// open opens the source and prepares the encoder. A recording of encoded tiles is sent without encoding.
func (p *options) open(ctx context.Context, s settings) (*broadcast, error) {
	if p.Source == sourceNone {
		return &broadcast{producer: nothing{}, sound: s.sound, pose: s.pose, pictures: s.pictures}, nil
	}
	replayed, err := replay.Open(p.Source)
	if err != nil {
		return nil, err
	}
	if replayed != nil {
		description, err := replayed.Publication(p.Name, p.VR2Gather)
		if err != nil {
			replayed.Close()
			return nil, err
		}
		return &broadcast{producer: replayed, description: description, sound: s.sound, pose: s.pose,
			pictures: s.pictures}, nil
	}
	source, err := p.Open(ctx, s.Settings)
	if err != nil {
		return nil, err
	}
	b, err := p.prepare(ctx, s, source)
	if err != nil {
		_ = source.Close()
		return nil, err
	}
	b.producer = closing{b.producer, source}
	return b, nil
}

// closing is a feed that also closes the source.
type closing struct {
	feed
	source io.Closer
}

// Close closes the feed before the source.
func (c closing) Close() {
	c.feed.Close()
	_ = c.source.Close()
}

// prepare returns a broadcast without sinks, which enter sets.
func (p *options) prepare(ctx context.Context, s settings, source capture.Source) (*broadcast, error) {
	producer, description, err := p.Prepare(ctx, s.Settings, source)
	if err != nil {
		return nil, err
	}
	return &broadcast{producer: producer, description: description, sound: s.sound, pose: s.pose,
		pictures: s.pictures}, nil
}

// enter joins the room with the prepared publications and sets the sinks of the broadcast.
func (p *options) enter(ctx context.Context, b *broadcast) (*client.Session, error) {
	var publications []volumetric.Publication
	if b.description.Name != "" {
		publications = append(publications, b.description)
	}
	for _, player := range b.pictures {
		publications = append(publications, player.Publication())
	}
	if b.sound != nil {
		publications = append(publications, opus.Publication(soundName))
	}
	session, err := p.room.Join(ctx, client.Config{Publications: publications, MaxUplink: volumetric.Bitrate(p.most),
		Controller: client.Controller(p.controller), FrameTimes: p.times.Wanted(), Log: b.log})
	if err != nil {
		return nil, err
	}
	b.voice = session.Publisher(soundName)
	for _, player := range b.pictures {
		b.screens = append(b.screens, session.Publisher(player.Publication().Name))
	}
	placed := b.screens
	if b.description.Name != "" {
		b.sink = session.Publisher(p.Name)
		placed = []*client.Publisher{session.Publisher(p.Name)}
	}
	if p.VR2Gather {
		b.sink = vr2gatherSink{b.sink, session}
	}
	if b.pose != nil {
		for _, publisher := range placed {
			publisher.SetPose(*b.pose)
		}
	}
	return session, nil
}
