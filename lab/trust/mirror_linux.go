package trust

import (
	"bytes"
	"context"
	_ "embed" // the program in C
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// lossyDelay and lossyShare are those of each access link, in each direction.
	lossyDelay = 10 * time.Millisecond
	lossyShare = 0.05
	// lossyTime is the time for which frames are counted.
	lossyTime = 40 * time.Second
	// lossyTarget is the share of frames that arrive, in per cent.
	lossyTarget = 99.5
)

//go:embed testdata/mirror.c
var mirrorSource []byte

// lossy runs an encrypted room over lossy links: alice publishes (Go), carol publishes alice's frames again (C), and
// dave watches both (Go).
func lossy(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	p, err := newPlace(b)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	mirror, err := buildMirror(ctx, p.folder)
	if err != nil {
		return nil, err
	}
	const serving = "server"
	link := topology.Duplex(netem.Config{Delay: lossyDelay, Loss: lossyShare})
	network, err := topology.Start(ctx, topology.Star(serving, map[string]topology.Link{
		"alice": link, "carol": link, "dave": link,
	}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	l := &lossyRoom{network: network, server: p.server, volpeer: p.volpeer, mirror: mirror, long: lossyTime,
		key: fmt.Sprintf("lab:%x", random(32)), passphrase: fmt.Sprintf("%x", random(16))}
	if b.short {
		l.long = lossyTime / 4
	}
	address := network.Address(serving).String()
	command := network.Command(ctx, serving, p.server, "serve", "--listen", address+":0", "--admin-listen", "",
		"--media-address", address, "--media-port", "0", "--log-format", "json")
	command.Env = append(command.Env, "VOLSFU_AUTH_KEYS="+l.key)
	running, err := lab.StartServerCommand(ctx, command)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	l.url = running.URL()
	return l.measure(ctx)
}

// buildMirror builds the C library and the program that uses it, from the checkout. The error wraps suite.ErrSource or
// lab.ErrUnable.
func buildMirror(ctx context.Context, folder string) (program string, err error) {
	tree, err := suite.SourceTree("", "clients/c")
	if err != nil {
		return "", err
	}
	goCommand, err := suite.GoCommand()
	if err != nil {
		return "", err
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return "", fmt.Errorf("%w: there is no C compiler: %w", lab.ErrUnable, err)
	}
	source := filepath.Join(folder, "mirror.c")
	if err := os.WriteFile(source, mirrorSource, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(folder, "mirror")
	for _, command := range [][]string{
		{goCommand, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-o",
			filepath.Join(folder, "libvolsfu.so"), "./clients/c"},
		{compiler, "-std=c11", "-O1", "-Wall", "-Werror", "-I", filepath.Join(tree, "clients", "c"), "-o", program,
			source, "-L" + folder, "-lvolsfu", "-Wl,-rpath," + folder},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = tree
		if said, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, said)
		}
	}
	return program, nil
}

// lossyRoom is an encrypted room over lossy links.
type lossyRoom struct {
	network                 *topology.Network
	server, volpeer, mirror string
	url, key, passphrase    string
	long                    time.Duration
}

// token mints a token for a participant.
func (l *lossyRoom) token(ctx context.Context, identity string) (string, error) {
	cmd := exec.CommandContext(ctx, l.server, "token", "--room", sealedRoom, "--identity", identity)
	cmd.Env = append(os.Environ(), "VOLSFU_AUTH_KEYS="+l.key)
	text, err := cmd.Output()
	return strings.TrimSpace(string(text)), err
}

// start starts a program of a participant on its host.
func (l *lossyRoom) start(ctx context.Context, identity, program string, arguments ...string) (*lab.Program, error) {
	cmd := l.network.Command(ctx, identity, program, arguments...)
	cmd.Env = append(cmd.Env, "VOLPEER_PASSPHRASE="+l.passphrase)
	return lab.StartCommand(identity, cmd, nil)
}

// settling is the time by which each participant's figures begin after, and end before, those that it depends on.
const settling = 5 * time.Second

// measure runs the participants and returns the shares of frames that arrived.
func (l *lossyRoom) measure(ctx context.Context) ([]claim.Line, error) {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }
	tokens := make(map[string]string)
	for _, name := range []string{"alice", "carol", "dave"} {
		var err error
		if tokens[name], err = l.token(ctx, name); err != nil {
			return nil, err
		}
	}
	alice, err := l.start(ctx, "alice", l.volpeer, "publish", "--server", l.url, "--token", tokens["alice"], "--points",
		"1000", "--tiles", "1", "--codec", "raw", "--qualities", "only=1000")
	if err != nil {
		return nil, err
	}
	defer func() { _ = alice.Stop() }()
	carol, err := l.start(ctx, "carol", l.mirror, l.url, tokens["carol"], "alice", seconds(l.long+2*settling))
	if err != nil {
		return nil, err
	}
	defer carol.Kill()
	if err := lab.Pause(ctx, settling); err != nil {
		return nil, err
	}
	dave, err := l.start(ctx, "dave", l.volpeer, "watch", "--server", l.url, "--token", tokens["dave"], "--seconds",
		seconds(l.long), "--json")
	if err != nil {
		return nil, err
	}
	defer dave.Kill()
	if err := dave.Wait(ctx); err != nil {
		return nil, fmt.Errorf("%w; alice: %s; carol: %s", err, alice.LastOutput(), carol.LastOutput())
	}
	if err := carol.Wait(ctx); err != nil {
		return nil, err
	}
	return figures(carol.Output(), dave.Output())
}

// figures returns the lines from the statistics of carol and the summary of dave.
func figures(carol, dave []byte) ([]claim.Line, error) {
	var inC struct {
		Totals struct {
			Refused int64 `json:"frames_refused"`
		}
		Tiles []struct {
			Participant string
			client.FrameCounts
		}
	}
	var inGo struct {
		Publications []struct {
			Participant string
			Expected    int64 `json:"frames_expected"`
			Decoded     int64 `json:"frames_decoded"`
			Skipped     int64 `json:"frames_skipped"`
			Refused     int64 `json:"frames_refused"`
			Lost        int64 `json:"packets_lost"`
		}
	}
	for _, side := range []struct {
		text []byte
		to   any
	}{{carol, &inC}, {dave, &inGo}} {
		if err := json.Unmarshal(bytes.TrimSpace(side.text), side.to); err != nil {
			return nil, fmt.Errorf("%.200q: %w", side.text, err)
		}
	}
	arrived := func(name string, arrived, expected int64) claim.Line {
		return claim.AtLeast(name, 100*float64(arrived)/float64(max(expected, 1)), "%", lossyTarget)
	}
	var lines []claim.Line
	for _, tile := range inC.Tiles {
		if tile.Participant == "alice" {
			lines = append(lines, arrived("Go to C: frames decrypted", tile.Complete, tile.Expected),
				claim.Information("Go to C: frames", float64(tile.Expected), ""))
		}
	}
	refused, lost := inC.Totals.Refused, int64(0)
	for _, tile := range inGo.Publications {
		from := map[string]string{"alice": "Go to Go", "carol": "C to Go"}[tile.Participant]
		lines = append(lines, arrived(from+": frames decrypted", tile.Decoded+tile.Skipped, tile.Expected),
			claim.Information(from+": frames", float64(tile.Expected), ""))
		refused += tile.Refused
		lost += tile.Lost
	}
	if len(lines) != 6 {
		return nil, fmt.Errorf("%d lines, expected those of three directions: carol %.300q, dave %.300q", len(lines),
			carol, dave)
	}
	return append(lines, claim.Exactly("frames refused", refused, "", 0),
		claim.AtLeast("control: packets lost on the way to Go at first", float64(lost), "", 1)), nil
}
