package bridge

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

const (
	// maxClients is the number of publishers that can have a number at a time.
	maxClients = 1024
	// firstFree is the first number that is assigned to publishers without a number in their name. Numbers in names are
	// positions in a list of users, which are below firstFree.
	firstFree = 1000
)

// Directory maps participants to client numbers: VR2Gather identifies clients by numbers, rooms identify participants
// by names. A Directory contains the publications that the connector can receive.
type Directory struct {
	own     uint32
	foreign bool
	members map[string]*member
	// names maps numbers to members.
	names map[uint32]string
}

// member is a participant with a publication for the connector.
type member struct {
	number uint32
	// video and audio are the publications for the connector, nil for none.
	video, audio *volumetric.Publication
	// requested has the last requested quality of each tile of video, or vr2gather.QualityKept before the first
	// request.
	requested []volumetric.Quality
}

// NewDirectory returns an empty directory. own is this client's number, which is not assigned to others.
func NewDirectory(own uint32) *Directory {
	return &Directory{own: own, members: make(map[string]*member), names: make(map[uint32]string)}
}

// AdmitForeign admits point clouds of all codecs, and audio in Opus, because both are transcoded for the connector.
func (d *Directory) AdmitForeign() { d.foreign = true }

// Admission is the decision about a publication.
type Admission struct {
	// Client is the publisher's number, if the publication is for the connector.
	Client   uint32
	Admitted bool
	// Reason is the reason for a refusal, in words.
	Reason string
}

// Published adds or updates a publication.
func (d *Directory) Published(participant string, p volumetric.Publication) Admission {
	points := p.Kind == volumetric.KindVideo && p.Codec.MIMEType == volumetric.MIMEVolumetric
	sound := p.Kind == volumetric.KindAudio && p.Codec.Is(volumetric.MIMEOpus)
	if !p.VR2Gather && !(d.foreign && (points || sound)) {
		return Admission{Reason: "not in VR2Gather's format"}
	}
	if p.Mode != volumetric.ModeAlternatives {
		return Admission{Reason: "mode descriptions is not supported by VR2Gather"}
	}
	m := d.members[participant]
	if m == nil {
		number, ok := d.number(participant)
		if !ok {
			return Admission{Reason: "too many publishers"}
		}
		m = &member{number: number}
		d.members[participant], d.names[number] = m, participant
	}
	place := &m.video
	if p.Kind == volumetric.KindAudio {
		place = &m.audio
	}
	if *place != nil && (*place).Name != p.Name {
		return Admission{Reason: "VR2Gather supports one publication of each kind per publisher"}
	}
	*place = &p
	if p.Kind == volumetric.KindVideo {
		m.requested = slices.Repeat([]volumetric.Quality{vr2gather.QualityKept}, len(p.Tiles))
	}
	return Admission{Client: m.number, Admitted: true}
}

// number returns a number for a participant: the number at the end of its name if that is free, otherwise the first
// free number from firstFree on.
func (d *Directory) number(participant string) (uint32, bool) {
	if len(d.members) >= maxClients {
		return 0, false
	}
	digits := participant[len(strings.TrimRight(participant, "0123456789")):]
	if n, err := strconv.ParseUint(digits, 10, 32); err == nil && n > 0 && d.free(uint32(n)) {
		return uint32(n), true
	}
	n := uint32(firstFree)
	for !d.free(n) {
		n++
	}
	return n, true
}

func (d *Directory) free(number uint32) bool {
	_, taken := d.names[number]
	return !taken && number != d.own
}

// Unpublished removes a publication.
func (d *Directory) Unpublished(ref volumetric.PublicationRef) {
	m := d.members[ref.Participant]
	if m == nil {
		return
	}
	for _, place := range []**volumetric.Publication{&m.video, &m.audio} {
		if *place != nil && (*place).Name == ref.Publication {
			*place = nil
		}
	}
}

// Left removes a participant and frees its number.
func (d *Directory) Left(participant string) {
	if m := d.members[participant]; m != nil {
		delete(d.names, m.number)
		delete(d.members, participant)
	}
}

// Present reports whether a participant has the number.
func (d *Directory) Present(client uint32) bool {
	_, ok := d.names[client]
	return ok
}

// Client returns the number of the publisher of a publication for the connector. Client returns false for other
// publications.
func (d *Directory) Client(ref volumetric.PublicationRef) (uint32, bool) {
	m := d.members[ref.Participant]
	if m == nil {
		return 0, false
	}
	for _, p := range []*volumetric.Publication{m.video, m.audio} {
		if p != nil && p.Name == ref.Publication {
			return m.number, true
		}
	}
	return 0, false
}

// Choices translates the text of a quality message into requests that were not made before. ignored counts choices that
// cannot be parsed, and publishers, tiles and qualities that do not exist. Client 0 addresses every publisher with that
// number of tiles.
func (d *Directory) Choices(text string) (choices []signal.Choice, ignored int) {
	wanted, ignored := vr2gather.ParseQualityChoices(text)
	for _, w := range wanted {
		meant := d.addressed(w)
		if len(meant) == 0 {
			ignored++
		}
		for _, participant := range meant {
			more, skipped := d.members[participant].choices(participant, w.Qualities)
			choices = append(choices, more...)
			ignored += skipped
		}
	}
	return choices, ignored
}

// Refused records that the requests were not sent, or were refused. The same qualities are requested again with the
// next quality message.
func (d *Directory) Refused(choices []signal.Choice) {
	for _, c := range choices {
		if m := d.members[c.Participant]; m != nil && c.Tile != nil && *c.Tile < len(m.requested) {
			m.requested[*c.Tile] = vr2gather.QualityKept
		}
	}
}

// addressed returns the participants that a choice addresses.
func (d *Directory) addressed(w vr2gather.QualityChoice) []string {
	if w.Client != 0 {
		if name, ok := d.names[w.Client]; ok && d.members[name].video != nil {
			return []string{name}
		}
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.members)) {
		if video := d.members[name].video; video != nil && len(video.Tiles) == len(w.Qualities) {
			names = append(names, name)
		}
	}
	return names
}

// choices returns the requests for one publisher's tiles.
func (m *member) choices(participant string, qualities []volumetric.Quality) (choices []signal.Choice, ignored int) {
	for tile, quality := range qualities {
		switch {
		case quality == vr2gather.QualityKept:
			continue
		case tile >= len(m.video.Tiles) || quality > m.video.Highest():
			ignored++
			continue
		case quality == m.requested[tile]:
			continue
		}
		m.requested[tile] = quality
		ref := volumetric.PublicationRef{Participant: participant, Publication: m.video.Name}
		choices = append(choices, signal.Choice{PublicationRef: ref, Tile: &tile, Quality: signal.Only(quality)})
	}
	return choices, ignored
}
