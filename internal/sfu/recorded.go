package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// recordedRoom is the recording of a room. The recording is a receiver of the room's publications without a connection
// and without a limit of its rate. The methods that record have no effect on nil: the room is not recorded.
type recordedRoom struct {
	Recording
	qualities recording.Qualities
	// automatic is set if the node records every room. since is the start in nanoseconds since 1970.
	automatic    bool
	since        int64
	publications map[*presence.Publication]*recordedPublication
}

// recordedPublication is a publication that is recorded: its number, and for each track whether it is read.
type recordedPublication struct {
	number uint32
	read   []bool
}

// The keys of the state of a recording. keyOf joins names, which cannot contain the separator.
func keyOf(identity string) string { return "participant\x00" + identity }

func poseKey(ref volumetric.PublicationRef) string {
	return keyOf(ref.Participant) + "\x00pose\x00" + ref.Publication
}

// message records a message to the whole room. The message must not be sent to a client.
func (c *recordedRoom) message(now time.Time, m signal.Message) {
	if c != nil {
		c.Message(now, m)
	}
}

// joined records that a participant has joined. Publications are recorded separately.
func (c *recordedRoom) joined(now time.Time, p *presence.Presence) {
	if c != nil {
		c.changed(now, p, joinedMessage(p))
	}
}

// changed records a change of a participant. Later files of the recording begin with its present description.
func (c *recordedRoom) changed(now time.Time, p *presence.Presence, m signal.Message) {
	if c != nil {
		c.Message(now, m)
		c.State(keyOf(p.Identity), joinedMessage(p))
	}
}

// joinedMessage describes a participant without its publications.
func joinedMessage(p *presence.Presence) signal.Message {
	m := &signal.ParticipantJoined{Participant: p.Describe()}
	m.Participant.Publications = []volumetric.Publication{}
	return m
}

// metadata records the metadata of the room, if there are any.
func (c *recordedRoom) metadata(now time.Time, metadata map[string]string) {
	if c != nil && metadata != nil {
		c.Message(now, &signal.Metadata{Metadata: metadata})
		c.State("metadata", &signal.Metadata{Metadata: metadata})
	}
}

// left records that a participant has left.
func (c *recordedRoom) left(now time.Time, p *presence.Presence, reason string) {
	if c != nil && !p.Audience {
		c.State(keyOf(p.Identity), nil)
		c.Message(now, &signal.ParticipantLeft{Identity: p.Identity, Reason: reason})
	}
}

// published begins the recording of publications that are announced.
func (c *recordedRoom) published(now time.Time, publications []*presence.Publication) {
	if c == nil {
		return
	}
	for _, p := range publications {
		if c.publications[p] != nil {
			continue
		}
		number := c.Publish(now, p.Ref.Participant, c.qualities, p.Description)
		c.publications[p] = &recordedPublication{number, make([]bool, len(p.Tracks))}
		c.read(now, p)
	}
}

// unpublished ends the recording of a publication whose tracks are still open.
func (c *recordedRoom) unpublished(now time.Time, p *presence.Publication) {
	if c == nil || c.publications[p] == nil {
		return
	}
	recorded := c.publications[p]
	delete(c.publications, p)
	for i, read := range recorded.read {
		if read {
			p.Demand.Remove(recordedNeed(i))
		}
	}
	c.Unpublish(now, recorded.number)
	c.State(poseKey(p.Ref), nil)
	c.Message(now, &signal.Unpublished{PublicationRef: p.Ref})
}

// pose records a pose as it was sent, nil if none was sent. Later files of the recording begin with the latest
// pose and its boxes.
func (c *recordedRoom) pose(now time.Time, p *presence.Publication, sent signal.Message) {
	if c == nil || p.Place.Latest() == nil {
		return
	}
	latest := *p.Place.Latest()
	latest.Participant = p.Ref.Participant
	if sent == nil {
		first := latest
		sent = &first
	}
	c.Message(now, sent)
	c.State(poseKey(p.Ref), &latest)
}

// recordedNeed is the need of a recording for a track.
func recordedNeed(track int) demand.Need { return demand.Need{Tracks: [2]int{track, -1}, Near: -1} }

// read selects the tracks of a publication that are recorded, and asks the publisher for them.
func (c *recordedRoom) read(now time.Time, p *presence.Publication) {
	if c == nil || c.publications[p] == nil {
		return
	}
	recorded, qualities := c.publications[p], len(p.Description.Qualities)
	every := c.qualities == recording.All || p.Description.Mode == volumetric.ModeDescriptions
	for i, t := range p.Tracks {
		tile, q := i/qualities, volumetric.Quality(i%qualities)
		wanted := every || q == p.Levels.Best(tile)
		if wanted == recorded.read[i] {
			continue
		}
		recorded.read[i] = wanted
		c.Read(now, recorded.number, tile, q, t, wanted)
		if wanted {
			p.Demand.Add(recordedNeed(i))
		} else {
			p.Demand.Remove(recordedNeed(i))
		}
	}
}
