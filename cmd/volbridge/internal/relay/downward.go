package relay

import (
	"context"
	"math"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/connector"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// downward is the state of the direction to the connector, over all sessions. downward is owned by one goroutine at a
// time.
type downward struct {
	tally   *bridge.Tally
	figures *figures
	local   *connector.Connector // nil if there is none
	outlet  *bridge.Outlet
	voices  *bridge.Voices
	pace    bridge.Pace
	// video and audio have the datagrams of a frame. The memory is reused for the next frame.
	video, audio []byte
	// chosen is the newest quality message. chosen also applies to publishers that join later.
	chosen string
	// view is the viewpoint of the connector's program, nil if unknown.
	view *signal.Viewpoint
}

// sessionOutput is one session as it is presented to the connector.
type sessionOutput struct {
	relay     *Relay
	downward  *downward
	session   *client.Session
	directory *bridge.Directory
	requests  chan<- []signal.Choice
	// overdue fires when audio has waited long enough for missing packets.
	overdue *time.Timer
}

// serve serves the connector until the session ends. Audio has priority; at most one burst of datagrams is sent before
// it.
func (s *Relay) serve(ctx context.Context, session *client.Session, requests chan<- []signal.Choice,
	refused <-chan []signal.Choice) {
	m := &sessionOutput{relay: s, downward: s.downward, session: session, requests: requests,
		overdue: time.NewTimer(0)}
	defer m.overdue.Stop()
	m.addParticipants()
	m.sendViewpoint()
	s.sendPose(session)
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
			m.handleAudio(&p)
			continue
		default:
		}
		select {
		case p, open := <-packets:
			if !open {
				return
			}
			m.handleAudio(&p)
		case f, open := <-frames:
			if !open {
				return
			}
			m.handleFrame(ctx, &f)
		case <-m.overdue.C:
			m.deliverTranscodedAudio()
		case u := <-s.transcoding.unpacked():
			m.deliverUnpacked(ctx, u)
		case e, open := <-events:
			if !open {
				return
			}
			m.handleEvent(e)
		case text := <-chosen:
			m.choose(text)
		case view := <-views:
			m.downward.view = view
			m.sendViewpoint()
		case pose := <-poses:
			s.pose.Store(pose)
			s.sendPose(session)
		case choices := <-refused:
			m.directory.Refused(choices)
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// handleEvent handles a session event.
func (m *sessionOutput) handleEvent(e client.Event) {
	peer.LogEvent(m.relay.log, e)
	switch e := e.(type) {
	case client.ParticipantJoined:
		m.participantJoined(e.Participant)
	case client.Published:
		m.published(e.Participant, e.Publication)
	case client.Unpublished:
		m.directory.Unpublished(e.Publication)
	case client.ParticipantLeft:
		m.directory.Left(e.Identity)
		m.removeDeparted()
	case client.Resumed:
		// Participants that joined or left meanwhile are only in the list.
		m.addParticipants()
	}
}

// addParticipants adds all participants of the session.
func (m *sessionOutput) addParticipants() {
	m.directory = bridge.NewDirectory(m.relay.settings.client)
	if m.relay.transcoding != nil {
		m.directory.AdmitForeign()
	}
	for _, p := range m.session.Participants() {
		m.participantJoined(p)
	}
	m.removeDeparted()
}

// removeDeparted removes the state of clients that have left.
func (m *sessionOutput) removeDeparted() {
	m.downward.outlet.Retain(m.directory.Present)
	m.downward.voices.Retain(m.directory.Present)
	if t := m.relay.transcoding; t != nil {
		t.retain(m.directory.Present)
	}
}

func (m *sessionOutput) participantJoined(p signal.Participant) {
	for _, publication := range p.Publications {
		m.published(p.Identity, publication)
	}
}

// published adds a publication. If the connector cannot read it, its transmission is switched off.
func (m *sessionOutput) published(participant string, publication volumetric.Publication) {
	admission := m.directory.Published(participant, publication)
	if admission.Admitted {
		m.downward.outlet.RestartClient(admission.Client)
		m.relay.log.Info("for the connector", "participant", participant, "publication", publication.Name, "client",
			admission.Client)
		if choices, _ := m.directory.Choices(m.downward.chosen); len(choices) > 0 {
			m.request(choices)
		}
		return
	}
	if !m.relay.settings.output {
		return
	}
	m.relay.log.Info("not for the connector", "participant", participant, "publication", publication.Name, "reason",
		admission.Reason)
	if publication.Kind == volumetric.KindVideo {
		ref := volumetric.PublicationRef{Participant: participant, Publication: publication.Name}
		m.request([]signal.Choice{{PublicationRef: ref, Quality: signal.Only(volumetric.QualityOff)}})
	}
}

// choose handles the text of a quality message.
func (m *sessionOutput) choose(text string) {
	m.downward.chosen = text
	choices, ignored := m.directory.Choices(text)
	for range ignored {
		m.relay.tally.Add(bridge.DropChoice)
	}
	if len(choices) > 0 {
		m.relay.log.Debug("qualities", "choices", len(choices))
		m.request(choices)
	}
}

// request queues a request for qualities.
func (m *sessionOutput) request(choices []signal.Choice) {
	select {
	case m.requests <- choices:
	default:
		m.relay.tally.Add(bridge.DropChoice)
		m.directory.Refused(choices)
	}
}

// client returns the number of a publisher, after handling all queued events if the publisher is unknown.
func (m *sessionOutput) client(ref volumetric.PublicationRef) (uint32, bool) {
	number, ok := m.directory.Client(ref)
	for !ok {
		select {
		case e, open := <-m.session.Events():
			if !open {
				return 0, false
			}
			m.handleEvent(e)
			number, ok = m.directory.Client(ref)
		default:
			return 0, false
		}
	}
	return number, true
}

// handleAudio handles an audio packet.
func (m *sessionOutput) handleAudio(p *client.Packet) {
	number, ok := m.client(p.Track.PublicationRef)
	if !ok {
		// Audio is sent to every receiver, also if the connector cannot play it.
		return
	}
	if m.relay.transcoding != nil && p.Codec.Is(volumetric.MIMEOpus) {
		m.transcodeAudio(p, number)
		return
	}
	received := m.downward.voices.Push(number, p.Payload, p.Arrival)
	if received == nil {
		return
	}
	m.downward.deliverAudio(received)
}

// handleFrame sends a received frame to the connector, as fast as the connector can read.
func (m *sessionOutput) handleFrame(ctx context.Context, f *client.Frame) {
	number, ok := m.client(f.Track.PublicationRef)
	switch {
	case !ok:
		m.relay.tally.Add(bridge.DropClient)
		return
	case f.Whole == nil && m.relay.transcoding != nil:
		m.unpack(f, number)
		return
	case len(f.Whole) < vr2gather.FrameHeaderSize:
		m.relay.tally.Add(bridge.DropHeader)
		return
	}
	m.downward.deliver(ctx, &bridge.Received{
		Kind: volumetric.KindVideo, Client: number, Tile: f.Track.Tile, Quality: f.Track.Quality,
		Number: uint32(f.Number), Data: f.Whole,
	}, func(long time.Duration) { m.forwardAudioUntil(ctx, long) })
	m.relay.figures.recordDown(m.session.ServerTime(time.Now()).Sub(f.Complete))
}

// forwardAudioUntil forwards audio for the given time.
func (m *sessionOutput) forwardAudioUntil(ctx context.Context, long time.Duration) {
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
			m.handleAudio(&p)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// deliver sends a tile frame to the connector as fast as the connector can read. While the pace is exhausted, deliver
// calls pause with the time to wait.
func (d *downward) deliver(ctx context.Context, r *bridge.Received, pause func(time.Duration)) {
	if d.connectorSilent() {
		return
	}
	d.video = d.outlet.AppendDatagrams(d.video[:0], r, time.Now())
	for rest := d.video; len(rest) > 0; {
		n, wait := d.pace.Take(time.Now(), len(rest)/vr2gather.DatagramSize)
		if n == 0 {
			pause(wait)
			if ctx.Err() != nil {
				return
			}
			continue
		}
		d.sendDatagrams(rest[:n*vr2gather.DatagramSize])
		rest = rest[n*vr2gather.DatagramSize:]
	}
	d.recordOutlet()
}

// deliverAudio sends an audio frame to the connector without pacing.
func (d *downward) deliverAudio(r *bridge.Received) {
	if d.connectorSilent() {
		return
	}
	d.audio = d.outlet.AppendDatagrams(d.audio[:0], r, time.Now())
	d.sendDatagrams(d.audio)
	d.recordOutlet()
}

// connectorSilent reports whether the connector is silent, and counts the frame that is not sent because of that.
// Without a connector, frames are cut and counted as if they were sent.
func (d *downward) connectorSilent() bool {
	if d.local == nil {
		return false
	}
	if _, ok := d.local.Receiver(time.Now()); ok {
		return false
	}
	d.tally.Add(bridge.DropSilent)
	return true
}

// sendDatagrams sends datagrams to the connector, if there is one.
func (d *downward) sendDatagrams(datagrams []byte) {
	if d.local == nil {
		return
	}
	if receiver, ok := d.local.Receiver(time.Now()); ok && len(datagrams) > 0 {
		d.local.Send(datagrams, receiver)
	}
}

// recordOutlet publishes the counters of the outlet.
func (d *downward) recordOutlet() {
	d.figures.update(func(c *counts) { c.outlet = d.outlet.Counts() })
}

// sendViewpoint sends the connector's viewpoint to the server, if it is known.
func (m *sessionOutput) sendViewpoint() {
	if v := m.downward.view; v != nil {
		m.session.SetViewpoint(client.Viewpoint{Position: v.Position, Orientation: v.Orientation,
			FOV: v.FOV * math.Pi / 180, Aspect: v.Aspect})
	}
}

// sendPose sends the pose of the connector's object to the server, if the pose is known and the object is published.
func (s *Relay) sendPose(session *client.Session) {
	pose, publisher := s.pose.Load(), session.Publisher(cloudName)
	if pose == nil || publisher == nil {
		return
	}
	publisher.SetPose(client.Pose{Position: pose.Position, Orientation: pose.Orientation, Scale: pose.Scale,
		Boxes: pose.Boxes})
}
