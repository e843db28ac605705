package hotpath

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Names of the publications: receivers subscribe to the first and switch the second off.
const (
	room          = "hot-path"
	watchedName   = "watched"
	unwatchedName = "unwatched"
)

// session is a participant that answers the server's offers and acknowledges the server's assignments, and requests
// nothing else. Its run goroutine owns it.
type session struct {
	*peer
	part    part
	conn    *websocket.Conn
	running sync.WaitGroup
	// tracks are the tracks to publish, by the line of the offer that named the track. attached is closed when all are
	// attached.
	tracks   map[volumetric.TrackRef]*webrtc.TrackLocalStaticRTP
	attached chan struct{}
	// stopReports ends the goroutine that makes reports.
	stopReports context.CancelFunc

	writing sync.Mutex
	mu      sync.Mutex
	err     error
}

// joinRoom joins and starts to answer.
func joinRoom(ctx context.Context, url string, part part) (*session, error) {
	p, err := newPeer(part.every)
	if err != nil {
		return nil, err
	}
	s := &session{peer: p, part: part, tracks: make(map[volumetric.TrackRef]*webrtc.TrackLocalStaticRTP),
		attached: make(chan struct{}), stopReports: func() {}}
	if part.reports.made {
		s.reception.reporter = newReporter(part.reports.codepoint)
		if err := p.socket.Stamp(); err != nil {
			return nil, errors.Join(err, p.close())
		}
	}
	var response *http.Response
	if s.conn, response, err = websocket.DefaultDialer.DialContext(ctx, url+signal.Path, nil); err != nil {
		if response != nil {
			err = fmt.Errorf("%w (%s)", err, response.Status)
		}
		return nil, errors.Join(err, p.close())
	}
	s.conn.SetReadLimit(signal.MaxMessageBytes)
	p.pc.OnICECandidate(s.candidate)
	s.running.Go(s.run)
	err = s.greet()
	if err == nil {
		err = s.settle(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.failure(), s.close())
	}
	if reporter := s.reception.reporter; reporter != nil {
		var reporting context.Context
		reporting, s.stopReports = context.WithCancel(context.Background())
		s.running.Go(func() { reporter.run(reporting, s.pc.WriteRTCP) })
	}
	return s, nil
}

// greet joins and switches off the unwatched tracks: choices may be made before the publications exist.
func (s *session) greet() error {
	join := &signal.Join{Version: signal.Version, Room: room, Identity: s.part.identity(), Receive: s.part.receives}
	if s.part.publishes {
		join.Publications = s.part.load.publications()
	}
	if err := s.send(join); err != nil || !s.part.receives || s.part.load.UnwatchedTracks == 0 {
		return err
	}
	off := &signal.SetQuality{}
	for i := range s.part.load.Publishers {
		ref := volumetric.PublicationRef{Participant: publisherName(i), Publication: unwatchedName}
		off.Choices = append(off.Choices, signal.Choice{PublicationRef: ref,
			Quality: signal.Only(volumetric.QualityOff)})
	}
	return s.send(off)
}

// settle waits until the client is connected and each of its tracks has a line.
func (s *session) settle(ctx context.Context) error {
	if s.part.publishes {
		select {
		case <-s.attached:
		case <-s.failed:
			return errConnection
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.connect(ctx)
}

// publications returns the publications of a load.
func (l Load) publications() []volumetric.Publication {
	describe := func(name string, tiles, qualities int) volumetric.Publication {
		p := volumetric.Publication{
			Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			FrameRate: l.FrameRate, Tiles: make([]volumetric.Tile, tiles),
			Qualities: make([]volumetric.QualityLevel, qualities),
		}
		for q := range p.Qualities {
			p.Qualities[q].Bitrate = volumetric.Bitrate(float64(8*l.frameBytes()) * l.FrameRate)
		}
		return p
	}
	list := []volumetric.Publication{describe(watchedName, l.Tracks, l.Qualities)}
	if l.UnwatchedTracks > 0 {
		list = append(list, describe(unwatchedName, l.UnwatchedTracks, 1))
	}
	return list
}

// run reads and processes messages until the websocket ends.
func (s *session) run() {
	for {
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			s.fail(err)
			return
		}
		m, err := signal.DecodeFromServer(data)
		if errors.Is(err, signal.ErrUnknownType) {
			continue
		}
		if err == nil {
			err = s.take(m)
		}
		if err != nil {
			s.fail(err)
			_ = s.conn.Close()
			return
		}
	}
}

// take processes one message.
func (s *session) take(m signal.Message) error {
	switch m := m.(type) {
	case *signal.Offer:
		return s.answer(m)
	case *signal.Candidate:
		index := uint16(m.LineIndex)
		return s.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: m.Candidate, SDPMid: &m.MID,
			SDPMLineIndex: &index})
	case *signal.Assignments:
		acknowledge := &signal.Acknowledge{}
		for _, a := range m.Assignments {
			if a.Track != nil {
				acknowledge.Slots = append(acknowledge.Slots, signal.SlotGeneration{MID: a.MID,
					Generation: a.Generation})
			}
		}
		if len(acknowledge.Slots) > 0 {
			return s.send(acknowledge)
		}
	case *signal.Error:
		return m
	case *signal.Closing:
		return fmt.Errorf("%w: %s: %s", errConnection, m.Code, m.Message)
	}
	return nil
}

// answer handles an offer: it attaches tracks to their lines and sends the answer.
func (s *session) answer(offer *signal.Offer) error {
	if err := s.negotiated(offer.SDP); err != nil {
		return err
	}
	if err := s.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer,
		SDP: offer.SDP}); err != nil {
		return err
	}
	lines := make(map[string]*webrtc.RTPTransceiver)
	for _, t := range s.pc.GetTransceivers() {
		lines[t.Mid()] = t
	}
	for _, m := range offer.Media {
		if m.Role == signal.RolePublish && m.Quality != nil {
			if err := s.attach(lines[m.MID], m); err != nil {
				return fmt.Errorf("line %s: %w", m.MID, err)
			}
		}
	}
	answer, err := s.pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	if err := s.pc.SetLocalDescription(answer); err != nil {
		return err
	}
	if s.part.publishes && len(s.tracks) == s.part.load.tracksPerPublisher() {
		select {
		case <-s.attached:
		default:
			close(s.attached)
		}
	}
	if s.part.reports.made {
		answer.SDP = acceptReports(answer.SDP)
	}
	return s.send(&signal.Answer{Offer: offer.Offer, SDP: answer.SDP})
}

// tracksPerPublisher returns the number of tracks that one publisher sends.
func (l Load) tracksPerPublisher() int { return l.Tracks*l.Qualities + l.UnwatchedTracks }

// attach attaches the track of a line, once.
func (s *session) attach(line *webrtc.RTPTransceiver, m signal.Media) error {
	ref := volumetric.TrackRef{Quality: *m.Quality}
	ref.Publication, ref.Tile = m.Publication, m.Tile
	if line == nil || s.tracks[ref] != nil {
		return nil
	}
	track, err := s.track(m.Publication + "-" + strconv.Itoa(m.Tile) + "-" + strconv.Itoa(int(*m.Quality)))
	if err != nil {
		return err
	}
	sender, err := s.api.NewRTPSender(track, s.pc.SCTP().Transport())
	if err != nil {
		return err
	}
	if err := line.SetSender(sender, track); err != nil {
		return err
	}
	s.tracks[ref] = track
	return nil
}

// candidate sends a local candidate to the server, or the end of candidates.
func (s *session) candidate(c *webrtc.ICECandidate) {
	m := &signal.Candidate{}
	if c != nil {
		init := c.ToJSON()
		m.Candidate = init.Candidate
		if init.SDPMid != nil {
			m.MID = *init.SDPMid
		}
		if init.SDPMLineIndex != nil {
			m.LineIndex = int(*init.SDPMLineIndex)
		}
	}
	if err := s.send(m); err != nil {
		s.fail(err)
	}
}

// send writes one message.
func (s *session) send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.WriteMessage(websocket.TextMessage, data)
}

// fail records the first error.
func (s *session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// leavePatience bounds the wait for the server to close the websocket. Closing the websocket earlier could discard the
// leave message: TCP resets a connection that is closed with messages unread, and the server would then keep the
// participant for a resume.
const leavePatience = 5 * time.Second

// close leaves the room and closes the connections.
func (s *session) close() error {
	s.stopReports()
	_ = s.conn.SetReadDeadline(time.Now().Add(leavePatience))
	_ = s.send(&signal.Leave{})
	s.running.Wait()
	_ = s.conn.Close()
	return s.peer.close()
}
