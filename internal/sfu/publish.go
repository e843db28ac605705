package sfu

import (
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// readable returns those of the publications that the participant can be sent. The others are counted, and logged once.
func (p *participant) readable(publications []*publication) []*publication {
	if p.profile.Withheld == nil {
		return publications
	}
	var readable []*publication
	for _, publication := range publications {
		reason := p.profile.Withheld(&publication.Description)
		if reason == "" && p.profile.OnePerKind && p.room.participants.second(p.profile, publication) {
			reason = p.profile.Name + " knows one of each publisher"
		}
		if reason == "" {
			readable = append(readable, publication)
			continue
		}
		p.room.node.withheld.Add(1)
		p.warnOnce("publication withheld from a "+p.profile.Name+" peer: "+reason,
			zap.Stringer("publication", publication.Ref))
	}
	return readable
}

// second reports whether a publication is not the first of its kind that a client can be sent, of its publisher's.
func (m members) second(f *Profile, p *publication) bool {
	owner := m[p.Ref.Participant]
	return owner != nil && f.second(owner.publications, p)
}

// successors returns the participants that take one publication of a kind from each publisher, and were sent this one.
func (m members) successors(owner *participant, p *publication) (list []*participant) {
	for _, other := range m.others(owner) {
		if other.profile.OnePerKind && !other.profile.second(owner.publications, p) {
			list = append(list, other)
		}
	}
	return list
}

// succeed sends participants the publication that was withheld from them, now that the first of its kind has ended.
func (p *participant) succeed(successors []*participant, kind volumetric.Kind) {
	for _, other := range successors {
		if next := other.profile.first(p.publications, kind); next >= 0 {
			other.subscribe(announced(p.publications[next : next+1]))
		}
	}
}

// hearingInterval is how often the room looks whether a converted publication has begun.
const hearingInterval = 50 * time.Millisecond

// hear announces a converted publication once its first frame has come, which names its codec. Users without a point
// cloud, or without a microphone, publish to the server what never comes.
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

// printable returns a codec's name with a dot for each character that is neither letter nor digit: the name came from the
// network, and goes into messages to others.
func printable(codec volumetric.FourCC) string {
	text := codec[:]
	for i, c := range text {
		if c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z' {
			codec[i] = '.'
		}
	}
	return string(text)
}
