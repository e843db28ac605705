package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Options has the flags of volbridge.
type Options struct {
	sfu           string
	port          string
	input, output bool
	client        uint32
	layout        bridge.Layout
	debug         bool
	level         int
	room          peer.Room
	maxBitrate    peer.Bitrate
	seconds       float64
	json          bool
	// dialect is the protocol between the bridge and the server.
	dialect string
	// untilInputCloses ends the bridge when standard input is closed, as it is when the program that started the bridge
	// exits.
	untilInputCloses bool
	// transcode enables transcoding of points and audio in both directions. pointCodec is the codec of the published
	// points.
	transcode  bool
	pointCodec codec.Codec
	// local is the parsed port, invalid if there is no connector.
	local netip.AddrPort
	// secret is the text of the secret that the connector must present. required is the parsed secret, nil if there is
	// none.
	secret   string
	required *bridge.Secret
	// keyInput enables orders about secrets on standard input. keys has the secrets of all sessions then, and is nil
	// otherwise.
	keyInput bool
	keys     *e2ee.Keys
}

// Flags registers the flags of the bridge.
func (b *Options) Flags(f *pflag.FlagSet) {
	f.StringVar(&b.sfu, "sfu", "localhost:8080", "the server, HOST:PORT, ws://HOST:PORT or wss://HOST:PORT")
	f.StringVar(&b.dialect, "dialect", dialectV1,
		"protocol of the server: v1, or vr2gather, the protocol of VR2Gather's own peer")
	f.StringVarP(&b.port, "port", "p", "", "UDP port for the connector, :PORT; with ADDRESS:PORT the bridge "+
		"listens on that address and not on loopback, and the connector must present a secret")
	f.StringVar(&b.secret, "secret", "", "secret that the connector must present, 16 to 128 bytes; the default is the "+
		"environment variable VOLPEER_BRIDGE_SECRET, which other users of this host cannot read; required beyond "+
		"loopback")
	f.BoolVarP(&b.input, "input", "i", false, "publish the media of the connector")
	f.BoolVarP(&b.output, "output", "o", false, "send the publications of others to the connector")
	f.Uint32VarP(&b.client, "client", "c", 0, "number of this client at other connectors")
	f.IntVarP(&b.layout.Tiles, "tiles", "t", 1, "number of tiles that the connector sends")
	f.IntVarP(&b.layout.Qualities, "qualities", "q", 1, "number of qualities of each tile that the connector sends")
	f.BoolVar(&b.transcode, "transcode", false,
		"publish the connector's points (cwi0, cwi1) as Draco, or as zstd in a program that does not encode Draco, "+
			"and its audio (VR2A) as Opus, and send it the points of others as cwi0 and their Opus as VR2A")
	f.BoolVarP(&b.debug, "debug", "d", false,
		"publish dummy frames of 5,000 bytes in place of the connector's; no connector is needed")
	f.IntVarP(&b.level, "log", "l", 0, "log level: 0 events, 1 also counters every second, 2 everything")
	f.StringVar(&b.room.Name, "room", "", "the room; the default is the environment variable VOLPEER_ROOM, or the "+
		"room of the token, or vr2gather")
	f.StringVar(&b.room.Identity, "identity", "",
		"name of this participant; the default is the name in the token, or the client's number")
	b.room.TokenFlags(f)
	b.room.InterfaceFlags(f)
	b.room.KeyFlags(f)
	f.BoolVar(&b.keyInput, "e2ee-stdin", false, "encrypt from end to end with secrets from the standard input, one "+
		"order per line: key EPOCH:HEX, followed by an identity if the secret is of one participant, use EPOCH, or "+
		"forget EPOCH")
	f.Var(&b.maxBitrate, "max-bitrate",
		"largest bitrate to send, such as 20Mbit; the default is the estimated capacity")
	f.Float64Var(&b.seconds, "seconds", 0, "time to run in seconds; 0 means until interrupted")
	f.BoolVar(&b.untilInputCloses, "until-stdin-closes", false,
		"end when the standard input is closed, for example by the end of the program that started the bridge")
	f.BoolVar(&b.json, "json", false, "print one JSON object at the end")
}

const (
	// defaultRoom is the room of bridges that have no room configured: VR2Gather has no rooms.
	defaultRoom = "vr2gather"
	// roomVariable is for launchers whose command line cannot be changed.
	roomVariable = "VOLPEER_ROOM"
	// secretVariable keeps the secret off the command line, which other users of the host can read.
	secretVariable = "VOLPEER_BRIDGE_SECRET"
)

// The dialects.
const (
	dialectV1        = "v1"
	dialectVR2Gather = "vr2gather"
)

// Errors of the bridge's flags.
var (
	errPlain    = errors.New("expected --dialect v1, because VR2Gather's dialect supports neither Draco nor Opus")
	errDialect  = errors.New("expected v1 or vr2gather")
	errIdentity = errors.New("expected --client, because clients have numbers in VR2Gather's dialect")
	errPort     = errors.New("expected :PORT or ADDRESS:PORT with a port of 1 to 65534; the connector uses the next " +
		"port")
	errLayout = fmt.Errorf("expected 1 to %d tiles and 1 to %d qualities", volumetric.MaxTiles,
		volumetric.MaxQualities)
	errNoSecret = errors.New("listening beyond loopback requires a secret, because any host can send: expected " +
		"--secret, or VOLPEER_BRIDGE_SECRET in the environment")
	errEncrypted = errors.New("expected --transcode and --dialect v1, because VR2Gather's own format cannot be " +
		"encrypted from end to end")
	errTwoKeys = errors.New("--e2ee-key-file, --e2ee-stdin: expected at most one of them")
	errOnePath = errors.New("expected --dialect v1, because clients of VR2Gather's dialect have one path, over UDP")
	errNoPort  = errors.New("expected --port, or --debug, which needs no connector")
)

// NewLog returns a logger with the configured level.
func (b *Options) NewLog(to io.Writer) *slog.Logger {
	level := slog.LevelInfo
	if b.level >= 2 {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level}))
}

// check sets defaults and returns the first error in the flags.
func (b *Options) check() error {
	if b.layout.Tiles < 1 || b.layout.Tiles > volumetric.MaxTiles || b.layout.Qualities < 1 ||
		b.layout.Qualities > volumetric.MaxQualities {
		return fmt.Errorf("--tiles %d, --qualities %d: %w", b.layout.Tiles, b.layout.Qualities, errLayout)
	}
	if b.seconds < 0 {
		return fmt.Errorf("--seconds: %w", peer.ErrDuration)
	}
	if b.port == "" && !b.debug {
		return errNoPort
	}
	if b.port != "" {
		local, err := listenAddress(b.port)
		if err != nil {
			return fmt.Errorf("--port %q: %w", b.port, err)
		}
		b.local = local
		if err := b.checkSecret(); err != nil {
			return err
		}
	}
	if err := b.checkTranscoding(); err != nil {
		return fmt.Errorf("--transcode: %w", err)
	}
	if b.encrypts() && (!b.transcode || b.dialect != dialectV1) {
		return fmt.Errorf("--e2ee-key-file, --e2ee-stdin, %s: %w", peer.PassphraseVariable, errEncrypted)
	}
	if b.keyInput {
		if b.room.KeyFile != "" {
			return errTwoKeys
		}
		b.keys = new(e2ee.Keys)
	}
	return b.checkRoom()
}

// encrypts reports whether media is encrypted from end to end.
func (b *Options) encrypts() bool { return b.room.Encrypts() || b.keyInput }

// readInput reads standard input until its end: orders about secrets, if enabled.
func (b *Options) readInput(in io.Reader, log *slog.Logger) {
	if b.keyInput {
		peer.ReadKeyOrders(in, b.keys, log)
	}
	// The rest is not used.
	_, _ = io.Copy(io.Discard, in)
}

// checkSecret reads the secret from the flag or the environment. A bridge that listens beyond loopback requires one:
// the connector is sent the room's media, and without a secret the first sender would become the connector.
func (b *Options) checkSecret() error {
	b.secret = cmp.Or(b.secret, os.Getenv(secretVariable))
	if b.secret == "" {
		if b.local.Addr().Unmap().IsLoopback() {
			return nil
		}
		return fmt.Errorf("--port %q: %w", b.port, errNoSecret)
	}
	var err error
	if b.required, err = bridge.NewSecret(b.secret); err != nil {
		return fmt.Errorf("--secret, %s: %w", secretVariable, err)
	}
	return nil
}

// checkTranscoding selects the codec of the published points, if points are transcoded.
func (b *Options) checkTranscoding() error {
	switch {
	case !b.transcode || b.pointCodec != nil:
		return nil
	case b.dialect == dialectVR2Gather:
		return errPlain
	}
	b.pointCodec = codecs.Default()
	return nil
}

// checkRoom sets the address of the server, the room and the identity.
func (b *Options) checkRoom() error {
	b.room.Server = b.sfu
	if !strings.Contains(b.sfu, "://") {
		b.room.Server = "ws://" + b.sfu
	}
	b.room.ReadToken()
	if _, err := b.room.TLS(); err != nil {
		return err
	}
	b.room.Name = cmp.Or(b.room.Name, os.Getenv(roomVariable))
	switch cmp.Or(b.dialect, dialectV1) {
	case dialectV1:
	case dialectVR2Gather:
		return b.checkDialectRoom()
	default:
		return fmt.Errorf("--dialect %q: %w", b.dialect, errDialect)
	}
	if b.room.Token == "" {
		b.room.Name = cmp.Or(b.room.Name, defaultRoom)
		b.room.Identity = cmp.Or(b.room.Identity, strconv.FormatUint(uint64(b.client), 10))
	}
	return nil
}

// checkDialectRoom sets the address of the websocket of VR2Gather's dialect, which has a path for each room and a
// default path.
func (b *Options) checkDialectRoom() error {
	if b.room.Identity != "" {
		return fmt.Errorf("--identity %q: %w", b.room.Identity, errIdentity)
	}
	if b.room.Interfaces != "" || b.room.Redundancy == string(signal.RedundancyAll) {
		return fmt.Errorf("--interfaces %q, --redundancy %s: %w", b.room.Interfaces, b.room.Redundancy, errOnePath)
	}
	if b.room.TCP {
		return fmt.Errorf("--tcp: %w", errOnePath)
	}
	u, err := url.Parse(b.room.Server)
	if err != nil {
		return fmt.Errorf("--sfu: %w", err)
	}
	if b.room.Name != "" {
		u = u.JoinPath("r", url.PathEscape(b.room.Name))
	}
	b.room.Server = u.JoinPath(vr2gather.WebsocketPath).String()
	return nil
}

// listenAddress parses the address on which the bridge listens. The default is loopback.
func listenAddress(text string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, errPort
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	address, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil || address.Port() == 0 || address.Port() == 65535 {
		return netip.AddrPort{}, errPort
	}
	return address, nil
}

// Run relays until the context ends, in ends (if that is enabled), or the server refuses permanently.
func (b *Options) Run(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	if err := b.check(); err != nil {
		return err
	}
	ctx, cancel := peer.Limit(ctx, b.seconds)
	defer cancel()
	if b.untilInputCloses || b.keyInput {
		go func() {
			b.readInput(in, log)
			if b.untilInputCloses {
				cancel()
			}
		}()
	}
	s := New(b, log)
	err := s.run(ctx)
	summary := s.summary()
	log.Info("ended", "dropped", summary.Dropped)
	if t := summary.Transcoding; t != nil {
		log.Info("transcoding has added", "up ms", t.Up.Text(), "down ms", t.Down.Text(), "sound up ms",
			t.SoundUp.Text(),
			"sound down ms", t.SoundDown.Text(), "of", "median/95 %/99 %/largest")
	}
	if b.json {
		err = errors.Join(err, json.NewEncoder(out).Encode(summary))
	}
	return err
}
