package icetcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/pion/stun/v4"
)

// errGreeting means that a connection does not begin with an ICE binding request.
var errGreeting = errors.New("not a binding request of ICE")

const (
	// frameHeader is the size in bytes of the header of each packet on a stream: the packet's length (RFC 4571 section
	// 2).
	frameHeader = 2
	// maxGreeting is the size in bytes of the largest first packet: the buffer of Pion's mux, which reads the packet
	// next. The largest binding request has 200 bytes: a header of 20, USERNAME of 4 + 84 with our fragment of 16
	// characters, a colon and the remote peer's fragment of at most description.MaxUfrag (RFC 8445 section 7.2.2),
	// PRIORITY of 8, ICE-CONTROLLING of 12, USE-CANDIDATE of 4, MESSAGE-INTEGRITY of 24, MESSAGE-INTEGRITY-SHA256 of 36
	// and FINGERPRINT of 8. The other 312 bytes are for SOFTWARE, which has at most 132 bytes in ASCII (RFC 8489
	// section 14.14), and attributes of implementations, which have 8 bytes each.
	maxGreeting = 512
)

// greeting is the part of the first packet of a connection that has been received.
type greeting struct {
	bytes [frameHeader + maxGreeting]byte
	used  int
}

// add adds received bytes. Once the packet is complete, whole is set, and name is the user name fragment of the
// addressed peer. The error wraps errGreeting if the packet is not an ICE binding request.
func (g *greeting) add(data []byte) (name string, whole bool, err error) {
	g.used += copy(g.bytes[g.used:], data)
	if g.used < frameHeader {
		return "", false, nil
	}
	length := int(binary.BigEndian.Uint16(g.bytes[:]))
	if length > maxGreeting {
		return "", false, fmt.Errorf("%w: %d bytes", errGreeting, length)
	}
	if g.used < frameHeader+length {
		return "", false, nil
	}
	name, err = greeted(g.bytes[frameHeader : frameHeader+length])
	return name, err == nil, err
}

// greeted returns the addressed peer's user name fragment from a binding request: the part of USERNAME before the colon
// (RFC 8445 section 7.2.2).
func greeted(packet []byte) (string, error) {
	message := stun.Message{Raw: packet}
	if err := message.Decode(); err != nil {
		return "", fmt.Errorf("%w: %w", errGreeting, err)
	}
	if message.Type != stun.BindingRequest {
		return "", fmt.Errorf("%w: %v", errGreeting, message.Type)
	}
	name, err := message.Get(stun.AttrUsername)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errGreeting, err)
	}
	asked, _, found := strings.Cut(string(name), ":")
	if !found || asked == "" {
		return "", fmt.Errorf("%w: user name %.60q", errGreeting, name)
	}
	return asked, nil
}
