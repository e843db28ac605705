package intruder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/logging"
	"github.com/pion/sctp"
	"github.com/pion/stun/v4"
	"github.com/pion/transport/v5/deadline"
)

// Path is an intruder's UDP socket that ICE has connected to the server. A Path continues to answer checks. Path
// implements net.PacketConn for DTLS.
type Path struct {
	*net.UDPConn
	intruder *Intruder
	// Server is the UDP address of the server.
	Server  netip.AddrPort
	records chan []byte
	closed  chan struct{}
	once    sync.Once
	running sync.WaitGroup
	// nominated is closed once the server has nominated this path.
	nominated chan struct{}
	chosen    sync.Once
	mu        sync.Mutex
	// sent are the first records that DTLS has sent.
	sent [][]byte
	// replies counts the server's replies to checks.
	replies atomic.Int64
	// deadline is the read deadline. Setting it wakes a waiting reader.
	deadline *deadline.Deadline
}

// recordsKnown is the number of sent DTLS records that a path keeps. A handshake has some ten.
const recordsKnown = 16

// recordsKept is the number of received DTLS records that wait for a reader.
const recordsKept = 1024

// checkInterval is the interval of the intruder's checks until the server has nominated the path.
const checkInterval = 20 * time.Millisecond

// Reach answers the server's offer with a socket of the intruder and waits until ICE has connected the socket.
func (i *Intruder) Reach(ctx context.Context) (*Path, error) {
	offer, err := i.Offer(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !i.Media().IsValid() {
		select {
		case <-time.After(checkInterval):
		case <-ctx.Done():
			return nil, fmt.Errorf("the server names no candidate: %w", ctx.Err())
		}
	}
	conn, err := i.config.Listen()
	if err != nil {
		return nil, err
	}
	p := &Path{
		UDPConn: conn, intruder: i, Server: i.Media(), records: make(chan []byte, recordsKept),
		closed: make(chan struct{}), nominated: make(chan struct{}), deadline: deadline.New(),
	}
	p.running.Go(p.read)
	own := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	if err := i.Answer(offer, own); err != nil {
		p.End()
		return nil, err
	}
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		_, _ = p.WriteToUDPAddrPort(i.Request(), p.Server)
		select {
		case <-p.nominated:
			return p, nil
		case <-ticker.C:
		case <-i.ended:
			p.End()
			return nil, ErrRefused
		case <-ctx.Done():
			p.End()
			return nil, fmt.Errorf("ICE of the intruder: %w", ctx.Err())
		}
	}
}

// Attributes of RFC 8445 section 16.1: the priority of a peer reflexive candidate, and the role with its tie-breaker,
// which is used only if both sides have the same role.
var (
	checkPriority = stun.RawAttribute{Type: stun.AttrPriority, Value: []byte{110, 0, 30, 255}}
	controlled    = stun.RawAttribute{Type: stun.AttrICEControlled, Value: []byte("intruder")}
)

// Request returns a valid binding request from the intruder to the server.
func (i *Intruder) Request() []byte {
	i.mu.Lock()
	ufrag, password := i.remoteUfrag, i.remotePassword
	i.mu.Unlock()
	m := stun.MustBuild(stun.TransactionID, stun.BindingRequest, stun.NewUsername(ufrag+":"+i.ufrag),
		checkPriority, controlled, stun.NewShortTermIntegrity(password), stun.Fingerprint)
	return m.Raw
}

// Framed returns a packet with the header of ICE-TCP (RFC 4571 section 2).
func Framed(packet []byte) []byte {
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
}

// read is the goroutine that reads the socket.
func (p *Path) read() {
	buffer := make([]byte, 2048)
	for {
		n, from, err := p.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// The kernel reports here that an earlier datagram was refused.
			continue
		}
		data := append([]byte(nil), buffer[:n]...)
		switch {
		case stun.IsMessage(data):
			p.check(data, from)
		case len(data) > 0 && data[0] >= 20 && data[0] <= 63:
			select {
			case p.records <- data:
			default:
			}
		}
	}
}

// Replies returns the number of checks that the server has answered.
func (p *Path) Replies() int64 { return p.replies.Load() }

// check answers a check of the server, and counts replies.
func (p *Path) check(data []byte, from netip.AddrPort) {
	m := &stun.Message{Raw: data}
	if m.Decode() != nil {
		return
	}
	if m.Type == stun.BindingSuccess {
		p.replies.Add(1)
	}
	if m.Type != stun.BindingRequest {
		return
	}
	mapped := &stun.XORMappedAddress{IP: from.Addr().AsSlice(), Port: int(from.Port())}
	reply, err := stun.Build(stun.NewTransactionIDSetter(m.TransactionID), stun.BindingSuccess, mapped,
		stun.NewShortTermIntegrity(p.intruder.password), stun.Fingerprint)
	if err != nil {
		return
	}
	_, _ = p.WriteToUDPAddrPort(reply.Raw, from)
	if m.Contains(stun.AttrUseCandidate) {
		p.chosen.Do(func() { close(p.nominated) })
	}
}

// ReadFrom implements net.PacketConn for DTLS.
func (p *Path) ReadFrom(b []byte) (int, net.Addr, error) {
	select {
	case data := <-p.records:
		return copy(b, data), net.UDPAddrFromAddrPort(p.Server), nil
	case <-p.closed:
		return 0, nil, net.ErrClosed
	case <-p.deadline.Done():
		return 0, nil, os.ErrDeadlineExceeded
	}
}

// Sent returns the first records that DTLS has sent.
func (p *Path) Sent() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.sent)
}

// WriteTo implements net.PacketConn for DTLS.
func (p *Path) WriteTo(b []byte, _ net.Addr) (int, error) {
	p.mu.Lock()
	if len(p.sent) < recordsKnown {
		p.sent = append(p.sent, append([]byte(nil), b...))
	}
	p.mu.Unlock()
	return p.WriteToUDPAddrPort(b, p.Server)
}

// SetReadDeadline implements net.PacketConn for DTLS. SetReadDeadline applies to ReadFrom, not to the goroutine that
// reads the socket.
func (p *Path) SetReadDeadline(t time.Time) error {
	p.deadline.Set(t)
	return nil
}

// SetDeadline implements net.PacketConn.
func (p *Path) SetDeadline(t time.Time) error { return p.SetReadDeadline(t) }

// Close implements net.PacketConn. It ends DTLS's reading. End closes the socket.
func (p *Path) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// End closes the socket.
func (p *Path) End() {
	_ = p.Close()
	_ = p.UDPConn.Close()
	p.running.Wait()
}

// silence discards Pion's log messages. Pion would log errors about the attack.
var silence = &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}

// Handshake makes the DTLS connection.
func (p *Path) Handshake(ctx context.Context) (*dtls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := dtls.ClientWithOptions(p, net.UDPAddrFromAddrPort(p.Server),
		dtls.WithCertificates(p.intruder.certificate), dtls.WithInsecureSkipVerify(true),
		dtls.WithLoggerFactory(silence),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM))
	if err != nil {
		return nil, fmt.Errorf("DTLS of the intruder: %w", err)
	}
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("DTLS handshake of the intruder: %w", err), conn.Close())
	}
	return conn, nil
}

// associationPatience bounds SCTP's handshake.
const associationPatience = 10 * time.Second

// Association is an SCTP association over DTLS. The intruder makes its packets.
type Association struct {
	*dtls.Conn
	association *sctp.Association
	// tag is the server's verification tag, next the intruder's initial TSN.
	tag, next atomic.Uint32
	// acknowledged is the server's cumulative TSN.
	acknowledged atomic.Uint32
	// ended is closed when the server has ended the association or the connection.
	ended chan struct{}
	once  sync.Once
}

// Associate makes an SCTP association. After the handshake only the intruder's packets are sent on it.
func Associate(ctx context.Context, conn *dtls.Conn) (*Association, error) {
	ctx, cancel := context.WithTimeout(ctx, associationPatience)
	defer cancel()
	a := &Association{Conn: conn, ended: make(chan struct{})}
	var err error
	a.association, err = sctp.ClientContext(ctx,
		sctp.WithNetConn(a), sctp.WithEnableInterleaving(false), sctp.WithLoggerFactory(silence))
	if err != nil {
		return nil, fmt.Errorf("SCTP of the intruder: %w", err)
	}
	return a, nil
}

// Chunk types of RFC 9260 section 3.2.
const (
	chunkInit  = 1
	chunkSACK  = 3
	chunkAbort = 6
	// sctpHeader is in bytes.
	sctpHeader = 12
)

// Write implements net.Conn for the association. Write records the verification tag and the initial TSN of the packets.
func (a *Association) Write(b []byte) (int, error) {
	if len(b) >= sctpHeader+20 && b[sctpHeader] == chunkInit {
		first := binary.BigEndian.Uint32(b[sctpHeader+16:])
		a.next.Store(first)
		a.acknowledged.Store(first - 1)
	} else if len(b) >= sctpHeader {
		a.tag.Store(binary.BigEndian.Uint32(b[4:]))
	}
	return a.Conn.Write(b)
}

// Read implements net.Conn for the association. Read hides SACK chunks from the association, which would abort because
// they acknowledge packets that the intruder sent.
func (a *Association) Read(b []byte) (int, error) {
	for {
		n, err := a.Conn.Read(b)
		if err != nil || n > sctpHeader && b[sctpHeader] == chunkAbort {
			a.once.Do(func() { close(a.ended) })
			return n, err
		}
		if n < sctpHeader+8 || b[sctpHeader] != chunkSACK {
			return n, nil
		}
		a.acknowledged.Store(binary.BigEndian.Uint32(b[sctpHeader+4:]))
	}
}

// Tag returns the server's verification tag.
func (a *Association) Tag() uint32 { return a.tag.Load() }

// Next returns the first unused TSN, as the association knows it.
func (a *Association) Next() uint32 { return a.next.Load() }

// Acknowledged returns the server's cumulative TSN.
func (a *Association) Acknowledged() uint32 { return a.acknowledged.Load() }

// Ended returns a channel that is closed when the server has ended the association or the connection.
func (a *Association) Ended() <-chan struct{} { return a.ended }

// Send sends a packet that the intruder has made.
func (a *Association) Send(packet []byte) error {
	_, err := a.Conn.Write(packet)
	return err
}

// Abort ends the association. Closing would wait for acknowledgements that the server does not send.
func (a *Association) Abort() { a.association.Abort("the attack is over") }
