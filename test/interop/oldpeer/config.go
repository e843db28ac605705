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

// Config says how a peer comes to a server. The names of the original's flags are given with what they became.
type Config struct {
	// Server is what the original is given as -sfu: host:port, put as it is before "/websocket".
	Server string
	// Client, Tiles and Qualities are -c, -t and -q. Sound is always published, too.
	Client, Tiles, Qualities int
	// Addresses is how the addresses begin that the peer takes part with. The original takes "10.8." and no loopback; a prefix within 127/8 makes this one
	// use loopback, so that tests need no network of their own.
	Addresses string
	// Net and Dial replace the system's network where they are not nil, for peers in a network namespace.
	Net  transport.Net
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// AnswerDelay is how long an answer is held back. Offers that come meanwhile are a Fault: nobody has waited for the answer.
	AnswerDelay time.Duration
	// Unpadded leaves out the NULs that the original puts behind the text of its quality messages.
	Unpadded bool
	// Malformed names tracks in a way that no server understands.
	Malformed bool
}

// OriginalAddresses is the filter that the shipped peer was built with.
const OriginalAddresses = "10.8."

// ErrConfig says that a peer cannot be made so.
var ErrConfig = errors.New("configuration of an old peer")

// Errors that the original dies of, by a panic or by exiting. The peer is dead after the first of these.
var (
	// ErrMessage is a websocket text with fewer than three parts, or of a type that no server sends.
	ErrMessage = errors.New("unreadable message")
	// ErrDescription is an offer that cannot be taken.
	ErrDescription = errors.New("offer refused")
	// ErrCandidate is a candidate that cannot be taken.
	ErrCandidate = errors.New("candidate refused")
	// ErrWrite is a websocket that takes no more messages.
	ErrWrite = errors.New("websocket cannot be written")
	// ErrFailed is a connection that was lost.
	ErrFailed = errors.New("connection failed")
)

// Errors after which the original goes on, with media that is lost or broken.
var (
	// ErrLines are lines of an offer that the original binds to the wrong tracks, or whose codec it does not have.
	ErrLines = errors.New("lines of the offer")
	// ErrSecondOffer is an offer that came before the answer to the one before.
	ErrSecondOffer = errors.New("offer before the answer to the last one")
	// ErrTrackName is a track whose names are not those of the publisher and tile that its packets carry.
	ErrTrackName = errors.New("track name")
	// ErrHeader is an RTP header of another size than 20 bytes.
	ErrHeader = errors.New("RTP header is not 20 bytes")
	// ErrPadding is a packet without payload: the original takes the payload before it once more.
	ErrPadding = errors.New("RTP padding")
	// ErrPacket is a payload whose length, offset and frame length contradict its size or each other.
	ErrPacket = errors.New("payload")
	// ErrDuplicate is a part of a frame that came twice: the original counts it twice.
	ErrDuplicate = errors.New("duplicate")
	// ErrMixed is a frame that was given up because a packet of its number came with another quality.
	ErrMixed = errors.New("frame of two qualities")
	// ErrBackwards is a frame whose number is lower than that of the frame before: the original rejects it.
	ErrBackwards = errors.New("frame number goes backwards")
)

// check tells what is wrong with a configuration.
func (c Config) check() error {
	switch {
	case c.Server == "" || c.Addresses == "":
		return fmt.Errorf("%w: a server and the beginning of an address are needed", ErrConfig)
	case c.Client < 0 || c.Tiles < 0 || c.Qualities < 0:
		return fmt.Errorf("%w: client %d, %d tiles, %d qualities, expected none below 0", ErrConfig, c.Client, c.Tiles, c.Qualities)
	}
	return nil
}

// loopback tells whether the peer takes part with loopback addresses.
func (c Config) loopback() bool { return strings.HasPrefix(c.Addresses, "127.") }

// url is where the original's websocket is.
func (c Config) url() string {
	return fmt.Sprintf("ws://%s/websocket?ntiles=%d&nqualities=%d&clientid=%d", c.Server, c.Tiles, c.Qualities, c.Client)
}
