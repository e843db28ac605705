package presence

import (
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Presence is a participant as the others in the room see it: a local participant, or the mirror of a participant whose
// home is another node.
type Presence struct {
	Identity string
	Session  string
	// Number identifies the participant for clients of the VR2Gather dialect, if Numbered is set.
	Number       uint32
	Numbered     bool
	Publications []*Publication
	// Attributes describe the participant to others. AttributesBytes is their length as JSON. The map does not change.
	Attributes      map[string]string
	AttributesBytes int
	// Detached is set while the home does not answer.
	Detached bool
	// Audience is set if the participant is not announced to others, only counted.
	Audience bool
}

// Publication returns the publication with a name, nil if there is none.
func (p *Presence) Publication(name string) *Publication {
	for _, publication := range p.Publications {
		if publication.Description.Name == name {
			return publication
		}
	}
	return nil
}

// Describe returns the description of the participant for others.
func (p *Presence) Describe() signal.Participant {
	d := signal.Participant{Identity: p.Identity, Publications: []volumetric.Publication{}}
	for _, publication := range Announced(p.Publications) {
		d.Publications = append(d.Publications, publication.Description)
	}
	d.Attributes, d.Muted = p.Attributes, p.Mutings()
	return d
}

// Mutings returns the muted publications of a participant.
func (p *Presence) Mutings() (list []signal.MuteState) {
	for _, publication := range p.Publications {
		if publication.Muted() {
			list = append(list, publication.Mute)
		}
	}
	return list
}

// DescribedBytes returns the length of the descriptions of the participant's publications and of its attributes as
// JSON, in bytes.
func (p *Presence) DescribedBytes() int { return DescribedBytes(p.Publications) + p.AttributesBytes }

// PlacePictures sets the publication beside which pictures of the participant stand: the first video that is not a
// picture.
func (p *Presence) PlacePictures() {
	var body *subscriber.Publication
	for _, publication := range p.Publications {
		if d := &publication.Description; d.Kind == volumetric.KindVideo && d.Picture == nil {
			body = publication.Publication
			break
		}
	}
	for _, publication := range p.Publications {
		if publication.Description.Picture != nil {
			publication.Beside = body
		}
	}
}
