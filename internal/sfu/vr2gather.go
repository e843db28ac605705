package sfu

import (
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// What a participant that speaks VR2Gather's dialect publishes.
const (
	vr2GatherSound = "voice"
	vr2GatherBody  = "body"
)

// hearingInterval is how often it is looked whether a VR2Gather peer has begun to send what it has announced.
const hearingInterval = 50 * time.Millisecond

// VR2GatherOffer is an offer to a participant that speaks the dialect, with what its lines carry.
type VR2GatherOffer struct {
	*signal.Offer
	// Tracks are by mid what each line is for: what the participant publishes on it, or what it is sent.
	Tracks map[string]vr2gather.Track
	// Publishes are the mids of the lines that it publishes on, and Tiles is how many tiles it has.
	Publishes map[string]bool
	Tiles     int
}

// vr2GatherPeer is what the room keeps of a participant that speaks the dialect.
type vr2GatherPeer struct {
	query vr2gather.Query
	// told are the reasons for which something was passed over that are in the log already.
	told map[string]bool
}

// vr2GatherCounts count what was passed over for participants that speak the dialect.
type vr2GatherCounts struct {
	withheld, ignored atomic.Uint64
}

// VR2GatherWithheld counts publications that were not sent to VR2Gather peers, which cannot read them.
func (n *Node) VR2GatherWithheld() uint64 { return n.counts.withheld.Load() }

// VR2GatherIgnored counts what quality messages of VR2Gather peers said that cannot be read, or is about clients, tiles and qualities that there are not.
func (n *Node) VR2GatherIgnored() uint64 { return n.counts.ignored.Load() }

// VR2GatherIdentity is who a participant is that speaks the dialect.
func VR2GatherIdentity(client uint32) string { return strconv.FormatUint(uint64(client), 10) }

// VR2GatherPublications are what a participant publishes that announces itself so: sound, and tiles of points. The codecs are named once frames have come.
func VR2GatherPublications(q vr2gather.Query) []volumetric.Publication {
	return []volumetric.Publication{
		{
			Name: vr2GatherSound, Kind: volumetric.KindAudio, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec: volumetric.Codec{MIMEType: "audio/pcm", ClockRate: 48000},
			Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
		},
		{
			Name: vr2GatherBody, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
			Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			Tiles: make([]volumetric.Tile, q.Tiles), Qualities: make([]volumetric.QualityLevel, q.Qualities),
		},
	}
}

// withheld tells why a VR2Gather peer is not sent a publication, empty if it is.
func withheld(d *volumetric.Publication) string {
	switch {
	case !d.VR2Gather:
		return "not in VR2Gather's format"
	case d.Kind == volumetric.KindAudio && d.Codec.Is(volumetric.MIMEOpus):
		return "sound as Opus"
	default:
		return ""
	}
}

// readable are those of the publications that the participant can be sent. What it cannot read is counted, and logged once.
func (p *participant) readable(publications []*publication) []*publication {
	if p.profile.withheld == nil {
		return publications
	}
	var readable []*publication
	for _, publication := range publications {
		reason := p.profile.withheld(&publication.Description)
		if reason == "" && p.profile.onePerKind && p.room.participants.second(publication) {
			reason = "VR2Gather knows one of each publisher"
		}
		if reason == "" {
			readable = append(readable, publication)
			continue
		}
		p.room.node.counts.withheld.Add(1)
		p.passOver("publication withheld from a VR2Gather peer: "+reason, zap.Stringer("publication", publication.Ref))
	}
	return readable
}

// succeed has VR2Gather peers be sent, now that a participant's first publication of a kind has ended, the one that was withheld for its sake.
func (r *Room) succeed(owner *participant, kind volumetric.Kind) {
	next := slices.IndexFunc(owner.publications, func(p *publication) bool {
		return p.Description.Kind == kind && withheld(&p.Description) == ""
	})
	if next < 0 {
		return
	}
	for _, other := range r.participants.others(owner) {
		if other.profile.onePerKind {
			other.subscribe(announced(owner.publications[next : next+1]))
		}
	}
}

// passOver logs once per reason that something is passed over.
func (p *participant) passOver(reason string, fields ...zap.Field) {
	if told := p.vr2gather.told; !told[reason] {
		told[reason] = true
		p.log.Warn(reason, append(fields, zap.String("repeated", "not logged again"))...)
	}
}

// hear announces a publication of a VR2Gather peer once its first frame has come, which names its codec. Users without a point cloud, or without a microphone,
// announce to the server what never comes.
func (r *Room) hear(owner *participant, p *publication) {
	for _, track := range p.Tracks {
		codec, ok := track.FrameCodec()
		if !ok {
			continue
		}
		p.silent = false
		if codec != (volumetric.FourCC{}) {
			p.Description.Codec.Format = "codec=" + printable(codec)
		}
		owner.log.Info("publication is heard", zap.String("publication", p.Ref.Publication), zap.String("codec", printable(codec)))
		r.participants.broadcast(owner, func() signal.Message {
			return &signal.Published{Participant: owner.identity, Publication: p.Description}
		})
		r.announce(owner, []*publication{p})
		return
	}
	r.wakeBy(r.now.Add(hearingInterval))
}

// printable is a codec's name with a dot for what is neither letter nor digit: it came from the network, and goes into others' messages.
func printable(codec volumetric.FourCC) string {
	text := codec[:]
	for i, c := range text {
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
			codec[i] = '.'
		}
	}
	return string(text)
}

// trackOf returns a name of a line as peers know it. A line to a peer carries video of any quality, so that its name has
// none.
func trackOf(n subscriber.Name) vr2gather.Track {
	t := vr2gather.Track{Kind: n.Kind, Client: n.Publisher, Tile: n.Tile, Quality: volumetric.QualityOff}
	if n.Kind == volumetric.KindAudio {
		t.Quality = 0
	}
	return t
}

// offerFor adds to an offer for a VR2Gather peer what its lines carry.
func (p *participant) offerFor(offer *signal.Offer) signal.Message {
	if p.vr2gather == nil {
		return offer
	}
	o := &VR2GatherOffer{
		Offer: offer, Tracks: make(map[string]vr2gather.Track), Publishes: make(map[string]bool), Tiles: p.vr2gather.query.Tiles,
	}
	p.subscriber.Slots.Offer()
	for _, m := range offer.Media {
		if s := p.subscriber.Slots.ByMID(m.MID); s != nil {
			o.Tracks[m.MID] = trackOf(s.Name())
			continue
		}
		publication := p.publication(m.Publication)
		if m.Role != signal.RolePublish || publication == nil {
			continue
		}
		o.Publishes[m.MID] = true
		o.Tracks[m.MID] = vr2gather.Track{
			Kind: publication.Description.Kind, Client: p.vr2gather.query.Client, Tile: m.Tile, Quality: *m.Quality,
		}
	}
	return o
}

// openSlots gives slots their forwarding ends as soon as their lines are negotiated.
func (p *participant) openSlots() {
	for _, s := range p.subscriber.Slots.All() {
		if s.Output != nil || s.Outlet.SSRC() == 0 {
			continue
		}
		if !p.profile.namedLines {
			s.Output = p.connection.Receiver.AddSlot(s.Outlet, s.Kind)
			continue
		}
		named := newNamedOutlet(s.Outlet, s.Name())
		s.SetNamedOutput(named)
		s.Output = p.connection.Receiver.AddSlot(named, s.Kind)
	}
}
