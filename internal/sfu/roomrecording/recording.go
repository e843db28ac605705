// Package roomrecording has the recording of a room: a receiver of the room's publications without a connection and
// without a limit of its rate.
package roomrecording

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Writer writes the recording of one room. The methods do not wait for the disk.
type Writer interface {
	// Publish adds a publication and returns its number in the recording.
	Publish(now time.Time, participant string, q recording.Qualities, d volumetric.Publication) uint32
	// Read begins or ends the reading of a track of a publication.
	Read(now time.Time, publication uint32, tile int, q volumetric.Quality, t *track.Track, on bool)
	// Unpublish ends a publication, whose tracks are still open.
	Unpublish(now time.Time, publication uint32)
	// Message records a message to the whole room. State sets the message of a key with which later files of the
	// recording begin, or removes the key and the keys below it.
	Message(now time.Time, m signal.Message)
	State(key string, m signal.Message)
	Stop(now time.Time, reason string)
}

// Recording is the recording of a room. The methods that record have no effect on nil: the room is not recorded. Stop
// needs a recording. The room's goroutine owns the Recording.
type Recording struct {
	Qualities recording.Qualities
	// Automatic is set if the node records every room. Since is the start in nanoseconds since 1970.
	Automatic bool
	Since     int64

	to           Writer
	publications map[*presence.Publication]*publication
}

// Begin returns a recording of a room, which has no participants yet.
func Begin(now time.Time, to Writer, q recording.Qualities, automatic bool) *Recording {
	return &Recording{
		Qualities: q, Automatic: automatic, Since: now.UnixNano(), to: to,
		publications: make(map[*presence.Publication]*publication),
	}
}

// Stop ends the recording with its publications, whose tracks are still open.
func (c *Recording) Stop(now time.Time, reason string) {
	for p := range c.publications {
		c.Unpublished(now, p)
	}
	c.to.Stop(now, reason)
}

// publication is a publication that is recorded: its number, and for each track whether it is read.
type publication struct {
	number uint32
	read   []bool
}

// The keys of the state of a recording. keyOf joins names, which cannot contain the separator.
func keyOf(identity string) string { return "participant\x00" + identity }

func poseKey(ref volumetric.PublicationRef) string {
	return keyOf(ref.Participant) + "\x00pose\x00" + ref.Publication
}

// Data records a data message to the whole room. The message must not be sent to a client.
func (c *Recording) Data(now time.Time, m *signal.Data) {
	if c != nil {
		c.to.Message(now, m)
	}
}

// Joined records that a participant has joined. Publications are recorded separately.
func (c *Recording) Joined(now time.Time, p *presence.Presence) {
	if c != nil {
		c.Changed(now, p, joinedMessage(p))
	}
}

// Changed records a change of a participant. Later files of the recording begin with its present description.
func (c *Recording) Changed(now time.Time, p *presence.Presence, m signal.Message) {
	if c != nil {
		c.to.Message(now, m)
		c.to.State(keyOf(p.Identity), joinedMessage(p))
	}
}

// joinedMessage describes a participant without its publications.
func joinedMessage(p *presence.Presence) signal.Message {
	m := &signal.ParticipantJoined{Participant: p.Describe()}
	m.Participant.Publications = []volumetric.Publication{}
	return m
}

// Metadata records the metadata of the room, if there are any.
func (c *Recording) Metadata(now time.Time, metadata map[string]string) {
	if c != nil && metadata != nil {
		c.to.Message(now, &signal.Metadata{Metadata: metadata})
		c.to.State("metadata", &signal.Metadata{Metadata: metadata})
	}
}

// Left records that a participant has left.
func (c *Recording) Left(now time.Time, p *presence.Presence, reason string) {
	if c != nil && !p.Audience {
		c.to.State(keyOf(p.Identity), nil)
		c.to.Message(now, &signal.ParticipantLeft{Identity: p.Identity, Reason: reason})
	}
}

// Published begins the recording of publications that are announced.
func (c *Recording) Published(now time.Time, publications []*presence.Publication) {
	if c == nil {
		return
	}
	for _, p := range publications {
		if c.publications[p] != nil {
			continue
		}
		number := c.to.Publish(now, p.Ref.Participant, c.Qualities, p.Description)
		c.publications[p] = &publication{number, make([]bool, len(p.Tracks))}
		c.Select(now, p)
	}
}

// Unpublished ends the recording of a publication whose tracks are still open.
func (c *Recording) Unpublished(now time.Time, p *presence.Publication) {
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
	c.to.Unpublish(now, recorded.number)
	c.to.State(poseKey(p.Ref), nil)
	c.to.Message(now, &signal.Unpublished{PublicationRef: p.Ref})
}

// Posed records a pose as it was sent, nil if none was sent. Later files of the recording begin with the latest
// Posed and its boxes.
func (c *Recording) Posed(now time.Time, p *presence.Publication, sent signal.Message) {
	if c == nil || p.Place.Latest() == nil {
		return
	}
	latest := *p.Place.Latest()
	latest.Participant = p.Ref.Participant
	if sent == nil {
		first := latest
		sent = &first
	}
	c.to.Message(now, sent)
	c.to.State(poseKey(p.Ref), &latest)
}

// recordedNeed is the need of a recording for a track.
func recordedNeed(track int) demand.Need { return demand.Need{Tracks: [2]int{track, -1}, Near: -1} }

// Select selects the tracks of a publication that are recorded, and asks the publisher for them.
func (c *Recording) Select(now time.Time, p *presence.Publication) {
	if c == nil || c.publications[p] == nil {
		return
	}
	recorded, qualities := c.publications[p], len(p.Description.Qualities)
	every := c.Qualities == recording.All || p.Description.Mode == volumetric.ModeDescriptions
	for i, t := range p.Tracks {
		tile, q := i/qualities, volumetric.Quality(i%qualities)
		wanted := every || q == p.Levels.Best(tile)
		if wanted == recorded.read[i] {
			continue
		}
		recorded.read[i] = wanted
		c.to.Read(now, recorded.number, tile, q, t, wanted)
		if wanted {
			p.Demand.Add(recordedNeed(i))
		} else {
			p.Demand.Remove(recordedNeed(i))
		}
	}
}
