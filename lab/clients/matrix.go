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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
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
	// beginning and ending are the times for a publisher to publish and to end. A virtual camera is surveyed first.
	beginning, ending = 2 * time.Minute, 30 * time.Second
	// cameras is the folder of virtual cameras in the checkout.
	cameras = "docs/cameras"
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
	native, err := b.program("volpeer")
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
	inC, err := buildC(ctx, folder)
	if err != nil {
		return nil, err
	}
	tree, err := suite.SourceTree("", cameras)
	if err != nil {
		return nil, err
	}
	// A page that is closed does not leave, so that the server would wait for its return.
	server, err := lab.StartServer(ctx, volsfu, "--drain-time", "1s")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	receivers := []receiver{
		watcher("volpeer", "volpeer", native), watcher("volpeer without cgo", "portable", portable), inC.receiver(),
	}
	publishers := []publisher{
		peer("volpeer", native, "draco"), peer("volpeer", native, "draco+jpeg"), peer("volpeer", native, "zstd"),
		depthPeer("volpeer", native, tree), peer("volpeer without cgo", portable, "zstd"),
		depthPeer("volpeer without cgo", portable, tree), inC.publisher(),
		{name: "VR2Gather's format", codec: "cwi1", start: octrees},
	}
	opened := []func(context.Context, string) (receiver, []publisher, error){openCSharp, openPython}
	if b.options.Pages {
		opened = append(opened, openBrowser)
	}
	for _, open := range opened {
		in, out, err := open(ctx, folder)
		switch {
		case errors.Is(err, lab.ErrUnable) || errors.Is(err, suite.ErrSource):
			lines = append(lines, claim.Skip("cells of "+in.name, err.Error()))
			continue
		case err != nil:
			return nil, err
		}
		receivers, publishers = append(receivers, in), append(publishers, out...)
	}
	lines = append(lines, absent()...)
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

// absent returns a line for each publisher that has no encoder of a codec.
func absent() (lines []claim.Line) {
	const (
		noCgo   = "Draco's encoder is in C++, which is built with cgo only"
		library = "the C library encodes points with zstd only"
		octree  = "volsfu has no encoder of cwi1; the cells of VR2Gather's format have frames of cwi1"
		images  = "rgbd encodes images of depth cameras, and the C library encodes points only"
	)
	for _, a := range []struct{ name, codec, why string }{
		{"volpeer without cgo", "draco", noCgo}, {"browser", "zstd", "pages encode draco and rgbd only"},
		{"C, C#, Python", "draco", library}, {"C, C#, Python", "rgbd", images}, {"all programs", "cwi1", octree},
	} {
		lines = append(lines, claim.Skip(a.codec+" from "+a.name, a.why))
	}
	return lines
}

// watcher returns a volpeer that receives.
func watcher(name, identity, program string) receiver {
	return receiver{name: name, command: func(url, room, _ string) []string {
		return []string{program, "watch", "--server", url, "--room", room, "--identity", identity, "--seconds",
			strconv.Itoa(int(watching.Seconds())), "--deadline", deadline.String(), "--json"}
	}}
}

// peer returns a volpeer that publishes the figure as points.
func peer(name, program, codec string) publisher {
	return volpeerOf(name, program, codec, "--points", strconv.Itoa(points), "--qualities", "only=100%", "--tiles", "1")
}

// depthPeer returns a volpeer that publishes the figure as images of a virtual depth camera.
func depthPeer(name, program, tree string) publisher {
	return volpeerOf(name, program, "rgbd", "--virtual-cameras", filepath.Join(tree, cameras, "front.yaml"))
}

// volpeerOf returns a volpeer that publishes.
func volpeerOf(name, program, codec string, arguments ...string) publisher {
	start := func(_ context.Context, url, room, secret string) (func() error, error) {
		cmd := exec.Command(program, append([]string{"publish", "--server", url, "--room", room, "--identity",
			"publisher", "--source", "synthetic", "--codec", codec, "--fps", strconv.Itoa(framesPerSecond)},
			arguments...)...)
		cmd.Env = environment(secret)
		running, err := lab.StartCommand("volpeer publish", cmd, nil)
		if err != nil {
			return nil, err
		}
		return running.Stop, nil
	}
	return publisher{name, codec, start}
}

// fed returns a program that publishes until its input ends.
func fed(name, codec string, command func(url, room, secret string) []string) publisher {
	start := func(_ context.Context, url, room, secret string) (func() error, error) {
		line := command(url, room, secret)
		cmd := exec.Command(line[0], line[1:]...)
		input, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		running, err := lab.StartCommand(name+" publish", cmd, nil)
		if err != nil {
			return nil, err
		}
		return func() error {
			_ = input.Close()
			ctx, cancel := context.WithTimeout(context.Background(), ending)
			defer cancel()
			defer running.Kill()
			return running.Wait(ctx)
		}, nil
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
	room := strings.NewReplacer(" ", "-", "+", "-", "'", "", "#", "-sharp").Replace(p.name + "-" + p.codec)
	suffix := ""
	if secret != "" {
		room, suffix = room+"-encrypted", ", encrypted"
	}
	stop, err := p.start(ctx, server.URL(), room, secret)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := published(ctx, server.URL(), room); err != nil {
		return nil, err
	}
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

// published waits until a room has a publication, so that the time of receivers begins with frames.
func published(ctx context.Context, url, room string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, beginning)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: url, Room: room, Identity: "observer"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	for {
		for _, participant := range session.Participants() {
			if len(participant.Publications) > 0 {
				return nil
			}
		}
		// Publications also begin with the event that their participant has joined.
		select {
		case <-session.Events():
		case <-session.Done():
			return session.Err()
		case <-ctx.Done():
			return fmt.Errorf("nothing was published within %v: %w", beginning, ctx.Err())
		}
	}
}

// cell returns the share of frames that a receiver decoded, by its summary. Scripts of browsers print several objects,
// one for each step.
func cell(name string, summary []byte) claim.Line {
	var figures struct {
		Decoded     int64  `json:"frames_decoded"`
		Undecodable int64  `json:"frames_undecodable"`
		Refused     int64  `json:"frames_refused"`
		Message     string `json:"message"`
	}
	for objects := json.NewDecoder(bytes.NewReader(summary)); ; {
		err := objects.Decode(&figures)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return claim.Fail(name, fmt.Sprintf("the receiver prints no summary: %v", err))
		}
		if figures.Message != "" {
			return claim.Fail(name, figures.Message)
		}
	}
	if figures.Decoded < leastFrames {
		return claim.Fail(name, fmt.Sprintf("%d frames decoded, expected at least %d", figures.Decoded, leastFrames))
	}
	all := figures.Decoded + figures.Undecodable + figures.Refused
	return claim.AtLeast(name, 100*float64(figures.Decoded)/float64(all), "%", 100)
}
