package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/production"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/summary"
	"github.com/volsfu/volsfu/cmd/volpeer/internal/watch"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// film writes a file of H.264 with a key frame in every ten frames, and returns its path.
func film(t *testing.T, name string, frameBytes int) string {
	t.Helper()
	var file bytes.Buffer
	for i := range 30 {
		first := byte(0x41)
		if i%10 == 0 {
			file.Write([]byte{0, 0, 0, 1, 0x67, 0x42, 0xe0, 0x1f, 0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80})
			first = 0x65
		}
		file.Write(append([]byte{0, 0, 0, 1, first, 0x88}, bytes.Repeat([]byte{0xaa}, frameBytes)...))
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPicturesArrive publishes a webcam and a screen without an object, and counts their frames at a watcher.
func TestPicturesArrive(t *testing.T) {
	v := openVenue(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := slog.New(slog.DiscardHandler)
	p := &options{
		Options: production.Options{Source: sourceNone, Qualities: "low", Codec: "raw", Name: "body",
			Mode: string(volumetric.ModeAlternatives), Within: time.Hour},
		room:   v.enter("alice"),
		camera: fmt.Sprintf("%s@320x180@15,%s@1280x720", film(t, "low.h264", 500), film(t, "high.h264", 3000)),
		screen: film(t, "screen.h264", 1000) + "@1920x1080",
		pose:   "0,0,-2",
	}
	settings, err := p.check(log)
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.open(ctx, settings)
	if err != nil {
		t.Fatal(err)
	}
	defer b.producer.Close()
	b.console, b.log = io.Discard, log
	session, err := p.enter(ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.run(ctx, session, 0); err != nil {
			t.Error(err)
		}
	})
	watching := &watch.Options{Room: v.enter("bob"), Seconds: 300, Quality: "auto", JSON: true}
	var out bytes.Buffer
	running.Go(func() {
		if err := watching.Run(ctx, nil, &out, io.Discard, log); err != nil {
			t.Error(err)
		}
	})
	wait.Until(t, "60 frames of each picture", func() bool {
		reports := b.pictureReports()
		return reports[0].FramesSent >= 60 && reports[1].FramesSent >= 60
	})
	stop()
	running.Wait()
	var sum summary.Summary
	if err := json.Unmarshal(out.Bytes(), &sum); err != nil {
		t.Fatal(err)
	}
	if len(sum.Pictures) != 2 || sum.Pictures[0].Publication != screenName ||
		sum.Pictures[1].Publication != cameraName {
		t.Fatalf("the watcher has counted %+v", sum.Pictures)
	}
	for _, c := range sum.Pictures {
		if c.Frames < 20 || c.KeyFrames < 1 || c.Undecodable > 0 || c.Quality < 0 || c.Bitrate == 0 {
			t.Errorf("of %s the watcher has counted %+v", c.Publication, c)
		}
	}
	if reports := b.summary().Pictures; len(reports) != 2 || reports[0].KeyFramesSent == 0 {
		t.Errorf("the publisher has counted %+v", reports)
	}
}

// TestPictureFlags names the flag of an invalid value.
func TestPictureFlags(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	good := film(t, "film.h264", 100)
	for _, c := range []struct {
		source, camera, screen, name, want string
	}{
		{"synthetic", "absent.ivf", "", "body", "--camera: open absent.ivf"},
		{"synthetic", "", good + "@x", "body", "--screen: "},
		{"none", "", "", "body", errNothing.Error()},
		{"synthetic", good, "", cameraName, errName.Error()},
	} {
		p := &options{Options: production.Options{Source: c.source, Qualities: "low", Codec: "raw", Name: c.name,
			Mode: string(volumetric.ModeAlternatives)}, camera: c.camera, screen: c.screen}
		p.room.Server, p.room.Name, p.room.Identity = "ws://localhost:1", "room", "alice"
		if _, err := p.check(log); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: got %v, expected %q", c, err, c.want)
		}
	}
}
