package oldpeer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/pion/transport/v5"
)

// Config has the settings of a peer. The comments name the corresponding flags of the original.
type Config struct {
	// Server is the original's flag -sfu: host:port, which is placed before "/websocket".
	Server string
	// Client, Tiles and Qualities are -c, -t and -q. Sound is always published as well.
	Client, Tiles, Qualities int
	// Addresses is the prefix of the addresses that the peer uses. The original uses "10.8." and no loopback; a prefix
	// within 127/8 makes this one use loopback, so that tests need no separate network.
	Addresses string
	// Net and Dial replace the system's network unless nil, for peers in a network namespace.
	Net  transport.Net
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AnswerDelay delays each answer. Offers that arrive meanwhile are a Fault: the server did not wait for the answer.
	AnswerDelay time.Duration
	// Unpadded omits the NULs that the original appends to the text of quality messages.
	Unpadded bool
	// Malformed gives tracks names that no server understands.
	Malformed bool
}

// OriginalAddresses is the address filter of the shipped peer.
const OriginalAddresses = "10.8."

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid configuration of an old peer")

// Errors that end the original, by a panic or by exiting. The peer is dead after the first of these.
var (
	// ErrMessage is a websocket text with fewer than three parts, or of a type that no server sends.
	ErrMessage = errors.New("unreadable message")
	// ErrDescription is an offer that cannot be applied.
	ErrDescription = errors.New("offer refused")
	// ErrCandidate is a candidate that cannot be added.
	ErrCandidate = errors.New("candidate refused")
	// ErrWrite is a failed write to the websocket.
	ErrWrite = errors.New("write to websocket failed")
	// ErrFailed is a lost connection.
	ErrFailed = errors.New("connection failed")
)

// Errors after which the original continues, with lost or broken media.
var (
	// ErrLines are lines of an offer that the original binds to the wrong tracks, or whose codec is unknown to the
	// original.
	ErrLines = errors.New("lines of the offer")
	// ErrSecondOffer is an offer that arrived before the answer to the previous one.
	ErrSecondOffer = errors.New("offer before the answer to the previous one")
	// ErrTrackName is a track whose names do not match the publisher and tile in the packets.
	ErrTrackName = errors.New("track name")
	// ErrHeader is an RTP header of another size than 20 bytes.
	ErrHeader = errors.New("RTP header is not 20 bytes")
	// ErrPadding is a packet without payload: the original processes the previous payload again.
	ErrPadding = errors.New("RTP padding")
	// ErrPacket is a payload whose length, offset and frame length contradict the size or each other.
	ErrPacket = errors.New("payload")
	// ErrDuplicate is a duplicate part of a frame: the original counts the part twice.
	ErrDuplicate = errors.New("duplicate")
	// ErrMixed is a frame that was dropped because a packet with the same number had another quality.
	ErrMixed = errors.New("frame of two qualities")
	// ErrBackwards is a frame with a lower number than the previous frame: the original rejects the frame.
	ErrBackwards = errors.New("frame number decreased")
)

// check returns the error of a configuration.
func (c Config) check() error {
	switch {
	case c.Server == "" || c.Addresses == "":
		return fmt.Errorf("%w: a server and an address prefix are required", ErrConfig)
	case c.Client < 0 || c.Tiles < 0 || c.Qualities < 0:
		return fmt.Errorf("%w: client %d, %d tiles, %d qualities, expected no negative ones", ErrConfig,
			c.Client, c.Tiles, c.Qualities)
	}
	return nil
}

// loopback reports whether the peer uses loopback addresses.
func (c Config) loopback() bool { return strings.HasPrefix(c.Addresses, "127.") }

// url returns the URL of the original's websocket.
func (c Config) url() string {
	return fmt.Sprintf("ws://%s/websocket?ntiles=%d&nqualities=%d&clientid=%d", c.Server, c.Tiles,
		c.Qualities, c.Client)
}
