package standin

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/pion/webrtc/v4"
)

// member is one participant. Except for writing, the state is protected by the stand-in's lock.
type member struct {
	sfu                      *SFU
	client, tiles, qualities int
	conn                     *websocket.Conn
	connection               *webrtc.PeerConnection
	writing                  sync.Mutex

	outlets map[source]*outlet
	// unanswered is the number of offers without an answer, offered is set while an answer is to be applied, outdated
	// if another offer is to follow.
	unanswered        int
	offered, outdated bool
	// early are the member's candidates that arrived before the answer.
	early []string
}

// connect creates the connection, with the lines that receive the member's tracks: sound, then tile × quality.
func (m *member) connect() error {
	connection, err := newConnection(m.sfu.config)
	if err != nil {
		return err
	}
	m.connection = connection
	connection.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c != nil {
			m.say(typeCandidate, c.ToJSON().Candidate)
		}
	})
	connection.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { m.receive(track) })
	if m.sfu.config.Faults.SendLinesFirst {
		if _, err := m.addOutlet(source{client: 99, tile: 0}, webrtc.RTPTransceiverDirectionSendonly); err != nil {
			return err
		}
	}
	receive := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	if _, err := connection.AddTransceiverFromKind(webrtc.RTPCodecTypeAudio, receive); err != nil {
		return err
	}
	for range m.tiles * m.qualities {
		if _, err := connection.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, receive); err != nil {
			return err
		}
	}
	return nil
}

// takeFrom creates the lines that carry another member's media to this member. The first lines are those that already
// receive from this member, as in the original.
func (m *member) takeFrom(other *member) error {
	for tile := sound; tile < other.tiles; tile++ {
		if _, err := m.addOutlet(source{other.client, tile}, webrtc.RTPTransceiverDirectionSendrecv); err != nil {
			return err
		}
	}
	return nil
}

// dropFrom stops sending another member's media to this member.
func (m *member) dropFrom(client int) {
	for from, o := range m.outlets {
		if from.client == client {
			_ = m.connection.RemoveTrack(o.sender)
			delete(m.outlets, from)
		}
	}
}

// negotiate sends an offer, at once or after the awaited answer.
func (m *member) negotiate() {
	if m.unanswered > 0 {
		m.outdated = true
		return
	}
	offer, err := m.connection.CreateOffer(nil)
	if err != nil {
		return
	}
	m.offered = true
	faults := m.sfu.config.Faults
	if !faults.CandidatesFirst {
		m.sayOffer(offer)
	}
	gathered := webrtc.GatheringCompletePromise(m.connection)
	if m.connection.SetLocalDescription(offer) != nil {
		return
	}
	if faults.CandidatesFirst {
		// The goroutines that find candidates do not need the lock that is held here.
		<-gathered
		m.sayOffer(offer)
	}
	if faults.SecondOffer {
		m.sayOffer(offer)
	}
}

// sayOffer sends an offer without candidates, followed by the candidates that could only be sent afterwards.
func (m *member) sayOffer(offer webrtc.SessionDescription) {
	faults := m.sfu.config.Faults
	if faults.BadOffer {
		offer.SDP = strings.Replace(offer.SDP, "a=mid:", "a=muddle:", 1)
	}
	encoded, err := json.Marshal(offer)
	if err != nil {
		return
	}
	m.unanswered++
	m.say(typeOffer, string(encoded))
	if faults.BadCandidate {
		m.say(typeCandidate, "candidate:1 1 udp")
	}
	if faults.ShortMessage {
		m.write("0@" + typeOffer)
	}
}

// The message types.
const (
	typeOffer     = "2"
	typeAnswer    = "3"
	typeCandidate = "4"
	typeQualities = "7"
)

func (m *member) say(kind, payload string) { m.write("0@" + kind + "@" + payload) }

func (m *member) write(text string) {
	m.writing.Lock()
	defer m.writing.Unlock()
	_ = m.conn.WriteMessage(websocket.TextMessage, []byte(text))
}

// read handles messages until the websocket ends or a message is invalid.
func (m *member) read() {
	for {
		_, data, err := m.conn.ReadMessage()
		if err != nil {
			return
		}
		parts := strings.SplitN(string(data), "@", 3)
		if len(parts) < 3 {
			return
		}
		if err := m.handle(parts[1], parts[2]); err != nil {
			return
		}
	}
}

func (m *member) handle(kind, payload string) error {
	switch kind {
	case typeAnswer:
		return m.accept(payload)
	case typeCandidate:
		if m.connection.RemoteDescription() == nil {
			m.early = append(m.early, payload)
			return nil
		}
		return m.connection.AddICECandidate(webrtc.ICECandidateInit{Candidate: payload})
	case typeQualities:
		m.sfu.mu.Lock()
		defer m.sfu.mu.Unlock()
		m.choose(payload)
		return nil
	default:
		return fmt.Errorf("message of type %s", kind)
	}
}

// accept applies an answer. The second answer to two simultaneous offers is ignored.
func (m *member) accept(payload string) error {
	var answer webrtc.SessionDescription
	if err := json.Unmarshal([]byte(payload), &answer); err != nil {
		return err
	}
	m.sfu.mu.Lock()
	defer m.sfu.mu.Unlock()
	m.unanswered--
	if m.offered {
		m.offered = false
		if err := m.connection.SetRemoteDescription(answer); err != nil {
			return err
		}
	}
	for _, candidate := range m.early {
		if err := m.connection.AddICECandidate(webrtc.ICECandidateInit{Candidate: candidate}); err != nil {
			return err
		}
	}
	m.early = nil
	if m.outdated && m.unanswered == 0 {
		m.outdated = false
		m.negotiate()
	}
	return nil
}
