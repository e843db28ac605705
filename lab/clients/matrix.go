package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec/cwi1/cwi1test"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// watching is the time for which receivers receive, and leastFrames the number of frames that they decode in it.
	watching    = 4 * time.Second
	leastFrames = 10
	// deadline is the time that volpeer waits for the packets of a frame. The matrix judges decoders: a busy machine
	// that delays or drops packets must not make frames incomplete.
	deadline = time.Second
	// framesPerSecond and points are the rate and the size of published clouds.
	framesPerSecond = 10
	points          = 2000
	// passphrase is that of encrypted rooms.
	passphrase = "a passphrase of the lab"
)

// receiver is a program that prints a JSON object with frames_decoded and frames_undecodable.
type receiver struct {
	name string
	// command returns its command line for a room, with the passphrase of encrypted rooms.
	command func(url, room, secret string) []string
}

// publisher publishes one codec until stop is called.
type publisher struct {
	name, codec string
	start       func(ctx context.Context, url, room, secret string) (stop func() error, err error)
}

// matrix has each receiver decode the streams of each publisher, with and without encryption. All receivers of a
// publisher are in one room.
func matrix(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	volsfu, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	volpeer, err := b.program("volpeer")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "volsfu-clients-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	b.progress.Say("  building volpeer without cgo and the C library")
	portable, err := buildPeer(ctx, folder, hostSystem, hostArchitecture)
	if err != nil {
		return nil, err
	}
	inC, err := buildReceiver(ctx, folder)
	if err != nil {
		return nil, err
	}
	inCSharp, err := buildCSharp(ctx, folder)
	if err != nil {
		return nil, err
	}
	server, err := lab.StartServer(ctx, volsfu)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	receivers := []receiver{
		watcher("volpeer", "volpeer", volpeer), watcher("volpeer without cgo", "portable", portable),
		{name: "C", command: func(url, room, secret string) []string {
			command := []string{inC, url, room, strconv.Itoa(int(watching.Seconds()))}
			if secret != "" {
				command = append(command, secret)
			}
			return command
		}},
		inCSharp.receiver(),
	}
	publishers := []publisher{
		peer("volpeer", volpeer, "draco"), peer("volpeer", volpeer, "draco+jpeg"), peer("volpeer", volpeer, "zstd"),
		peer("volpeer without cgo", portable, "zstd"), inCSharp.publisher("zstd"),
		{name: "VR2Gather's format", codec: "cwi1", start: octrees},
	}
	for _, p := range publishers {
		for _, secret := range []string{"", passphrase} {
			cells, err := row(ctx, server, p, receivers, secret)
			lines = append(lines, cells...)
			if err != nil {
				return lines, err
			}
			for _, cell := range cells {
				b.progress.Say("  %v", cell)
			}
		}
	}
	return lines, nil
}

// watcher returns a volpeer that receives.
func watcher(name, identity, program string) receiver {
	return receiver{name: name, command: func(url, room, _ string) []string {
		return []string{program, "watch", "--server", url, "--room", room, "--identity", identity, "--seconds",
			strconv.Itoa(int(watching.Seconds())), "--deadline", deadline.String(), "--json"}
	}}
}

// peer returns a volpeer that publishes.
func peer(name, program, codec string) publisher {
	start := func(_ context.Context, url, room, secret string) (func() error, error) {
		cmd := exec.Command(program, "publish", "--server", url, "--room", room, "--identity", "publisher", "--codec",
			codec, "--tiles", "1", "--points", strconv.Itoa(points), "--qualities", "only=100%", "--fps",
			strconv.Itoa(framesPerSecond))
		cmd.Env = environment(secret)
		running, err := lab.StartCommand("volpeer publish", cmd, nil)
		if err != nil {
			return nil, err
		}
		return running.Stop, nil
	}
	return publisher{name, codec, start}
}

// environment returns the environment of volpeer in a room with a passphrase, which may be empty.
func environment(secret string) []string {
	return append(os.Environ(), "VOLPEER_PASSPHRASE="+secret, "VOLPEER_TOKEN=")
}

// octrees publishes the figure in VR2Gather's format from this process: no encoder of volsfu writes the codec.
func octrees(ctx context.Context, url, room, secret string) (func() error, error) {
	options := capture.DefaultOptions()
	options.Points = points
	source, err := capture.Open("synthetic", options)
	if err != nil {
		return nil, err
	}
	var frame capture.Frame
	err = source.Read(ctx, &frame)
	if err = errors.Join(err, source.Close()); err != nil {
		return nil, err
	}
	cloud := &frame.Cloud
	data, _ := cwi1test.Of(cloud, 1.0/256).Encode()
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: framesPerSecond,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles:     []volumetric.Tile{{Box: cloud.Bounds()}},
		Qualities: []volumetric.QualityLevel{{Bitrate: volumetric.Bitrate(8 * framesPerSecond * len(data))}},
	}
	session, err := client.Join(ctx, client.Config{URL: url, Room: room, Identity: "publisher", Passphrase: secret,
		Publications: []volumetric.Publication{body}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second / framesPerSecond)
		defer ticker.Stop()
		for number := uint32(0); ; number++ {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				// Nothing is sent before the connection is established.
				_, _ = session.Publisher(body.Name).WriteFrame(0, 0, client.OutgoingFrame{Number: number, Capture: now,
					Codec: vr2gather.CodecOctree, Data: data})
			}
		}
	}()
	return func() error {
		cancel()
		<-done
		return session.Close()
	}, nil
}

// connecting limits the time until a publisher is connected, which is a second on an idle machine.
const connecting = time.Minute

// connected waits until a participant of a room is connected to the server: receivers that begin before, on a busy
// machine, would receive nothing.
func connected(ctx context.Context, admin, room string) error {
	ctx, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+admin+"/admin/v1/rooms/"+url.PathEscape(room), nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(`"connected":true`)) {
			return nil
		}
		if err := lab.Pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("no participant of room %s is connected after %v: %w", room, connecting, err)
		}
	}
}

// row has all receivers receive from one publisher, in a room of their own.
func row(ctx context.Context, server *lab.ServerProgram, p publisher, receivers []receiver, secret string) (
	lines []claim.Line, err error) {
	room := strings.NewReplacer(" ", "-", "+", "-", "'", "").Replace(p.name + "-" + p.codec)
	suffix := ""
	if secret != "" {
		room, suffix = room+"-encrypted", ", encrypted"
	}
	stop, err := p.start(ctx, server.URL(), room, secret)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := connected(ctx, server.Admin, room); err != nil {
		return nil, err
	}
	running := make([]*lab.Program, len(receivers))
	for i, r := range receivers {
		command := r.command(server.URL(), room, secret)
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Env = environment(secret)
		if running[i], err = lab.StartCommand(r.name, cmd, nil); err != nil {
			return nil, err
		}
		defer running[i].Kill()
	}
	for i, r := range receivers {
		name := fmt.Sprintf("%s from %s to %s%s", p.codec, p.name, r.name, suffix)
		if err := running[i].Wait(ctx); err != nil {
			lines = append(lines, claim.Fail(name, err.Error()))
			continue
		}
		lines = append(lines, cell(name, running[i].Output()))
	}
	return lines, ctx.Err()
}

// cell returns the share of frames that a receiver decoded, by its summary.
func cell(name string, summary []byte) claim.Line {
	var figures struct {
		Decoded     int64 `json:"frames_decoded"`
		Undecodable int64 `json:"frames_undecodable"`
		Refused     int64 `json:"frames_refused"`
	}
	if err := json.Unmarshal(summary, &figures); err != nil {
		return claim.Fail(name, fmt.Sprintf("the receiver prints no summary: %v", err))
	}
	if figures.Decoded < leastFrames {
		return claim.Fail(name, fmt.Sprintf("%d frames decoded, expected at least %d", figures.Decoded, leastFrames))
	}
	all := figures.Decoded + figures.Undecodable + figures.Refused
	return claim.AtLeast(name, 100*float64(figures.Decoded)/float64(all), "%", 100)
}
