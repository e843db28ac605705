package signalling

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/panics"
)

// ErrConfig is wrapped with the wrong key and the expected value.
var ErrConfig = errors.New("invalid signalling configuration")

// PanicPlaces are the places that this package names to Config.Guard.
var PanicPlaces = []string{placeOutbox}

// placeOutbox is the goroutine that writes to one websocket.
const placeOutbox = "outbox"

// Config limits the use of a websocket by its client.
type Config struct {
	// Guard confines a panic in a goroutine of one client to that client. If Guard is nil, a panic ends the program.
	Guard *panics.Guard `yaml:"-"`

	// AllowedOrigins: clients other than browsers send no origin. The origins are also those of CORS and of pages that
	// may embed the viewer: a page with a token may do over its own websocket whatever it may do by requests.
	AllowedOrigins []string      `yaml:"allowed_origins" help:"web origins that may connect: https://host[:port], or *"`
	JoinTimeout    time.Duration `yaml:"join_timeout" help:"maximum time from the connection to the join"`
	// WriteTimeout is the maximum time to write one message: 2 MiB at 1.7 Mbit/s.
	WriteTimeout time.Duration `yaml:"-"`
	// DialTimeout bounds the opening of a websocket to another node of a cluster: some round trips between continents.
	DialTimeout  time.Duration `yaml:"-"`
	PingInterval time.Duration `yaml:"ping_interval" help:"interval of pings; a client silent for three is gone"`
	MessageBytes int           `yaml:"message_bytes" help:"maximum size of a message in bytes"`
	// MessageBurst is the number of messages from one client at once, ByteBurst the number of bytes. A viewpoint and
	// the poses of three objects, each at 60 Hz, are 240/s. A receiver that changes 15 tiles of ten publishers at 1 Hz,
	// each with its own message, sends 150/s.
	MessageRate  float64 `yaml:"message_rate" help:"messages per second from one client, long-term"`
	MessageBurst int     `yaml:"-"`
	ByteRate     float64 `yaml:"byte_rate" help:"bytes per second from one client, long-term"`
	ByteBurst    int     `yaml:"-"`
	// TokenWebsockets: a token without an identity may be shared by all clients, and after a restart of the server all
	// clients return within seconds: TokenBurst is the number of websockets, and of joins, of one token at once.
	TokenWebsockets int     `yaml:"token_websockets" help:"open websockets of one token"`
	TokenRate       float64 `yaml:"token_rate" help:"websockets, and joins, per second of one token, long-term"`
	TokenBurst      int     `yaml:"-"`
	// AddressWebsockets: a room holds 100 participants by default. The limit is more than twice as high, because all
	// participants may return before the server notices that their websockets broke. Addresses of this host have no
	// limit. Behind a proxy that is not trusted, all clients have the proxy's address. AddressBurst is the number of
	// websockets, joins and room lists of one address at once.
	AddressWebsockets int     `yaml:"address_websockets" help:"open websockets of one address (IPv6: one /64)"`
	AddressRate       float64 `yaml:"address_rate" help:"websockets, joins and room lists per second of one address"`
	AddressBurst      int     `yaml:"-"`

	// TrustedProxies may name the client of a request in ProxyHeader, which they must set or append to. The header of
	// other peers is ignored.
	TrustedProxies []string `yaml:"trusted_proxies" help:"addresses or prefixes of trusted reverse proxies"`
	ProxyHeader    string   `yaml:"proxy_header" help:"header of trusted proxies: X-Forwarded-For or Forwarded"`
	// Backlog is the number of queued messages after which a client that does not read is disconnected. A join to a
	// full room brings a few messages per participant at once.
	Backlog int `yaml:"-"`
}

// DefaultConfig returns limits for rooms of tens of participants.
func DefaultConfig() Config {
	return Config{
		JoinTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		DialTimeout:       5 * time.Second,
		PingInterval:      5 * time.Second,
		MessageBytes:      2 << 20,
		MessageRate:       400,
		MessageBurst:      1000,
		ByteRate:          4 << 20,
		ByteBurst:         16 << 20,
		TokenWebsockets:   1000,
		TokenRate:         20,
		TokenBurst:        1000,
		AddressWebsockets: 256,
		AddressRate:       50,
		AddressBurst:      200,
		ProxyHeader:       headerXForwardedFor,
		Backlog:           1024,
	}
}

// Validate returns an error that names the first wrong key.
func (c Config) Validate() error {
	switch {
	case c.JoinTimeout <= 0 || c.WriteTimeout <= 0 || c.DialTimeout <= 0 || c.PingInterval <= 0:
		return fmt.Errorf("%w: join_timeout is %v, write_timeout is %v, dial_timeout is %v and ping_interval is %v: "+
			"expected durations over 0", ErrConfig, c.JoinTimeout, c.WriteTimeout, c.DialTimeout, c.PingInterval)
	case c.MessageBytes < 1024 || c.MessageBytes > c.ByteBurst:
		return fmt.Errorf("%w: message_bytes is %d: expected 1024 to %d, the bytes that a client may send at once",
			ErrConfig, c.MessageBytes, c.ByteBurst)
	case c.TokenWebsockets < 1 || !(c.TokenRate > 0) || c.TokenBurst < 1:
		return fmt.Errorf("%w: token_websockets is %d, token_rate is %g and token_burst is %d: expected numbers over 0",
			ErrConfig, c.TokenWebsockets, c.TokenRate, c.TokenBurst)
	case c.AddressWebsockets < 1 || !(c.AddressRate > 0) || c.AddressBurst < 1:
		return fmt.Errorf("%w: address_websockets is %d, address_rate is %g and address_burst is %d: expected numbers "+
			"over 0", ErrConfig, c.AddressWebsockets, c.AddressRate, c.AddressBurst)
	case c.MessageRate <= 0 || c.MessageBurst < 1 || c.ByteRate <= 0 || c.Backlog < 1:
		return fmt.Errorf("%w: message_rate is %g, message_burst is %d, byte_rate is %g and backlog is %d: expected "+
			"numbers over 0", ErrConfig, c.MessageRate, c.MessageBurst, c.ByteRate, c.Backlog)
	}
	for _, origin := range c.AllowedOrigins {
		if err := checkOrigin(origin); err != nil {
			return err
		}
	}
	_, err := newSources(c.TrustedProxies, c.ProxyHeader)
	return err
}

// Pages returns the pages that may connect. dev is set for servers that ask for no token and listen only on loopback.
// Then pages of this host may connect whatever is configured, and pages that resolve their own name to this host may
// not.
func (c Config) Pages(dev bool) Pages {
	return Pages{Allowed: c.AllowedOrigins, Local: dev, Rebound: dev}
}

// tokenLimits returns the limits of one token.
func (c Config) tokenLimits() quotaLimits {
	return quotaLimits{
		open: c.TokenWebsockets, perSecond: c.TokenRate, burst: c.TokenBurst,
		what: "websockets", of: "by this token", openKey: "signalling.token_websockets",
		rateKey: "signalling.token_rate",
	}
}

// addressLimits returns the limits of one address.
func (c Config) addressLimits() quotaLimits {
	return quotaLimits{
		open: c.AddressWebsockets, perSecond: c.AddressRate, burst: c.AddressBurst,
		what: "websockets", of: "from this address", openKey: "signalling.address_websockets",
		rateKey: "signalling.address_rate",
	}
}
