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

// upward is the state of the direction to the server, over all sessions. upward is owned by one goroutine at a time.
type upward struct {
	settings *Options
	tally    *bridge.Tally
	log      *slog.Logger
	instants *bridge.Instants
	// cloud and audio describe the publications. Both are nil before the first frame, which names the codec. VR2Gather
	// announces a cloud of one tile even for users that never send one.
	cloud, audio *volumetric.Publication
	// audioFrame is the number of the next audio frame.
	audioFrame uint32
	// refused is the session in which the server refused a publication.
	refused *client.Session
}

func newUpward(b *Options, tally *bridge.Tally, log *slog.Logger) *upward {
	u := &upward{settings: b, tally: tally, log: log, instants: bridge.NewInstants(b.layout.Tracks())}
	if b.dialect == dialectVR2Gather {
		now := time.Now()
		u.instants, u.audioFrame = bridge.NewInstantsSince(now, b.layout.Tracks()), bridge.FirstNumber(now)
	}
	return u
}

// publications returns the publications from the beginning of a session.
func (u *upward) publications() []volumetric.Publication {
	var list []volumetric.Publication
	for _, p := range []*volumetric.Publication{u.cloud, u.audio} {
		if p != nil {
			list = append(list, *p)
		}
	}
	return list
}

// outgoing is a frame of the connector as it is published.
type outgoing struct {
	*bridge.Frame
	codec volumetric.FourCC
	data  []byte
	// transcoded is set if the frame is no longer in VR2Gather's format. Then an audio frame has a capture time.
	transcoded bool
	capture    time.Time
}

// unchanged returns a frame that is published as received.
func unchanged(f *bridge.Frame) outgoing {
	return outgoing{Frame: f, codec: f.Header.FourCC, data: f.Data}
}

// send sends one frame. send reports whether the session took the frame; the session counts frames that no receiver
// takes.
func (u *upward) send(ctx context.Context, session *client.Session, f outgoing) bool {
	if p := u.published(f.Kind); p != nil && p.VR2Gather == f.transcoded {
		u.tally.Add(bridge.DropCodec)
		return false
	}
	if session.Keys() != nil && !f.transcoded {
		// VR2Gather's format cannot be encrypted.
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
		taken, err = u.sendAudio(publisher, f)
	} else {
		number, capture := u.instants.Next(f.Track, f.Header.TimestampMS, f.Arrival)
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

// published returns the publication of a kind, nil before its first frame.
func (u *upward) published(kind volumetric.Kind) *volumetric.Publication {
	if kind == volumetric.KindAudio {
		return u.audio
	}
	return u.cloud
}

// sendAudio sends an audio frame: one Opus packet if the frame was transcoded, otherwise packets in the format of
// VR2Gather's peers.
func (u *upward) sendAudio(publisher *client.Publisher, f outgoing) (taken bool, err error) {
	if f.transcoded {
		return publisher.WritePackets(0, 0, f.capture, [][]byte{f.data})
	}
	frame := vr2gather.Packet{Kind: volumetric.KindAudio, Client: u.settings.client, Frame: u.audioFrame}
	u.audioFrame++
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

// publisher returns the publisher for a frame. publisher publishes if necessary, and returns nil if the server refuses.
func (u *upward) publisher(ctx context.Context, session *client.Session, f outgoing) *client.Publisher {
	place := &u.cloud
	if f.Kind == volumetric.KindAudio {
		place = &u.audio
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
			u.log.Error("the server refused the publication", "publication", publication.Name, "error", err)
		}
		return nil
	}
	*place = &publication
	u.log.Info("publishing", "publication", publication.Name, "type", publication.Codec.MIMEType, "codec",
		publication.Codec.Format, "tiles", len(publication.Tiles), "qualities", len(publication.Qualities))
	return publisher
}

// The names and the type of a bridge's publications, equal to those that the server assigns to VR2Gather's own peers.
const (
	cloudName = "body"
	audioName = "voice"
	audioMIME = "audio/pcm"
)

// describe returns the publication for a frame.
func (u *upward) describe(f outgoing) volumetric.Publication {
	var publication volumetric.Publication
	switch {
	case f.Kind == volumetric.KindVideo:
		publication = u.describeCloud(f.codec)
	case f.transcoded:
		publication = opus.Publication(audioName)
		publication.Name = audioName
	default:
		publication = describeAudio(f.codec)
	}
	publication.VR2Gather = !f.transcoded
	return publication
}

// describeCloud returns the publication of the connector's tiles. The boxes and the bitrates of the qualities are
// unknown.
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

func describeAudio(codec volumetric.FourCC) volumetric.Publication {
	return volumetric.Publication{
		Name:      audioName,
		Kind:      volumetric.KindAudio,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: audioMIME, ClockRate: 48000, Format: "codec=" + codec.String()},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1),
		VR2Gather: true,
	}
}
