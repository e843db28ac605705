package main

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/bridge"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// downward is what is known of the way to the connector, over all sessions. It belongs to one goroutine at a time.
type downward struct {
	tally  *bridge.Tally
	outlet *bridge.Outlet
	voices *bridge.Voices
	pace   bridge.Pace
	// video and audio are the datagrams of a frame, kept for the next one.
	video, audio []byte
	// chosen is the newest quality message. It holds for publishers that come later, too.
	chosen string
}

// meeting is one session as the connector is told of it.
type meeting struct {
	*span
	session   *client.Session
	directory *bridge.Directory
	requests  chan<- []signal.Choice
}

// serve serves the connector until the session ends. Sound goes first: it waits for nothing but a burst of datagrams.
func (s *span) serve(ctx context.Context, session *client.Session, requests chan<- []signal.Choice, refused <-chan []signal.Choice) {
	m := &meeting{span: s, session: session, directory: bridge.NewDirectory(s.settings.client), requests: requests}
	m.meet()
	var chosen <-chan string
	if s.local != nil {
		chosen = s.local.choices
	}
	frames, packets, events := session.Frames(), session.Packets(), session.Events()
	for {
		select {
		case p, open := <-packets:
			if !open {
				return
			}
			m.sound(&p)
			continue
		default:
		}
		select {
		case p, open := <-packets:
			if !open {
				return
			}
			m.sound(&p)
		case f, open := <-frames:
			if !open {
				return
			}
			m.frame(ctx, &f)
		case e, open := <-events:
			if !open {
				return
			}
			m.event(e)
		case text := <-chosen:
			m.choose(text)
		case choices := <-refused:
			m.directory.Refused(choices)
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// event takes what happened in the room.
func (m *meeting) event(e client.Event) {
	tell(m.log, e)
	switch e := e.(type) {
	case client.ParticipantJoined:
		m.came(e.Participant)
	case client.Published:
		m.published(e.Participant, e.Publication)
	case client.Unpublished:
		m.directory.Unpublished(e.Publication)
	case client.ParticipantLeft:
		m.directory.Left(e.Identity)
		m.forget()
	case client.Resumed:
		// Who came and went meanwhile is in the list only.
		m.directory = bridge.NewDirectory(m.settings.client)
		m.meet()
	}
}

// meet takes everybody who is here.
func (m *meeting) meet() {
	for _, p := range m.session.Participants() {
		m.came(p)
	}
	m.forget()
}

// forget forgets those who are not here any more.
func (m *meeting) forget() {
	m.downward.outlet.Keep(m.directory.Here)
	m.downward.voices.Keep(m.directory.Here)
}

func (m *meeting) came(p signal.Participant) {
	for _, publication := range p.Publications {
		m.published(p.Identity, publication)
	}
}

// published takes a publication, and has what the connector cannot read not sent.
func (m *meeting) published(participant string, publication volumetric.Publication) {
	admission := m.directory.Published(participant, publication)
	if admission.Carried {
		m.downward.outlet.Anew(admission.Client)
		m.log.Info("for the connector", "participant", participant, "publication", publication.Name, "client", admission.Client)
		if choices, _ := m.directory.Choices(m.downward.chosen); len(choices) > 0 {
			m.request(choices)
		}
		return
	}
	if !m.settings.output {
		return
	}
	m.log.Info("not for the connector", "participant", participant, "publication", publication.Name, "reason", admission.Reason)
	if publication.Kind == volumetric.KindVideo {
		ref := volumetric.PublicationRef{Participant: participant, Publication: publication.Name}
		m.request([]signal.Choice{{PublicationRef: ref, Quality: signal.Only(volumetric.QualityOff)}})
	}
}

// choose takes the text of a quality message.
func (m *meeting) choose(text string) {
	m.downward.chosen = text
	choices, ignored := m.directory.Choices(text)
	for range ignored {
		m.tally.Add(bridge.DropChoice)
	}
	if len(choices) > 0 {
		m.log.Debug("qualities", "choices", len(choices))
		m.request(choices)
	}
}

// request has the server asked for qualities.
func (m *meeting) request(choices []signal.Choice) {
	select {
	case m.requests <- choices:
	default:
		m.tally.Add(bridge.DropChoice)
		m.directory.Refused(choices)
	}
}

// client is the number of a publisher, by what was told until now.
func (m *meeting) client(ref volumetric.PublicationRef) (uint32, bool) {
	number, ok := m.directory.Client(ref)
	for !ok {
		select {
		case e, open := <-m.session.Events():
			if !open {
				return 0, false
			}
			m.event(e)
			number, ok = m.directory.Client(ref)
		default:
			return 0, false
		}
	}
	return number, true
}

// sound takes a packet of a track without frames.
func (m *meeting) sound(p *client.Packet) {
	number, ok := m.client(p.Track.PublicationRef)
	if !ok {
		// Sound that the connector does not know is sent all the same, since it is sent to everybody.
		return
	}
	received := m.downward.voices.Push(number, p.Payload, p.Arrival)
	if received == nil {
		return
	}
	m.downward.audio = m.downward.outlet.Cut(m.downward.audio[:0], received, time.Now())
	m.give(m.downward.audio)
	m.count()
}

// frame takes a frame, and gives it to the connector as fast as that can read.
func (m *meeting) frame(ctx context.Context, f *client.Frame) {
	number, ok := m.client(f.Track.PublicationRef)
	switch {
	case !ok:
		m.tally.Add(bridge.DropClient)
		return
	case len(f.Whole) < vr2gather.FrameHeaderSize:
		m.tally.Add(bridge.DropHeader)
		return
	}
	d := m.downward
	d.video = d.outlet.Cut(d.video[:0], &bridge.Received{
		Kind: volumetric.KindVideo, Client: number, Tile: f.Track.Tile, Quality: f.Track.Quality, Number: uint32(f.Number), Data: f.Whole,
	}, time.Now())
	for rest := d.video; len(rest) > 0; {
		n, wait := d.pace.Take(time.Now(), len(rest)/vr2gather.DatagramSize)
		if n == 0 {
			m.wait(ctx, wait)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		m.give(rest[:n*vr2gather.DatagramSize])
		rest = rest[n*vr2gather.DatagramSize:]
	}
	took := m.session.ServerTime(time.Now()).Sub(f.Complete)
	m.mu.Lock()
	m.figures.down.Add(took)
	m.mu.Unlock()
	m.count()
}

// wait lets sound pass for a while.
func (m *meeting) wait(ctx context.Context, long time.Duration) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	packets := m.session.Packets()
	for {
		select {
		case p, open := <-packets:
			if !open {
				packets = nil
				continue
			}
			m.sound(&p)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// give sends datagrams to the connector, if there is one.
func (m *meeting) give(datagrams []byte) {
	if m.local == nil {
		return
	}
	peer, ok := m.local.peer()
	if !ok {
		return
	}
	for ; len(datagrams) > 0; datagrams = datagrams[vr2gather.DatagramSize:] {
		m.local.send(datagrams[:vr2gather.DatagramSize], peer)
	}
}

// count makes the outlet's counts known.
func (m *meeting) count() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.figures.outlet = m.downward.outlet.Counts()
}
