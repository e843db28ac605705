package relay

import (
	"context"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/peer"
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
	// view is where the connector's program looks from, nil if it has not said.
	view *signal.Viewpoint
}

// meeting is one session as the connector is told of it.
type meeting struct {
	*Relay
	session   *client.Session
	directory *bridge.Directory
	requests  chan<- []signal.Choice
	// overdue says that sound has waited for what was before it for long enough.
	overdue *time.Timer
}

// serve serves the connector until the session ends. Sound goes first: it waits for nothing but a burst of datagrams.
func (s *Relay) serve(ctx context.Context, session *client.Session, requests chan<- []signal.Choice,
	refused <-chan []signal.Choice) {
	m := &meeting{Relay: s, session: session, requests: requests, overdue: time.NewTimer(0)}
	defer m.overdue.Stop()
	m.meet()
	m.look()
	m.show(session)
	var chosen <-chan string
	var views <-chan *signal.Viewpoint
	var poses <-chan *signal.Pose
	if s.local != nil {
		chosen, views, poses = s.local.Choices(), s.local.Views(), s.local.Poses()
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
		case <-m.overdue.C:
			m.listen()
		case u := <-m.transcoding.unpacked():
			m.deliverUnpacked(ctx, u)
		case e, open := <-events:
			if !open {
				return
			}
			m.event(e)
		case text := <-chosen:
			m.choose(text)
		case view := <-views:
			m.downward.view = view
			m.look()
		case pose := <-poses:
			m.setPose(pose)
			m.show(session)
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
	peer.LogEvent(m.log, e)
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
		m.meet()
	}
}

// meet takes everybody who is here.
func (m *meeting) meet() {
	m.directory = bridge.NewDirectory(m.settings.client)
	if m.transcoding != nil {
		m.directory.TakeForeign()
	}
	for _, p := range m.session.Participants() {
		m.came(p)
	}
	m.forget()
}

// forget forgets those who are not here any more.
func (m *meeting) forget() {
	m.downward.outlet.Keep(m.directory.Here)
	m.downward.voices.Keep(m.directory.Here)
	if m.transcoding != nil {
		m.transcoding.keep(m.directory.Here)
	}
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
		m.log.Info("for the connector", "participant", participant, "publication", publication.Name, "client",
			admission.Client)
		if choices, _ := m.directory.Choices(m.downward.chosen); len(choices) > 0 {
			m.request(choices)
		}
		return
	}
	if !m.settings.output {
		return
	}
	m.log.Info("not for the connector", "participant", participant, "publication", publication.Name, "reason",
		admission.Reason)
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
	if m.transcoding != nil && p.Codec.Is(volumetric.MIMEOpus) {
		m.hear(p, number)
		return
	}
	received := m.downward.voices.Push(number, p.Payload, p.Arrival)
	if received == nil {
		return
	}
	m.speakTo(received)
}

// frame takes a frame, and gives it to the connector as fast as that can read.
func (m *meeting) frame(ctx context.Context, f *client.Frame) {
	number, ok := m.client(f.Track.PublicationRef)
	switch {
	case !ok:
		m.tally.Add(bridge.DropClient)
		return
	case f.Whole == nil && m.transcoding != nil:
		m.unpack(f, number)
		return
	case len(f.Whole) < vr2gather.FrameHeaderSize:
		m.tally.Add(bridge.DropHeader)
		return
	}
	m.deliver(ctx, &bridge.Received{
		Kind: volumetric.KindVideo, Client: number, Tile: f.Track.Tile, Quality: f.Track.Quality,
		Number: uint32(f.Number), Data: f.Whole,
	}, func(long time.Duration) { m.wait(ctx, long) })
	m.passed(m.session.ServerTime(time.Now()).Sub(f.Complete))
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

// deliver sends a tile frame to the connector as fast as the connector can read. While the connector is busy, deliver
// calls pause with the time to wait.
func (s *Relay) deliver(ctx context.Context, r *bridge.Received, pause func(time.Duration)) {
	d := s.downward
	if s.unheard() {
		return
	}
	d.video = d.outlet.Cut(d.video[:0], r, time.Now())
	for rest := d.video; len(rest) > 0; {
		n, wait := d.pace.Take(time.Now(), len(rest)/vr2gather.DatagramSize)
		if n == 0 {
			pause(wait)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		s.give(rest[:n*vr2gather.DatagramSize])
		rest = rest[n*vr2gather.DatagramSize:]
	}
	s.count()
}

// speakTo gives the connector a frame of sound, which waits for nothing.
func (s *Relay) speakTo(r *bridge.Received) {
	d := s.downward
	if s.unheard() {
		return
	}
	d.audio = d.outlet.Cut(d.audio[:0], r, time.Now())
	s.give(d.audio)
	s.count()
}

// unheard reports whether the connector is silent, and counts a frame that is not sent to it therefore. Without a
// connector frames are cut and counted as if they were sent.
func (s *Relay) unheard() bool {
	if s.local == nil {
		return false
	}
	if _, ok := s.local.Receiver(time.Now()); ok {
		return false
	}
	s.tally.Add(bridge.DropSilent)
	return true
}

// give sends datagrams to the connector, if there is one.
func (s *Relay) give(datagrams []byte) {
	if s.local == nil {
		return
	}
	if receiver, ok := s.local.Receiver(time.Now()); ok && len(datagrams) > 0 {
		s.local.Send(datagrams, receiver)
	}
}

// count makes the outlet's counts known.
func (s *Relay) count() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.outlet = s.downward.outlet.Counts()
}

// passed books how long a frame took from its last packet to the connector.
func (s *Relay) passed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures.down.Add(took)
}

// look tells the server where the connector's program looks from, if it has said.
func (m *meeting) look() {
	if v := m.downward.view; v != nil {
		m.session.SetViewpoint(client.Viewpoint{Position: v.Position, Orientation: v.Orientation,
			FOV: v.FOV * math.Pi / 180, Aspect: v.Aspect})
	}
}

// show tells where the connector's object stands, if it has said and the object is published.
func (s *Relay) show(session *client.Session) {
	s.mu.Lock()
	pose := s.pose
	s.mu.Unlock()
	publisher := session.Publisher(cloudName)
	if pose == nil || publisher == nil {
		return
	}
	publisher.SetPose(client.Pose{Position: pose.Position, Orientation: pose.Orientation, Scale: pose.Scale,
		Boxes: pose.Boxes})
}

// setPose takes where the connector's object stands.
func (s *Relay) setPose(pose *signal.Pose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pose = pose
}
