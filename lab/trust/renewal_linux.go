package trust

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

const (
	// renewalTime is the time for which files are replaced, renewalInterval the time between two replacements. The server
	// examines its files each second, so each kind of replacement is also made without a signal.
	renewalTime     = 60 * time.Second
	renewalInterval = 2500 * time.Millisecond
	// renewalReceivers receive 19 Mbit/s each.
	renewalReceivers = 4
	// renewalPatience bounds waits of the measurement.
	renewalPatience = 30 * time.Second
)

// renewalLoad is four tiles of 20 kB at 30 frames per second, 19.2 Mbit/s.
var renewalLoad = testbed.Load{Name: "body", Tiles: 4, Qualities: 1, FrameBytes: 20_000, Variation: 0.3, Rate: 30}

// renewal is a server whose files are replaced, and a conference in it.
type renewal struct {
	program, folder string
	// certificate, key, keys and log are the files of the server.
	certificate, key, keys, log string
	server                      *lab.Program
	conference                  *testbed.Conference
	trusted                     *x509.CertPool
	// secret is the present key of tokens, as KID:SECRET.
	secret string
	// replaced and rotations count replacements and log files.
	replaced, rotations int
}

// renewals replaces certificate, keys and log file of a server that forwards frames, with SIGHUP and without, and
// counts the frames that receivers miss.
func renewals(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	path, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "renewal-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := func(name string) string { return filepath.Join(folder, name) }
	r := &renewal{program: path, folder: folder, certificate: file("server.pem"), key: file("server.key"),
		keys: file("keys"), log: file("log"), trusted: x509.NewCertPool()}
	url, err := r.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.server.Stop()) }()
	r.conference = testbed.Attend(url)
	defer r.conference.Close()
	length, receivers := renewalTime, renewalReceivers
	if b.short {
		length, receivers = 6*renewalInterval, 1
	}
	b.progress.Say("certificate, keys and log file are replaced for %v", length)
	publisher, watchers, err := r.assemble(ctx, receivers)
	if err != nil {
		return nil, err
	}
	refused := 0
	for end := time.Now().Add(length); time.Now().Before(end); {
		if err := r.replace(); err != nil {
			return nil, err
		}
		if err := lab.Pause(ctx, renewalInterval); err != nil {
			return nil, err
		}
		if joined, err := r.admits(ctx); err != nil {
			return nil, err
		} else if !joined {
			refused++
		}
	}
	publisher.StopPublishing()
	lost, frames, err := missing(ctx, watchers, publisher.Published(renewalLoad.Name))
	if err != nil {
		return nil, err
	}
	var gap time.Duration
	ended := 0
	for _, p := range append(watchers, publisher) {
		if p.Session.Err() != nil || p.Failure() != nil {
			ended++
		}
		for _, tile := range p.Tiles() {
			gap = max(gap, tile.LongestGap)
		}
	}
	broken, reloaded, kept, err := r.logged()
	if err != nil {
		return nil, err
	}
	return []claim.Line{
		claim.Information("replacements of files, a third of them invalid", float64(r.replaced), ""),
		claim.Exactly(fmt.Sprintf("frames lost of %d", frames), lost, "", 0),
		claim.Exactly("sessions that ended", int64(ended), "", 0),
		claim.Exactly("joins with the new certificate and key that failed", int64(refused), "", 0),
		claim.Exactly("broken lines in the log files", broken, "", 0),
		claim.AtLeast("reloads that the log reports", float64(reloaded), "", 1),
		claim.AtLeast("invalid files that the log reports", float64(kept), "", 1),
		claim.Stated("longest time between two frames of a tile", lab.Milliseconds(gap), "ms"),
	}, nil
}

// start writes the first files and starts the server.
func (r *renewal) start(ctx context.Context) (url string, err error) {
	if err := errors.Join(r.renewCertificate(), r.renewKeys()); err != nil {
		return "", err
	}
	r.server, err = lab.StartCommand("volsfu serve", exec.Command(r.program, "serve", "--listen", "127.0.0.1:0",
		"--admin-listen", "", "--media-address", "127.0.0.1", "--media-port", "0", "--tls-cert", r.certificate,
		"--tls-key", r.key, "--auth-key-file", r.keys, "--log-file", r.log, "--log-format", "json",
		// Stalls of the machine must neither drop frames nor lower estimates, which drops tiles.
		"--forward-queue-budget", renewalPatience.String(), "--forward-congestion-min-bps", "100000000",
		"--forward-congestion-start-bps", "100000000"), nil)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, renewalPatience)
	defer cancel()
	err = testbed.Await(ctx, "the server is ready", func() bool {
		text, _ := os.ReadFile(r.log)
		for line := range bytes.Lines(text) {
			var ready lab.Ready
			if json.Unmarshal(line, &ready) == nil && ready.Signalling != "" {
				url = ready.URL()
			}
		}
		return url != ""
	})
	if err != nil {
		return "", errors.Join(err, r.server.Stop())
	}
	return url, nil
}

// part returns the configuration of a participant with a token of the present key.
func (r *renewal) part(ctx context.Context, identity string) (testbed.Part, error) {
	token, err := exec.CommandContext(ctx, r.program, "token", "--auth-keys", r.secret, "--identity", identity, "--room",
		"room").Output()
	return testbed.Part{
		Room: "room", Identity: identity, Token: strings.TrimSpace(string(token)), MinUplink: testbed.Everything,
		QueueBudget: renewalPatience, Deadline: 2 * time.Second,
		TLS: &tls.Config{RootCAs: r.trusted, MinVersion: tls.VersionTLS12},
	}, err
}

// assemble joins the publisher and the receivers, and waits until each receives frames.
func (r *renewal) assemble(ctx context.Context, receivers int) (*testbed.Peer, []*testbed.Peer, error) {
	var watchers []*testbed.Peer
	for i := range receivers {
		part, err := r.part(ctx, fmt.Sprintf("receiver %d", i))
		if err != nil {
			return nil, nil, err
		}
		part.Receive, part.Record = true, true
		p, err := r.conference.Join(ctx, part)
		if err != nil {
			return nil, nil, err
		}
		watchers = append(watchers, p)
	}
	part, err := r.part(ctx, "publisher")
	if err != nil {
		return nil, nil, err
	}
	part.Loads = []testbed.Load{renewalLoad}
	publisher, err := r.conference.Join(ctx, part)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, renewalPatience)
	defer cancel()
	for _, p := range watchers {
		err := testbed.Await(ctx, "frames of all tiles arrive", func() bool {
			return len(p.Tiles()) == renewalLoad.Tiles
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return publisher, watchers, nil
}

// replace makes the next replacement: valid files, invalid files, or a renamed log file, by turns with and without
// SIGHUP.
func (r *renewal) replace() error {
	var err error
	switch r.replaced % 3 {
	case 0:
		err = errors.Join(r.renewCertificate(), r.renewKeys())
	case 1:
		err = errors.Join(replaceFile(r.certificate, []byte("no certificate")), replaceFile(r.keys, []byte("no:key")))
	default:
		r.rotations++
		err = os.Rename(r.log, fmt.Sprintf("%s.%d", r.log, r.rotations))
	}
	r.replaced++
	if err == nil && r.replaced%2 == 0 {
		err = syscall.Kill(r.server.PID(), syscall.SIGHUP)
	}
	return err
}

// renewCertificate replaces the certificate and its key.
func (r *renewal) renewCertificate() error {
	folder, err := os.MkdirTemp(r.folder, "new-")
	if err != nil {
		return err
	}
	files, err := certificate.Make(folder, "127.0.0.1")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(files.Certificate)
	if err != nil {
		return err
	}
	r.trusted.AppendCertsFromPEM(text)
	return errors.Join(os.Rename(files.Certificate, r.certificate), os.Rename(files.Key, r.key))
}

// renewKeys replaces the key of tokens. Tokens of the last key are refused.
func (r *renewal) renewKeys() error {
	r.secret = "k" + rand.Text()[:4] + ":" + rand.Text() + rand.Text()
	return replaceFile(r.keys, []byte(r.secret+"\n"))
}

// replaceFile replaces a file at once.
func replaceFile(path string, data []byte) error {
	next := path + ".next"
	return errors.Join(os.WriteFile(next, data, 0o600), os.Rename(next, path))
}

// admits reports whether a participant joins with the last valid certificate and key.
func (r *renewal) admits(ctx context.Context) (bool, error) {
	part, err := r.part(ctx, "visitor")
	if err != nil {
		return false, err
	}
	p, err := r.conference.Join(ctx, part)
	if err != nil {
		return false, ctx.Err()
	}
	p.Leave()
	return true, nil
}

// missing waits for the last frames and returns the number of frames that receivers miss, of those that were published
// since their first one.
func missing(ctx context.Context, watchers []*testbed.Peer, published int64) (lost int64, frames int, err error) {
	waiting, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, p := range watchers {
		_ = testbed.Await(waiting, "the last frames arrive", func() bool {
			for _, tile := range p.Tiles() {
				if tile.Number != published-1 {
					return false
				}
			}
			return true
		})
		first := make(map[int]int64)
		for _, a := range p.Arrivals() {
			if _, known := first[a.Track.Tile]; !known {
				first[a.Track.Tile] = math.MaxInt64
			}
			first[a.Track.Tile] = min(first[a.Track.Tile], a.Number)
		}
		for tile, received := range p.Tiles() {
			frames += received.Frames
			lost += published - first[tile.Tile] - int64(received.Frames)
		}
	}
	return lost, frames, ctx.Err()
}

// logged reads all log files. It returns the lines that are not JSON, those that report a reload, and those that report
// invalid files.
func (r *renewal) logged() (broken, reloaded, kept int64, err error) {
	files, err := filepath.Glob(r.log + "*")
	if err != nil {
		return 0, 0, 0, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, 0, 0, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var line struct{ Msg string }
			switch {
			case json.Unmarshal(lines.Bytes(), &line) != nil:
				broken++
			case strings.Contains(line.Msg, "has been reloaded"):
				reloaded++
			case strings.Contains(line.Msg, "could not be reloaded"):
				kept++
			}
		}
	}
	return broken, reloaded, kept, nil
}
