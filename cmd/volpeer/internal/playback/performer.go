package playback

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// leaveDelay is the time from the last frame of a participant to its leaving: the client spreads a frame over at most
// 50 ms, and frames wait for the uplink for up to 100 ms.
const leaveDelay = 250 * time.Millisecond

// performer is a recorded participant in the room. Its goroutine joins, publishes and leaves; frames are written by the
// goroutine of the stage.
type performer struct {
	identity string
	join     func(context.Context, []volumetric.Publication) (*client.Session, error)
	log      *slog.Logger
	steps    chan func(context.Context) error
	// ready is closed when media flows for the first time, or when the performer has failed or has no media.
	ready chan struct{}

	mu      sync.Mutex
	session *client.Session
	// publishers has the publishers by the ID of the publication in the recording.
	publishers map[uint32]*client.Publisher

	// The goroutine of run owns the fields below. replies are the results of reliable data messages, oldest first.
	replies []<-chan error
	// warned has the kinds of requests whose refusal was logged.
	warned map[string]bool
	// replaced are the maps that this performer has set, by name. The server reports a change after the reply.
	replaced map[string]map[string]string
}

// maxSteps bounds the steps that wait for the server.
const maxSteps = 1024

func newPerformer(identity string, log *slog.Logger,
	join func(context.Context, []volumetric.Publication) (*client.Session, error)) *performer {
	return &performer{
		identity: identity, join: join, log: log.With("participant", identity),
		steps: make(chan func(context.Context) error, maxSteps), ready: make(chan struct{}),
		publishers: make(map[uint32]*client.Publisher), warned: make(map[string]bool),
		replaced: make(map[string]map[string]string),
	}
}

// run joins with the publications and takes steps until the channel of steps is closed. Then it leaves.
func (p *performer) run(ctx context.Context, publications []*recording.Publication) error {
	connected := sync.OnceFunc(func() { close(p.ready) })
	defer connected()
	var descriptions []volumetric.Publication
	for _, publication := range publications {
		descriptions = append(descriptions, described(publication))
	}
	session, err := p.join(ctx, descriptions)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.session = session
	for _, publication := range publications {
		p.publishers[publication.ID] = session.Publisher(publication.Description.Name)
	}
	p.mu.Unlock()
	defer func() { _ = session.Close() }()
	if len(publications) == 0 {
		// Without media there is no peer connection.
		connected()
	}
	events := session.Events()
	for {
		select {
		case e, open := <-events:
			if !open {
				return session.Err()
			}
			if _, ok := e.(client.Connected); ok {
				connected()
			}
			peer.LogEvent(p.log, e)
		case step, open := <-p.steps:
			if !open {
				peer.SleepUntil(ctx, time.Now().Add(leaveDelay))
				return nil
			}
			if err := step(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// publish adds a publication.
func (p *performer) publish(publication *recording.Publication) {
	p.step(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
		defer cancel()
		publisher, err := p.present().Publish(ctx, described(publication))
		if err != nil {
			p.log.Warn("the publication is refused", "publication", publication.Description.Name, "error", err)
			return nil
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.publishers[publication.ID] = publisher
		return nil
	})
}

// unpublish ends a publication.
func (p *performer) unpublish(name string) {
	p.step(func(ctx context.Context) error {
		p.mu.Lock()
		for id, publisher := range p.publishers {
			if publisher.Publication().Name == name {
				delete(p.publishers, id)
			}
		}
		p.mu.Unlock()
		peer.SleepUntil(ctx, time.Now().Add(leaveDelay))
		ctx, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
		defer cancel()
		if err := p.present().Unpublish(ctx, name); err != nil && ctx.Err() == nil {
			p.log.Warn("the publication could not be ended", "publication", name, "error", err)
		}
		return nil
	})
}

// pose sets the pose of an object.
func (p *performer) pose(m *signal.Pose) {
	session := p.present()
	if session == nil {
		return
	}
	if publisher := session.Publisher(m.Publication); publisher != nil {
		publisher.SetPose(client.Pose{Position: m.Position, Orientation: m.Orientation, Scale: m.Scale, Boxes: m.Boxes,
			Priority: m.Priority})
	}
}

// send sends a recorded data message to all others, and reports whether there is a session to send it.
func (p *performer) send(m *signal.Data) bool {
	if p.present() == nil {
		return false
	}
	return p.step(func(context.Context) error {
		reply, err := p.present().QueueData(client.Data{Topic: m.Topic, Lossy: m.Lossy, Text: m.Text, Binary: m.Binary})
		if err != nil {
			p.refused("a data message", err)
			return nil
		}
		if reply != nil {
			p.replies = append(p.replies, reply)
		}
		for len(p.replies) > 0 {
			select {
			case err := <-p.replies[0]:
				p.refused("a data message", err)
				p.replies = p.replies[1:]
			default:
				return nil
			}
		}
		return nil
	})
}

// setAttributes replaces the attributes of the participant.
func (p *performer) setAttributes(attributes map[string]string) {
	p.replace("the attributes", attributes, (*client.Session).Attributes,
		func(ctx context.Context, session *client.Session, changed map[string]string) error {
			return session.SetAttributes(ctx, "", changed)
		})
}

// setMetadata replaces the metadata of the room.
func (p *performer) setMetadata(metadata map[string]string) {
	p.replace("the metadata of the room", metadata, (*client.Session).Metadata,
		func(ctx context.Context, session *client.Session, changed map[string]string) error {
			return session.SetMetadata(ctx, changed)
		})
}

// replace brings a map of the server to its recorded state.
func (p *performer) replace(what string, wanted map[string]string, present func(*client.Session) map[string]string,
	change func(context.Context, *client.Session, map[string]string) error) {
	p.step(func(ctx context.Context) error {
		session := p.present()
		former, ok := p.replaced[what]
		if !ok {
			former = present(session)
		}
		changed := changes(former, wanted)
		if len(changed) == 0 {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
		defer cancel()
		if err := change(ctx, session, changed); err != nil {
			p.refused(what, err)
			return nil
		}
		p.replaced[what] = wanted
		return nil
	})
}

// changes returns the entries that differ. An entry that is not wanted is empty.
func changes(former, wanted map[string]string) map[string]string {
	changed := make(map[string]string)
	for key, value := range wanted {
		if former[key] != value {
			changed[key] = value
		}
	}
	for key := range former {
		if _, ok := wanted[key]; !ok {
			changed[key] = ""
		}
	}
	return changed
}

// refused logs the first refusal of each kind of request.
func (p *performer) refused(what string, err error) {
	if err == nil || p.warned[what] || errors.Is(err, context.Canceled) {
		return
	}
	p.warned[what] = true
	p.log.Warn(what+" could not be replayed; later failures of this kind are not logged", "error", err)
}

// step queues a step and reports whether it did. A performer whose server does not reply drops steps beyond maxSteps.
func (p *performer) step(f func(context.Context) error) bool {
	select {
	case p.steps <- f:
		return true
	default:
		p.log.Warn("the server does not reply; a recorded change or message is left out")
		return false
	}
}

// present returns the session, nil before the join.
func (p *performer) present() *client.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// publisher returns the publisher of a publication, nil if the publication is not published.
func (p *performer) publisher(id uint32) *client.Publisher {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.publishers[id]
}

// single reports whether a recording has one quality of each tile of the publication, so that it is published with one
// quality. Encrypted frames authenticate their quality.
func single(p *recording.Publication) bool {
	return p.Qualities == recording.Best && p.Description.Mode == volumetric.ModeAlternatives &&
		p.Description.Encryption == ""
}

// described returns the description of a publication for the replay. Qualities that were not recorded are left out.
func described(p *recording.Publication) volumetric.Publication {
	d := p.Description
	if single(p) {
		d.Qualities = slices.Clone(d.Qualities[len(d.Qualities)-1:])
	}
	return d
}
