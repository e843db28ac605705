package hardening

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"

	"github.com/volsfu/volsfu/pkg/signal"
)

// intruder is a participant that says in signalling what an attack needs. Its room is its own.
type intruder struct {
	stage *stage
	from  *namespace
	ws    *websocket.Conn
	// ufrag and password are its ICE credentials, certificate is for DTLS.
	ufrag, password string
	certificate     tls.Certificate
	fingerprint     string
	offers          chan *signal.Offer
	ended           chan struct{}
	running         sync.WaitGroup
	closing         sync.Once

	writing sync.Mutex
	mu      sync.Mutex
	// remote are the server's ICE credentials by its latest offer.
	remoteUfrag, remotePassword string
	refusal                     *signal.Error
}

// offersKept is how many offers wait for an answer: newer ones replace older ones, so that one is enough.
const offersKept = 1

// rooms numbers intruders, each of which has a room and a name of its own.
var rooms atomic.Int64

// errRefused says that a join was refused, or the websocket ended.
var errRefused = errors.New("the server takes no more from this websocket")

// openWebsocket opens a websocket to the server from a host.
func (s *stage) openWebsocket(ctx context.Context, from *namespace) (*websocket.Conn, error) {
	dialer := websocket.Dialer{
		HandshakeTimeout: joinPatience,
		NetDialContext:   func(ctx context.Context, _, address string) (net.Conn, error) { return from.dial(ctx, "tcp4", address) },
	}
	header := http.Header{"Authorization": {"Bearer " + s.token}}
	ws, response, err := dialer.DialContext(ctx, "ws://"+s.server.signalling()+signal.Path, header)
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("websocket of %s: %w", from.name, err)
	}
	return ws, nil
}

// intrude joins a room of the intruder's own. The join has what the attack needs but for room and name.
func (s *stage) intrude(ctx context.Context, from *namespace, join signal.Join) (*intruder, error) {
	ws, err := s.openWebsocket(ctx, from)
	if err != nil {
		return nil, err
	}
	number := rooms.Add(1)
	i := &intruder{
		stage: s, from: from, ws: ws, offers: make(chan *signal.Offer, offersKept), ended: make(chan struct{}),
		ufrag: fmt.Sprintf("mallory%d", number), password: rand.Text(),
	}
	if i.certificate, err = selfsign.GenerateSelfSigned(); err != nil {
		_ = ws.Close()
		return nil, err
	}
	var sum []string
	for _, b := range sha256.Sum256(i.certificate.Certificate[0]) {
		sum = append(sum, fmt.Sprintf("%02X", b))
	}
	i.fingerprint = "sha-256 " + strings.Join(sum, ":")
	join.Version, join.Room, join.Identity = signal.Version, fmt.Sprintf("room %d", number), fmt.Sprintf("mallory %d", number)
	i.running.Go(i.read)
	if err := i.send(&join); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// read is the goroutine that reads the websocket.
func (i *intruder) read() {
	defer close(i.ended)
	for {
		_, data, err := i.ws.ReadMessage()
		if err != nil {
			return
		}
		m, err := signal.DecodeFromServer(data)
		if err != nil {
			continue
		}
		switch m := m.(type) {
		case *signal.Offer:
			i.take(m)
		case *signal.Error:
			i.mu.Lock()
			i.refusal = m
			i.mu.Unlock()
		}
	}
}

// take keeps an offer, in place of an older one that nothing has answered.
func (i *intruder) take(offer *signal.Offer) {
	i.mu.Lock()
	i.remoteUfrag, i.remotePassword = attribute(offer.SDP, "ice-ufrag"), attribute(offer.SDP, "ice-pwd")
	i.mu.Unlock()
	select {
	case <-i.offers:
	default:
	}
	i.offers <- offer
}

// attribute is the value of the first attribute of a name in a description.
func attribute(sdp, name string) string {
	_, rest, _ := strings.Cut(sdp, "\r\na="+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// offer waits for the server's next offer.
func (i *intruder) offer(ctx context.Context) (*signal.Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	select {
	case o := <-i.offers:
		return o, nil
	case <-i.ended:
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.refusal != nil {
			return nil, fmt.Errorf("%w: %w", errRefused, i.refusal)
		}
		return nil, errRefused
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for an offer: %w", ctx.Err())
	}
}

// answer answers an offer with candidates, which need not be the intruder's own.
func (i *intruder) answer(offer *signal.Offer, candidates ...netip.AddrPort) error {
	return i.send(&signal.Answer{Offer: offer.Offer, SDP: i.description(offer.SDP, candidates)})
}

// description makes an answer to the lines of an offer. The intruder is DTLS's client. It sends on lines that the server
// wants to receive on, and receives on the others.
func (i *intruder) description(offer string, candidates []netip.AddrPort) string {
	session, lines, _ := strings.Cut(offer, "\r\nm=")
	var answer strings.Builder
	answer.WriteString("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:" + attribute(session, "group") + "\r\n")
	for n, line := range strings.Split(lines, "\r\nm=") {
		head, attributes, _ := strings.Cut(line, "\r\n")
		fmt.Fprintf(&answer, "m=%s\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:%s\r\na=ice-pwd:%s\r\na=fingerprint:%s\r\na=setup:active\r\n",
			head, i.ufrag, i.password, i.fingerprint)
		for _, text := range strings.Split(attributes, "\r\n") {
			switch {
			case text == "a=recvonly":
				fmt.Fprintf(&answer, "a=sendonly\r\na=ssrc:%d cname:mallory\r\n", 1000+n)
			case text == "a=sendonly":
				answer.WriteString("a=recvonly\r\n")
			case strings.HasPrefix(text, "a=mid:"), strings.HasPrefix(text, "a=rtpmap:"), strings.HasPrefix(text, "a=fmtp:"),
				strings.HasPrefix(text, "a=rtcp-"), strings.HasPrefix(text, "a=sctp-port:"), text == "a=inactive":
				answer.WriteString(text + "\r\n")
			}
		}
		if n == 0 {
			for k, c := range candidates {
				fmt.Fprintf(&answer, "a=candidate:%d 1 udp %d %v %d typ host\r\n", k+1, 2130706431-k, c.Addr(), c.Port())
			}
		}
	}
	return answer.String()
}

// send sends a message.
func (i *intruder) send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	i.writing.Lock()
	defer i.writing.Unlock()
	return i.ws.WriteMessage(websocket.TextMessage, data)
}

// leavePatience is how long the server may take to close the websocket of an intruder that leaves.
const leavePatience = time.Second

// close ends the websocket. It leaves before, so that the server does not keep the participant for its return.
func (i *intruder) close() {
	i.closing.Do(func() {
		_ = i.ws.SetWriteDeadline(time.Now().Add(leavePatience))
		_ = i.send(&signal.Leave{})
		select {
		case <-i.ended:
		case <-time.After(leavePatience):
		}
		_ = i.ws.Close()
		i.running.Wait()
	})
}
