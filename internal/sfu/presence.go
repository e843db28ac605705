package sfu

import (
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// presence is a participant as the others in the room see it: a local participant, or the mirror of a participant whose
// home is another node.
type presence struct {
	identity string
	session  string
	// number identifies the participant for clients of the VR2Gather dialect, if numbered is set.
	number       uint32
	numbered     bool
	publications []*publication
	// attributes describe the participant to others. attributesBytes is their length as JSON. The map does not change.
	attributes      map[string]string
	attributesBytes int
	// audience is set if the participant is not announced to others, only counted.
	audience bool
}

func (p *presence) publication(name string) *publication {
	for _, publication := range p.publications {
		if publication.Description.Name == name {
			return publication
		}
	}
	return nil
}

// describe returns the description of the participant for others.
func (p *presence) describe() signal.Participant {
	d := signal.Participant{Identity: p.identity, Publications: []volumetric.Publication{}}
	for _, publication := range announced(p.publications) {
		d.Publications = append(d.Publications, publication.Description)
	}
	d.Attributes, d.Muted = p.attributes, p.mutings()
	return d
}

// mutings returns the muted publications of a participant.
func (p *presence) mutings() (list []signal.MuteState) {
	for _, publication := range p.publications {
		if publication.muted() {
			list = append(list, publication.mute)
		}
	}
	return list
}

// describedBytes returns the length of the descriptions of the participant's publications and of its attributes as
// JSON, in bytes.
func (p *presence) describedBytes() int { return describedBytes(p.publications) + p.attributesBytes }

// placePictures sets the publication beside which pictures of the participant stand: the first video that is not a
// picture.
func (p *presence) placePictures() {
	var body *subscriber.Publication
	for _, publication := range p.publications {
		if d := &publication.Description; d.Kind == volumetric.KindVideo && d.Picture == nil {
			body = publication.Publication
			break
		}
	}
	for _, publication := range p.publications {
		if publication.Description.Picture != nil {
			publication.Beside = body
		}
	}
}

// succeed subscribes participants to the next publication of a kind after the first publication has ended. The clients
// can receive only one publication of a kind.
func (p *presence) succeed(successors []*participant, kind volumetric.Kind) {
	for _, other := range successors {
		if next := other.profile.first(p.publications, kind); next >= 0 {
			other.subscribe(announced(p.publications[next : next+1]))
		}
	}
}
