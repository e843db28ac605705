package relay

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// upward is what is known of the way to the server, over all sessions. It belongs to one goroutine at a time.
type upward struct {
	settings *Options
	tally    *bridge.Tally
	log      *slog.Logger
	instants *bridge.Instants
	// cloud and voice describe what is published, nil before the first frame of each, which names the codec. VR2Gather
	// announces a cloud of one tile also for users that never send one.
	cloud, voice *volumetric.Publication
	// voiceFrame is the number of the next frame of sound.
	voiceFrame uint32
	// refused is the session whose server takes no more publications.
	refused *client.Session
}

func newUpward(b *Options, tally *bridge.Tally, log *slog.Logger) *upward {
	u := &upward{settings: b, tally: tally, log: log, instants: bridge.NewInstants(b.layout.Tracks())}
	if b.dialect == dialectVR2Gather {
		now := time.Now()
		u.instants, u.voiceFrame = bridge.NewInstantsSince(now, b.layout.Tracks()), bridge.FirstNumber(now)
	}
	return u
}

// publications are what is published from the beginning of a session.
func (u *upward) publications() []volumetric.Publication {
	var list []volumetric.Publication
	for _, p := range []*volumetric.Publication{u.cloud, u.voice} {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

// outgoing is a frame of the connector's as it is published.
type outgoing struct {
	*bridge.Frame
	codec volumetric.FourCC
	data  []byte
	// foreign says that it is not in VR2Gather's format any more. Sound then has its time of capture.
	foreign bool
	capture time.Time
}

// asItIs publishes a frame byte for byte.
func asItIs(f *bridge.Frame) outgoing {
	return outgoing{Frame: f, codec: f.Header.FourCC, data: f.Data}
}

// send sends one frame, and reports whether it could. What nobody takes is counted by the session.
func (u *upward) send(ctx context.Context, session *client.Session, f outgoing) bool {
	if p := u.published(f.Kind); p != nil && p.VR2Gather == f.foreign {
		u.tally.Add(bridge.DropCodec)
		return false
	}
	publisher := u.publisher(ctx, session, f)
	if publisher == nil {
		u.tally.Add(bridge.DropUnsent)
		return false
	}
	var taken bool
	var err error
	if f.Kind == volumetric.KindAudio {
		taken, err = u.speak(publisher, f)
	} else {
		number, capture := u.instants.Of(f.Track, f.Header.TimestampMS, f.Arrival)
		taken, err = publisher.WriteFrame(f.Tile, f.Quality,
			client.OutgoingFrame{Number: number, Capture: capture, Codec: f.codec, Data: f.data})
	}
	if err != nil {
		u.tally.Add(bridge.DropUnsent)
		if !errors.Is(err, client.ErrNotConnected) {
			u.log.Warn("frame not sent", "kind", f.Kind, "bytes", len(f.data), "error", err)
		}
	}
	return taken
}

// published is what is published of a kind, nil before its first frame.
func (u *upward) published(kind volumetric.Kind) *volumetric.Publication {
	if kind == volumetric.KindAudio {
		return u.voice
	}
	return u.cloud
}

// speak sends a frame of sound: one packet of Opus where it was transcoded, and else the packets of VR2Gather's peers.
func (u *upward) speak(publisher *client.Publisher, f outgoing) (taken bool, err error) {
	if f.foreign {
		return publisher.WritePackets(0, 0, f.capture, [][]byte{f.data})
	}
	frame := vr2gather.Packet{Kind: volumetric.KindAudio, Client: u.settings.client, Frame: u.voiceFrame}
	u.voiceFrame++
	var payloads [][]byte
	for p := range vr2gather.Cut(frame, f.Data) {
		payload, err := p.Append(nil)
		if err != nil {
			return false, err
		}
		payloads = append(payloads, payload)
	}
	return publisher.WritePackets(0, 0, f.Arrival, payloads)
}

// publisher is where frames of the kind go, nil if the server does not take them.
func (u *upward) publisher(ctx context.Context, session *client.Session, f outgoing) *client.Publisher {
	place := &u.cloud
	if f.Kind == volumetric.KindAudio {
		place = &u.voice
	}
	if *place != nil {
		if publisher := session.Publisher((*place).Name); publisher != nil {
			return publisher
		}
	}
	if u.refused == session {
		return nil
	}
	publication := u.describe(f)
	limited, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
	defer cancel()
	publisher, err := session.Publish(limited, publication)
	if err != nil {
		if ctx.Err() == nil {
			u.refused = session
			u.log.Error("the server does not take the publication", "publication", publication.Name, "error", err)
		}
		return nil
	}
	*place = &publication
	u.log.Info("publishing", "publication", publication.Name, "type", publication.Codec.MIMEType, "codec",
		publication.Codec.Format, "tiles", len(publication.Tiles), "qualities", len(publication.Qualities))
	return publisher
}

// What a bridge publishes is called as what the server makes of VR2Gather's own peers.
const (
	cloudName = "body"
	voiceName = "voice"
	voiceMIME = "audio/pcm"
)

// describe describes what frames like this one are published as.
func (u *upward) describe(f outgoing) volumetric.Publication {
	var publication volumetric.Publication
	switch {
	case f.Kind == volumetric.KindVideo:
		publication = u.describeCloud(f.codec)
	case f.foreign:
		publication = opus.Publication(voiceName)
		publication.Name = voiceName
	default:
		publication = describeVoice(f.codec)
	}
	publication.VR2Gather = !f.foreign
	return publication
}

// describeCloud describes the connector's tiles. How large they are and what a quality takes nobody has said.
func (u *upward) describeCloud(codec volumetric.FourCC) volumetric.Publication {
	return volumetric.Publication{
		Name: cloudName,
		Kind: volumetric.KindVideo,
		Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "codec=" +
			codec.String()},
		Tiles:     make([]volumetric.Tile, u.settings.layout.Tiles),
		Qualities: make([]volumetric.QualityLevel, u.settings.layout.Qualities),
		VR2Gather: true,
	}
}

func describeVoice(codec volumetric.FourCC) volumetric.Publication {
	return volumetric.Publication{
		Name:      voiceName,
		Kind:      volumetric.KindAudio,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: voiceMIME, ClockRate: 48000, Format: "codec=" + codec.String()},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1),
		VR2Gather: true,
	}
}
