package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
)

// Room has the flags that select the room and the participant.
type Room struct {
	Server, Name, Identity, Token string
	// Authority is the file with the certificates that are trusted in place of the system's, the value of --ca.
	Authority string
	// Clock is the time source of this host, the value of --clock.
	Clock string
	// Interfaces are the network interfaces for media, the values of --interfaces, with commas between them. Redundancy
	// selects the packets that leave on two of them, the value of --redundancy.
	Interfaces, Redundancy string
	// KeyFile has the secrets of end-to-end encryption, the value of --e2ee-key-file.
	KeyFile string
	// Media replaces the UDP socket if it is not nil, for emulated networks. Media has no flag.
	Media net.PacketConn
	// unlocked are the keys of a configuration that have the secret of the passphrase.
	unlocked *e2ee.Keys
}

// Flags registers the flags of a room.
func (r *Room) Flags(f *pflag.FlagSet) {
	f.StringVar(&r.Server, "server", "ws://127.0.0.1:8080", "the server, ws://HOST:PORT or wss://HOST:PORT")
	f.StringVar(&r.Name, "room", "", "the room; not needed if the token has a room")
	f.StringVar(&r.Identity, "identity", "", "name of this participant; not needed if the token has a name")
	r.TokenFlags(f)
	f.StringVar(&r.Clock, "clock", "", "time source of this host: estimated by messages to the server, "+
		"system for the system's clock, or ptp for a clock that is kept by the precision time protocol; the default "+
		"is system if the server is on this host, otherwise estimated")
}

// TokenFlags registers the flags of the token and of the server's certificate.
func (r *Room) TokenFlags(f *pflag.FlagSet) {
	f.StringVar(&r.Token, "token", "", "access token; the default is the environment variable "+TokenVariable+
		", which other users of this host cannot read; a server in development mode needs none")
	f.StringVar(&r.Authority, "ca", "", "PEM file with the certificate authorities to trust in place of the system's")
}

// ReadToken sets the token from the environment if there is no flag.
func (r *Room) ReadToken() { r.Token = cmp.Or(r.Token, os.Getenv(TokenVariable)) }

// InterfaceFlags registers the flags of network interfaces.
func (r *Room) InterfaceFlags(f *pflag.FlagSet) {
	f.StringVar(&r.Interfaces, "interfaces", "", "network interfaces for media, at most two, the preferred one first, "+
		"such as wlan0,wwan0; by default the system chooses one")
	f.StringVar(&r.Redundancy, "redundancy", string(signal.RedundancyAuto), "packets that are sent on two of "+
		"--interfaces: auto for the packets that matter most, off, or all")
}

const (
	// JoinTimeout bounds the time in which the server admits a participant.
	JoinTimeout = 15 * time.Second
	// ReplyTimeout bounds the time in which the server replies to a request.
	ReplyTimeout = 10 * time.Second
	// RequestBacklog is the number of requests that may wait for the replies to earlier requests.
	RequestBacklog = 64
)

var errNotTold = errors.New("expected --room and --identity, or a token that names them (--token or " +
	TokenVariable + ")")

// ErrDuration is returned for a negative duration. ErrDuration is wrapped with the flag.
var ErrDuration = errors.New("expected 0 or more")

// Check sets the token from the environment if there is no flag. Check returns an error if a required flag is missing.
func (r *Room) Check() error {
	r.ReadToken()
	if r.Token == "" && (r.Name == "" || r.Identity == "") {
		return errNotTold
	}
	return nil
}

// Join joins the room within JoinTimeout.
func (r *Room) Join(ctx context.Context, config client.Config) (*client.Session, error) {
	config.URL, config.Room, config.Identity, config.Token = r.Server, r.Name, r.Identity, r.Token
	config.PacketConn = r.Media
	if r.Interfaces != "" {
		config.Interfaces = strings.Split(r.Interfaces, ",")
	}
	config.Redundancy = signal.Redundancy(r.Redundancy)
	var err error
	if config.TLS, err = r.TLS(); err != nil {
		return nil, err
	}
	if config.ClockSource, config.ClockShift, err = clockSettings(r.Clock); err != nil {
		return nil, err
	}
	file, err := r.setKeys(&config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, JoinTimeout)
	defer cancel()
	session, err := client.Join(ctx, config)
	switch {
	case errors.Is(err, client.ErrInterface):
		return nil, fmt.Errorf("--interfaces: %w", err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", r.Server, err)
	}
	if config.Passphrase != "" {
		r.unlocked = config.Keys
	}
	if file != nil {
		go file.follow(session.Done(), logOf(config))
	}
	return session, nil
}

// logOf returns the log of a session.
func logOf(config client.Config) *slog.Logger {
	if config.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return config.Log
}

// clockOffsetVariable is an environment variable that shifts the clock of the process, for tests with clocks that
// differ.
const clockOffsetVariable = "VOLSFU_CLOCK_OFFSET"

// errClock is wrapped with the value of --clock.
var errClock = errors.New("expected estimated, system or ptp")

// clockSettings returns the time source of this host and the shift of its clock.
func clockSettings(source string) (frametimes.Source, time.Duration, error) {
	if source != "" && !frametimes.Source(source).Valid() {
		return "", 0, fmt.Errorf("--clock: %w, got %.32q", errClock, source)
	}
	text := os.Getenv(clockOffsetVariable)
	if text == "" {
		return frametimes.Source(source), 0, nil
	}
	shift, err := time.ParseDuration(text)
	if err != nil {
		return "", 0, fmt.Errorf("%s is %.32q, expected a time such as 50ms", clockOffsetVariable, text)
	}
	return frametimes.Source(source), shift, nil
}

// Limit returns a context that ends after a number of seconds. 0 means no limit.
func Limit(ctx context.Context, seconds float64) (context.Context, context.CancelFunc) {
	if seconds <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
}
