package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/timing"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/cameras"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/internal/peer/worth"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// publication is what the flags of volpeer publish say.
type publication struct {
	room       peer.Room
	source     string
	capture    capture.Options
	background []string
	cameras    cameras.Flags
	tiling     string
	tiles      int
	labels     string
	qualities  string
	split      string
	sampling   string
	weights    string
	codec      string
	colors     int
	within     time.Duration
	vr2gather  bool
	audience   string
	seeing     worth.Flags
	name       string
	mode       string
	audio      string
	most       peer.Bitrate
	pose       string
	seconds    float64
	json       bool
	times      timing.Measurement
}

func newPublish() *cobra.Command {
	p := &publication{capture: capture.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "publish",
		Short: "Publish point clouds, and sound beside them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), newLog(cmd))
		},
	}
	p.room.Flags(cmd.Flags())
	f := cmd.Flags()
	p.productionFlags(f, 40000)
	f.IntVar(&p.colors, "color-quality", 0, fmt.Sprintf("quality of colours that the codec keeps with loss, 1 to 100 as JPEG counts it; 0 is %d", codec.DefaultColorQuality))
	f.DurationVar(&p.within, "encode-within", 0, "how long after its capture a frame is to be encoded: what will not be done by then is not begun; 0 is three frame intervals")
	f.BoolVar(&p.vr2gather, "vr2gather", false, "publish what clients of VR2Gather can read, too: frames with its header, and the codec cwi0")
	f.StringVar(&p.audio, "audio", "", "sound beside the video: tone, or an Ogg Opus file that is played in a loop")
	f.Var(&p.most, "max-bitrate", "what is sent at most, such as 20Mbit; without, as much as the network carries")
	f.StringVar(&p.audience, "audience", "", "where those stand who look at the object, X,Y,Z in metres in its own coordinates: what they see less of has fewer points, by --regions and --detail-distance")
	p.seeing.Add(f, "")
	f.StringVar(&p.pose, "pose", "", "where the object stands in the room: X,Y,Z in metres, and YAW in degrees to the left if it is turned")
	f.Float64Var(&p.seconds, "seconds", 0, "end after so many seconds; 0 goes on until interrupted")
	f.BoolVar(&p.json, "json", false, "print one JSON object at the end")
	p.times.Flags(f)
	return cmd
}

// soundName is what the publication of sound is called.
const soundName = "audio"

// run publishes until the context ends or something fails for good.
func (p *publication) run(ctx context.Context, out, console io.Writer, log *slog.Logger) error {
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
	log.Info("joined", "room", session.Room(), "identity", session.Identity(), "source", p.source, "tiles", len(b.description.Tiles), "qualities", len(b.description.Qualities))
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

// open opens the source and prepares what is made of it. Tiles that were encoded before are sent as they are.
func (p *publication) open(ctx context.Context, settings production) (*broadcast, error) {
	replayed, err := openReplay(p.source)
	if err != nil {
		return nil, err
	}
	if replayed != nil {
		b, err := replayed.broadcast(p, settings)
		if err != nil {
			replayed.Close()
		}
		return b, err
	}
	source, err := capture.Open(p.source, p.capture)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	if a := settings.audience; a != nil {
		if source, err = a.before(source); err != nil {
			return nil, err
		}
	}
	b, err := p.prepare(ctx, settings, source)
	if err != nil {
		_ = source.Close()
		return nil, err
	}
	b.producer = closing{b.producer, source}
	return b, nil
}

// closing is a feed that closes its source.
type closing struct {
	feed
	source io.Closer
}

// Close ends the feed before its source.
func (c closing) Close() {
	c.feed.Close()
	_ = c.source.Close()
}

// prepare makes the producer and describes what it will publish. What remains is where to.
func (p *publication) prepare(ctx context.Context, settings production, source capture.Source) (*broadcast, error) {
	config := settings.config
	config.Box = source.Info().Box
	producer, err := produce.New(source, config)
	if err != nil {
		return nil, err
	}
	tiles, qualities, err := producer.Measure(ctx)
	if err != nil {
		producer.Close()
		return nil, err
	}
	description := describe(p.name, config, source.Info().FrameRate, tiles, qualities)
	description.VR2Gather = p.vr2gather
	return &broadcast{
		producer:    producer,
		description: description,
		sound:       settings.sound,
		pose:        settings.pose,
	}, nil
}

// enter joins the room with what was prepared, and says where to broadcast it.
func (p *publication) enter(ctx context.Context, b *broadcast) (*client.Session, error) {
	publications := []volumetric.Publication{b.description}
	if b.sound != nil {
		publications = append(publications, opus.Publication(soundName))
	}
	session, err := p.room.Join(ctx, client.Config{Publications: publications, MaxUplink: volumetric.Bitrate(p.most), FrameTimes: p.times.Wanted(), Log: b.log})
	if err != nil {
		return nil, err
	}
	b.sink, b.voice = session.Publisher(p.name), session.Publisher(soundName)
	if p.vr2gather {
		b.sink = vr2gatherSink{b.sink, session}
	}
	if b.pose != nil {
		session.Publisher(p.name).SetPose(*b.pose)
	}
	return session, nil
}
