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
	// maxGreeting is the size in bytes of the largest first packet. A binding request has some 100 bytes; user names
	// have up to 512 (RFC 8445 section 7.2.2).
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
