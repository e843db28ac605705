package layers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	room, sender, receiver = "lab", "sender", "receiver"
	// tolerance is the largest share of a frame's latency by which its layers may be off.
	tolerance = 0.01
	// linkDelay is the delay of each direction of each host's link in the emulated network.
	linkDelay = time.Millisecond
	// apart is the difference between the clocks of sender and receiver.
	apart = 50 * time.Millisecond
	// mostUncertain is the largest uncertainty of an estimated clock on a symmetric link of linkDelay.
	mostUncertain = 100 * time.Microsecond
	// overlap is the time for which the sender runs longer than the receiver, including the time to join.
	overlap = 6 * time.Second
)

// Adding checks that the layers of a frame add up to its latency.
type Adding struct {
	Progress lab.Progress
	// Length is the duration of each measurement: on one machine, and between two namespaces.
	Length time.Duration
}

// Name implements lab.Check.
func (a *Adding) Name() string {
	return "layers of frames add up to their latency, on one machine and between clocks 50 ms apart"
}

// Run implements lab.Check.
func (a *Adding) Run(ctx context.Context) ([]claim.Line, error) {
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	a.Progress.Say("one machine, %v", a.Length)
	here, err := a.onOneMachine(ctx, programs)
	if err != nil {
		return nil, fmt.Errorf("on one machine: %w", err)
	}
	lines := here.lines("one machine")
	a.Progress.Say("two namespaces, clocks %v apart, %v", apart, a.Length)
	there, err := a.betweenNamespaces(ctx, programs)
	const name = "two namespaces, clocks 50 ms apart: layers"
	switch {
	case errors.Is(err, router.ErrPrivileges), errors.Is(err, router.ErrTUN):
		return append(lines, claim.Skip(name, err.Error())), nil
	case err != nil:
		return lines, fmt.Errorf("between namespaces: %w", err)
	}
	return slices.Concat(lines, there.lines("two namespaces, clocks 50 ms apart"),
		there.clockLines("links of 1 ms each way")), nil
}

// lines returns the lines of the claims about a comparison. The claim is about frames. On a busy machine, a scheduler
// may delay a message of the clock and thereby all frames. Therefore the 99th percentile counts, and the largest value
// is for information.
func (c *comparison) lines(where string) []claim.Line {
	if c.complete == 0 {
		return []claim.Line{claim.AtLeast(where+": frames with every stage", 0, "", 1)}
	}
	shares := slices.Clone(c.shares)
	slices.Sort(shares)
	percent := func(share float64) float64 {
		return 100 * shares[min(int(share*float64(len(shares))), len(shares)-1)]
	}
	deviation := where + ": deviation of the sum of the layers from the latency, "
	return []claim.Line{
		claim.AtLeast(where+": frames with every stage", 100*float64(c.complete)/float64(c.frames), "%", 95),
		claim.Information(where+": latency, median", lab.Milliseconds(c.real.Percentile(0.5)), "ms"),
		claim.AtMost(deviation+"99 % of frames", percent(0.99), "%", 100*tolerance),
		claim.Information(deviation+"largest", percent(1), "%"),
		claim.Information(deviation+"99 % of frames", micro(c.misses.Percentile(0.99)), "µs"),
		claim.Information(where+": reported bound of the latency, median", micro(c.bounds.Percentile(0.5)),
			"µs"),
		claim.Information(where+": reported uncertainty of the latency, median",
			micro(c.uncertainties.Percentile(0.5)), "µs"),
		claim.Information(where+": frames whose number has two captures, ignored", float64(c.others), ""),
		claim.Exactly(where+": frames with a deviation above the reported bound", int64(c.outside), "", 0),
		claim.Information(where+": frames with a deviation above the reported uncertainty", float64(c.uncertain),
			""),
	}
}

// clockLines returns the lines of the claims about the clocks on symmetric links: the uncertainty of each clock is
// small. A bound cannot be small, because a bound also covers asymmetric paths. The median over frames counts, because
// a delayed thread delays single messages.
func (c *comparison) clockLines(where string) (lines []claim.Line) {
	if c.complete == 0 {
		return nil
	}
	for _, host := range []frametimes.Host{frametimes.Sender, frametimes.Receiver} {
		name, d := fmt.Sprintf("%s: uncertainty of the %s's clock", where, host), c.clocks[host]
		lines = append(lines,
			claim.AtMost(name+", median over frames", micro(d.Percentile(0.5)), "µs", micro(mostUncertain)),
			claim.Information(name+", 99 % of frames", micro(d.Percentile(0.99)), "µs"),
		)
	}
	return lines
}

func micro(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// programs are the programs of the repository beside this one.
type programs struct{ volpeer, volsfu string }

func findPrograms() (p programs, err error) {
	if p.volpeer, err = lab.FindProgram("volpeer"); err != nil {
		return p, err
	}
	p.volsfu, err = lab.FindProgram("volsfu")
	return p, err
}

// peer starts volpeer on a host.
type peer func(host string, arguments ...string) *exec.Cmd

// onOneMachine makes the peers estimate their clocks although all peers have the same clock, so that there is an
// estimate to check.
func (a *Adding) onOneMachine(ctx context.Context, p programs) (c *comparison, err error) {
	server, err := lab.StartServer(ctx, p.volsfu)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	return a.watch(ctx, func(host string, arguments ...string) *exec.Cmd {
		return exec.CommandContext(ctx, p.volpeer, append(arguments, "--server", server.URL(), "--room", room,
			"--identity", host, "--clock", string(frametimes.SourceEstimated))...)
	}, 0, 0)
}

// betweenNamespaces runs server, sender and receiver in namespaces of their own, with links of 1 ms between them.
func (a *Adding) betweenNamespaces(ctx context.Context, p programs) (c *comparison, err error) {
	const serving = "server"
	link := topology.Duplex(netem.Config{Delay: linkDelay})
	network := topology.Star(serving, map[string]topology.Link{sender: link, receiver: link})
	network.Hosts[sender] = topology.Host{ClockOffset: apart}
	running, err := topology.Start(ctx, network)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, running.Close()) }()
	secret := rand.Text() + rand.Text()
	address := running.Address(serving).String()
	command := running.Command(ctx, serving, p.volsfu, "serve", "--listen", address+":0", "--admin-listen", "",
		"--media-address", address, "--media-port", "0", "--log-format", "json")
	command.Env = append(command.Env, "VOLSFU_AUTH_KEYS=lab:"+secret)
	server, err := lab.StartServerCommand(ctx, command)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	keys, err := auth.NewKeyring(auth.Config{Keys: []string{"lab:" + secret}})
	if err != nil {
		return nil, err
	}
	tokens := make(map[string]string)
	for _, host := range []string{sender, receiver} {
		now := time.Now()
		claims := auth.Claims{Identity: host, Room: room, Publish: true, Subscribe: true, Expires: now.Add(time.Hour)}
		if tokens[host], err = keys.Mint("", claims, now); err != nil {
			return nil, err
		}
	}
	return a.watch(ctx, func(host string, arguments ...string) *exec.Cmd {
		return running.Command(ctx, host, p.volpeer, append(arguments, "--server", server.URL(), "--token",
			tokens[host])...)
	}, apart, 0)
}

// watch makes a sender and a receiver record the times of frames, and compares them. ahead and behind are the offsets
// of their clocks.
func (a *Adding) watch(ctx context.Context, start peer, ahead, behind time.Duration) (c *comparison, err error) {
	folder, err := os.MkdirTemp("", "volsfu-layers-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	sent, received := filepath.Join(folder, "sent.jsonl"), filepath.Join(folder, "received.jsonl")
	publisher, err := lab.StartCommand("volpeer publish", start(sender, "publish", "--frame-times", sent, "--points",
		"20000",
		"--seconds", seconds(a.Length+overlap)), nil)
	if err != nil {
		return nil, err
	}
	watcher, err := lab.StartCommand("volpeer watch", start(receiver, "watch", "--render", "--frame-times", received,
		"--seconds", seconds(a.Length)), nil)
	if err != nil {
		return nil, errors.Join(err, publisher.Stop())
	}
	if err := errors.Join(watcher.Wait(ctx), publisher.Wait(ctx)); err != nil {
		return nil, errors.Join(err, watcher.Stop(), publisher.Stop())
	}
	captures := make(map[frametimes.Key]frametimes.Record)
	if err := read(sent, func(r *frametimes.Record) error {
		captures[frametimes.Key{Track: r.Track, Frame: uint32(r.Frame)}] = *r
		return nil
	}); err != nil {
		return nil, err
	}
	var records []frametimes.Record
	if err := read(received, func(r *frametimes.Record) error {
		records = append(records, *r)
		return nil
	}); err != nil {
		return nil, err
	}
	return compare(settled(records), captures, ahead, behind), nil
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

func read(name string, take func(*frametimes.Record) error) (err error) {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return frametimes.ReadJSONL(file, take)
}

const (
	// settling is the time left out at the beginning, in which programs start and the clock estimates settle.
	settling = time.Second
	// unfinished is the time left out at the end: the times of the last frames from sender and server arrive after the
	// receiver has left.
	unfinished = time.Second
)

// settled leaves out the beginning and the end.
func settled(records []frametimes.Record) []frametimes.Record {
	var first, last int64
	for i := range records {
		if at := records[i].Times[frametimes.LastReceived]; at > 0 {
			if first == 0 || at < first {
				first = at
			}
			last = max(last, at)
		}
	}
	return slices.DeleteFunc(records, func(r frametimes.Record) bool {
		at := r.Times[frametimes.LastReceived]
		return at < first+int64(settling) || at > last-int64(unfinished)
	})
}
