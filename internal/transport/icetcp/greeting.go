package icetcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/pion/stun/v4"
)

// errGreeting says that a connection does not begin as ICE-TCP does.
var errGreeting = errors.New("not a binding request of ICE")

const (
	// frameHeader is the size in bytes of what goes before each packet on a stream: its length (RFC 4571 section 2).
	frameHeader = 2
	// maxGreeting is the size in bytes of the largest first packet: a binding request has some 100, and names of up to
	// 512 (RFC 8445 section 7.2.2).
	maxGreeting = 512
)

// greeting is the first packet of a connection, as far as it has come.
type greeting struct {
	bytes [frameHeader + maxGreeting]byte
	used  int
}

// add takes what has come. The name is that of the peer whom the remote one looks for, once the packet is whole. An
// error, which is around errGreeting, says that it is none of ICE.
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

// greeted reads the name from a binding request (RFC 8445 section 7.2.2): that of the peer who is asked goes before the
// colon.
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
