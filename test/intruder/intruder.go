// Package intruder implements an attacking participant. The package joins like other participants and then sends
// what an attack needs in signalling, STUN, DTLS and SCTP.
//
// An Intruder has a goroutine that reads its websocket, and each of its Paths one that reads a socket. Close and End
// stop these goroutines.
package intruder

import (
	"cmp"
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

// Intruder is the signalling client of an attacking participant.
type Intruder struct {
	config Config
	ws     *websocket.Conn
	// ufrag and password are the intruder's ICE credentials. certificate is its DTLS certificate.
	ufrag, password string
	certificate     tls.Certificate
	fingerprint     string
	offers          chan *signal.Offer
	// answered is closed when the server has answered the join, ended when the websocket has ended.
	answered, ended chan struct{}
	running         sync.WaitGroup
	closing         sync.Once

	writing sync.Mutex
	mu      sync.Mutex
	// remoteUfrag and remotePassword are the server's ICE credentials in its latest offer.
	remoteUfrag, remotePassword string
	media                       netip.AddrPort
	// joined is set once the server has accepted the join. refusal is the latest error that the server sent.
	joined  bool
	refusal *signal.Error
}

// offersKept is the number of offers that wait for an answer. A newer offer replaces an older one.
const offersKept = 1

// numbers counts the calls of Number.
var numbers atomic.Int64

// Number returns a number that no other call returns, for unique names.
func Number() int64 { return numbers.Add(1) }

// ErrRefused means that the server has refused a join or has ended the websocket.
var ErrRefused = errors.New("the server has refused the join or ended the websocket")

// Config is the server that an intruder joins, and the way there.
type Config struct {
	// URL is the server's address, as ws://host:port. Token is the access token, empty for a server without tokens.
	URL, Token string
	// Media is the UDP address of the server. If it is not valid, the server's first UDP candidate is used.
	Media netip.AddrPort
	// Dial opens the websocket's connection, Listen a UDP socket. By default both are on this host, with UDP on
	// 127.0.0.1.
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Listen func() (*net.UDPConn, error)
}

// patience bounds the wait for the server. A server that is not overloaded needs a fraction of a second.
const patience = 30 * time.Second

// OpenWebsocket opens a websocket to the server. No message is sent.
func (c *Config) OpenWebsocket(ctx context.Context) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: c.Dial}
	header := http.Header{}
	if c.Token != "" {
		header.Set("Authorization", "Bearer "+c.Token)
	}
	ws, response, err := dialer.DialContext(ctx, c.URL+signal.Path, header)
	if response != nil {
		_ = response.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("websocket of the intruder: %w", err)
	}
	return ws, nil
}

// Join joins a room: it sends a join and waits for the reply. Without a room or an identity, the join has unique ones.
// The error wraps ErrRefused if the server has refused the join.
func Join(ctx context.Context, config Config, join signal.Join) (*Intruder, error) {
	if config.Listen == nil {
		config.Listen = func() (*net.UDPConn, error) {
			return net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		}
	}
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, err
	}
	ws, err := config.OpenWebsocket(ctx)
	if err != nil {
		return nil, err
	}
	number := Number()
	i := &Intruder{
		config: config, ws: ws, offers: make(chan *signal.Offer, offersKept),
		answered: make(chan struct{}), ended: make(chan struct{}),
		ufrag: fmt.Sprintf("mallory%d", number), password: rand.Text(), certificate: certificate, media: config.Media,
	}
	var sum []string
	for _, b := range sha256.Sum256(certificate.Certificate[0]) {
		sum = append(sum, fmt.Sprintf("%02X", b))
	}
	i.fingerprint = "sha-256 " + strings.Join(sum, ":")
	join.Version = signal.Version
	join.Room = cmp.Or(join.Room, fmt.Sprintf("room %d", number))
	join.Identity = cmp.Or(join.Identity, fmt.Sprintf("mallory %d", number))
	i.running.Go(i.read)
	if err := i.Send(&join); err != nil {
		i.Drop()
		return nil, err
	}
	if err := i.admitted(ctx); err != nil {
		i.Drop()
		return nil, err
	}
	return i, nil
}

// admitted waits for the reply to the join.
func (i *Intruder) admitted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-i.answered:
	case <-i.ended:
	case <-ctx.Done():
		return fmt.Errorf("waiting for the reply to a join: %w", ctx.Err())
	}
	i.mu.Lock()
	joined := i.joined
	i.mu.Unlock()
	if !joined {
		return i.refused()
	}
	return nil
}

// refused returns ErrRefused, wrapped with the latest error that the server sent.
func (i *Intruder) refused() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refusal != nil {
		return fmt.Errorf("%w: %w", ErrRefused, i.refusal)
	}
	return ErrRefused
}

// read is the goroutine that reads the websocket.
func (i *Intruder) read() {
	defer close(i.ended)
	var answered sync.Once
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
		case *signal.Candidate:
			i.learn(m.Candidate)
		case *signal.Joined:
			i.mu.Lock()
			i.joined = true
			i.mu.Unlock()
			answered.Do(func() { close(i.answered) })
		case *signal.Error:
			i.mu.Lock()
			i.refusal = m
			i.mu.Unlock()
			answered.Do(func() { close(i.answered) })
		}
	}
}

// take keeps an offer and replaces an older offer without an answer.
func (i *Intruder) take(offer *signal.Offer) {
	i.mu.Lock()
	i.remoteUfrag, i.remotePassword = attribute(offer.SDP, "ice-ufrag"), attribute(offer.SDP, "ice-pwd")
	i.mu.Unlock()
	select {
	case <-i.offers:
	default:
	}
	i.offers <- offer
}

// learn sets the server's address from a UDP candidate, if the address is not known.
func (i *Intruder) learn(candidate string) {
	fields := strings.Fields(candidate)
	if len(fields) < 6 || !strings.EqualFold(fields[2], "udp") {
		return
	}
	address, err := netip.ParseAddrPort(net.JoinHostPort(fields[4], fields[5]))
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil && !i.media.IsValid() {
		i.media = address
	}
}

// Media returns the UDP address of the server. The address is not valid while it is unknown.
func (i *Intruder) Media() netip.AddrPort {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.media
}

// attribute returns the value of the first attribute with a name in a description.
func attribute(sdp, name string) string {
	_, rest, _ := strings.Cut(sdp, "\r\na="+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// Offer waits for the server's next offer. The error wraps ErrRefused if the websocket has ended.
func (i *Intruder) Offer(ctx context.Context) (*signal.Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case o := <-i.offers:
		return o, nil
	case <-i.ended:
		return nil, i.refused()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for an offer: %w", ctx.Err())
	}
}

// Answer answers an offer with candidates. The addresses need not be the intruder's own.
func (i *Intruder) Answer(offer *signal.Offer, candidates ...netip.AddrPort) error {
	own := transport{i.ufrag, i.password, i.fingerprint}
	return i.Send(&signal.Answer{Offer: offer.Offer, SDP: own.answer(offer.SDP, candidates)})
}

// transport has the ICE and DTLS parameters of a description.
type transport struct{ ufrag, password, fingerprint string }

// Answer makes an answer to an offer for an intruder that does not exist.
func Answer(offer string, candidates []netip.AddrPort) string {
	absent := transport{"mallory", strings.Repeat("p", 22), "sha-256 " + strings.Repeat("00:", sha256.Size-1) + "00"}
	return absent.answer(offer, candidates)
}

// answer makes an answer to the lines of an offer. The intruder is the DTLS client. answer sends on lines that the
// server wants to receive on, and receives on the others.
func (t *transport) answer(offer string, candidates []netip.AddrPort) string {
	session, lines, _ := strings.Cut(offer, "\r\nm=")
	var answer strings.Builder
	group := attribute(session, "group")
	answer.WriteString("v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:" + group + "\r\n")
	for n, line := range strings.Split(lines, "\r\nm=") {
		head, attributes, _ := strings.Cut(line, "\r\n")
		fmt.Fprintf(&answer, "m=%s\r\nc=IN IP4 0.0.0.0\r\n", head)
		fmt.Fprintf(&answer, "a=ice-ufrag:%s\r\na=ice-pwd:%s\r\n", t.ufrag, t.password)
		fmt.Fprintf(&answer, "a=fingerprint:%s\r\na=setup:active\r\n", t.fingerprint)
		for _, text := range strings.Split(attributes, "\r\n") {
			answer.WriteString(mirrored(text, n))
		}
		if n == 0 {
			for k, c := range candidates {
				priority := 2130706431 - k
				fmt.Fprintf(&answer, "a=candidate:%d 1 udp %d %v %d typ host\r\n", k+1, priority, c.Addr(), c.Port())
			}
		}
	}
	return answer.String()
}

// kept are the prefixes of the line attributes that are the same in offer and answer.
var kept = []string{"a=mid:", "a=rtpmap:", "a=fmtp:", "a=rtcp-", "a=sctp-port:", "a=inactive"}

// mirrored returns the answer's attribute for an attribute of an offer's line. line is the index of the line.
func mirrored(text string, line int) string {
	switch text {
	case "a=recvonly":
		return fmt.Sprintf("a=sendonly\r\na=ssrc:%d cname:mallory\r\n", 1000+line)
	case "a=sendonly":
		return "a=recvonly\r\n"
	}
	for _, beginning := range kept {
		if strings.HasPrefix(text, beginning) {
			return text + "\r\n"
		}
	}
	return ""
}

// Send sends a message.
func (i *Intruder) Send(m signal.Message) error {
	data, err := signal.Encode(m)
	if err != nil {
		return err
	}
	i.writing.Lock()
	defer i.writing.Unlock()
	return i.ws.WriteMessage(websocket.TextMessage, data)
}

// leavePatience bounds the wait for the server to close the websocket after a leave.
const leavePatience = time.Second

// Ended returns a channel that is closed when the websocket has ended.
func (i *Intruder) Ended() <-chan struct{} { return i.ended }

// Close sends a leave and ends the websocket. After a leave the server does not keep the participant for a resume.
func (i *Intruder) Close() {
	i.closing.Do(func() {
		_ = i.ws.SetWriteDeadline(time.Now().Add(leavePatience))
		_ = i.Send(&signal.Leave{})
		select {
		case <-i.ended:
		case <-time.After(leavePatience):
		}
		_ = i.ws.Close()
		i.running.Wait()
	})
}

// Drop ends the websocket without a leave. The server keeps the participant for a resume.
func (i *Intruder) Drop() {
	i.closing.Do(func() {
		_ = i.ws.Close()
		i.running.Wait()
	})
}
