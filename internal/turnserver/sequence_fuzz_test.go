package turnserver

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
)

// client is the connection of a fuzzed client, of an address of its own.
type client struct {
	net.Conn
	remote *net.TCPAddr
}

// RemoteAddr implements net.Conn.
func (c client) RemoteAddr() net.Addr { return c.remote }

// LocalAddr implements net.Conn.
func (client) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 5), Port: 443} }

// script makes messages of fuzzed bytes.
type script struct {
	rest  []byte
	stage *stage
	nonce string
}

// next returns the next byte of the script, 0 after its end.
func (s *script) next() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

// take returns up to n bytes of the script.
func (s *script) take(n int) []byte {
	n = min(n, len(s.rest))
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b
}

// known are the attributes of which a script chooses. Other attributes have their type in the script.
var known = []stun.AttrType{
	stun.AttrRequestedTransport, stun.AttrLifetime, stun.AttrXORPeerAddress, stun.AttrChannelNumber, stun.AttrData,
	stun.AttrEvenPort, stun.AttrReservationToken, stun.AttrDontFragment, stun.AttrRequestedAddressFamily,
	stun.AttrUsername, stun.AttrRealm, stun.AttrNonce, stun.AttrMessageIntegrity, stun.AttrFingerprint,
	stun.AttrConnectionID, stun.AttrErrorCode,
}

// The kinds of messages of a script, after the requests of methods.
const (
	scriptIndication = iota + 5
	scriptChannelData
	scriptRaw
	scriptKinds
)

// message returns the next message.
func (s *script) message() []byte {
	kind := int(s.next()) % scriptKinds
	switch kind {
	case scriptRaw:
		return s.take(int(s.next()))
	case scriptChannelData:
		data := s.take(int(s.next()))
		b := binary.BigEndian.AppendUint16(nil, 0x4000|uint16(s.next()))
		b = binary.BigEndian.AppendUint16(b, uint16(len(data)))
		return append(append(b, data...), make([]byte, -len(data)&3)...)
	}
	class, method := stun.ClassIndication, stun.MethodSend
	if kind < scriptIndication {
		class, method = stun.ClassRequest, methods[kind]
	}
	m := new(stun.Message)
	setters := []stun.Setter{stun.TransactionID, stun.NewType(method, class)}
	flags := s.next()
	if flags&1 != 0 {
		setters = append(setters, peerAddress{IP: net.IPv4(127, 0, 0, 1).To4(), Port: int(s.stage.filter.port)})
	}
	for range flags >> 4 {
		t := stun.AttrType(s.next())
		if int(t) < len(known) {
			t = known[t]
		} else {
			t = t<<8 | stun.AttrType(s.next())
		}
		setters = append(setters, stun.RawAttribute{Type: t, Value: s.take(int(s.next()))})
	}
	if flags&2 != 0 {
		username, password := s.stage.credentials.issue("ada", time.Now().Add(time.Minute))
		setters = append(setters, stun.NewUsername(username), stun.NewRealm(realm), stun.NewNonce(s.nonce),
			stun.MessageIntegrity(turn.GenerateAuthKey(username, realm, password)))
	}
	if m.Build(setters...) != nil || len(m.Raw) > maxMessage {
		return nil
	}
	return m.Raw
}

// nonceOf returns a nonce of the server.
func nonceOf(t *testing.T, s *stage, from *net.TCPAddr) string {
	t.Helper()
	near, far := net.Pipe()
	s.Serve(client{far, from})
	m, err := stun.Build(stun.TransactionID, stun.NewType(stun.MethodAllocate, stun.ClassRequest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := near.Write(m.Raw); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, maxMessage)
	n, err := near.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	answer := stun.Message{Raw: buffer[:n]}
	var nonce stun.Nonce
	if err := answer.Decode(); err != nil {
		t.Fatal(err)
	}
	if err := nonce.GetFrom(&answer); err != nil {
		t.Fatal(err)
	}
	_ = near.Close()
	return nonce.String()
}

// FuzzServer sends sequences of messages over a connection, with valid credentials or others, to the whole server. A
// panic in one of Pion's goroutines ends the test. Afterwards no allocation and no connection is left.
func FuzzServer(f *testing.F) {
	// An allocation, a permission, a channel, data, and the end of the allocation.
	peer := byte(1 | 2)
	f.Add([]byte{
		1, 2 | 1<<4, 0, 4, 17, 0, 0, 0,
		3, peer,
		4, peer | 1<<4, 3, 4, 0x40, 1, 0, 0,
		scriptChannelData, 4, 1, 2, 3, 4, 1,
		scriptIndication, 1 | 1<<4, 4, 3, 1, 2, 3,
		2, 2 | 1<<4, 1, 4, 0, 0, 0, 0,
	})
	// Reservations, families, and malformed attributes.
	f.Add([]byte{1, 2 | 3<<4, 0, 4, 17, 0, 0, 0, 5, 1, 0x80, 8, 4, 2, 0, 0, 0, 2, 2 | 1<<4, 8, 4, 1, 0, 0, 0})
	f.Add([]byte{1, 1 << 4, 12, 0, 3, 1 << 4, 12, 20, scriptRaw, 4, 0, 1, 0, 0, 0x21})
	s := newStage(f, func(c *Config) { c.Listen = "" })
	var clients atomic.Uint32
	f.Fuzz(func(t *testing.T, b []byte) {
		number := clients.Add(2)
		at := func(n uint32) *net.TCPAddr {
			return &net.TCPAddr{IP: net.IPv4(10, byte(n>>16), byte(n>>8), byte(n)), Port: 1024 + int(n>>24)}
		}
		play := &script{rest: b, stage: s, nonce: nonceOf(t, s, at(number))}
		near, far := net.Pipe()
		s.Serve(client{far, at(number + 1)})
		var answers sync.WaitGroup
		answers.Go(func() { _, _ = io.Copy(io.Discard, near) })
		for len(play.rest) > 0 {
			if m := play.message(); len(m) > 0 {
				// The server ends the connection after malformed messages.
				if _, err := near.Write(m); err != nil {
					break
				}
			}
		}
		_ = near.Close()
		answers.Wait()
		for end := time.Now().Add(patience); s.Stats().Connections > 0 || s.Stats().Allocations > 0; {
			if time.Now().After(end) {
				t.Fatalf("%d connections and %d allocations are left", s.Stats().Connections, s.Stats().Allocations)
			}
			time.Sleep(50 * time.Microsecond)
		}
	})
}
