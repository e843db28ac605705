package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/proxy"
)

// watched is the summary of volpeer.
type watched struct {
	Expected    int64 `json:"frames_expected"`
	Decoded     int64 `json:"frames_decoded"`
	Refused     int64 `json:"frames_refused"`
	Undecodable int64 `json:"frames_undecodable"`
	Held        int   `json:"tiles_held"`
	Audio       struct {
		Received int64 `json:"packets_received"`
	}
}

// patiently has volpeer wait for packets as long as a busy machine may delay them.
var patiently = []string{"--deadline", "1s"}

// volpeerWatches lets volpeer watch room "demo" for some seconds, and returns its summary and the points that it
// showed.
func volpeerWatches(t *testing.T, s *server.Server, seconds string, flags ...string) (watched, []pointcloud.Cloud) {
	t.Helper()
	path := peer(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	folder := t.TempDir()
	arguments := []string{"watch", "--server", s.URL(), "--room", "demo", "--identity", "watcher", "--seconds", seconds,
		"--json", "--save", folder}
	command := exec.CommandContext(ctx, path, append(arguments, flags...)...)
	command.Stderr = &logged{t}
	out, err := command.Output()
	if err != nil {
		t.Fatalf("volpeer watch: %v\n%s", err, out)
	}
	var sum watched
	if err := json.Unmarshal(out, &sum); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*.ply"))
	if err != nil {
		t.Fatal(err)
	}
	clouds := make([]pointcloud.Cloud, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err == nil {
			err = pointcloud.ReadPLY(bytes.NewReader(data), &clouds[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return sum, clouds
}

// TestPublishing has a page publish a figure of two tiles in three qualities: nothing is encoded until volpeer watches,
// which decodes all of it; another page sees it, selects one quality, and still sees it after the publisher has lost
// its network for a while.
func TestPublishing(t *testing.T) {
	long.Test(t)
	tools(t)
	// The page does not wait for the build.
	peer(t)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	media := &mutedConn{PacketConn: conn}
	s := start(t, func(o *server.Options) { o.Media = media })
	way := proxy.New(t, strings.TrimPrefix(pageURL(s), "http://"))
	v := begin(t, "publish.mjs", "http://"+way.Address())
	var resting struct {
		Encoded, Before int64
		Headline        string
	}
	v.expect("resting", &resting)
	if resting.Encoded != 0 || !strings.Contains(resting.Headline, "no receivers") {
		t.Errorf("while nobody takes anything: %+v", resting)
	}
	type outcome struct {
		sum    watched
		clouds []pointcloud.Cloud
	}
	ended := make(chan outcome, 1)
	go func() {
		sum, clouds := volpeerWatches(t, s, "8", patiently...)
		ended <- outcome{sum, clouds}
	}()
	v.goOn()
	var sending struct {
		Sentences string
		Qualities []struct {
			Name                   string
			FPS, BPS, Milliseconds float64
			Points, Taken          int
		}
	}
	v.expect("sending", &sending)
	if !strings.Contains(sending.Sentences, "watcher is here. Received qualities: low, mid and high.") {
		t.Errorf("the page says %q", sending.Sentences)
	}
	for i, want := range []int{1000, 2000, 4000} {
		if q := sending.Qualities[i]; q.Points < want-want/20 || q.Points > want+want/20 ||
			q.BPS <= 0 || q.Milliseconds <= 0 || q.Taken != 2 {
			t.Errorf("quality %s: %+v, expected %d points", q.Name, q, want)
		}
	}
	o := <-ended
	checkFigure(t, o.sum, o.clouds)
	v.goOn()
	var seen struct {
		Shown  float64
		Failed int
	}
	v.expect("seen", &seen)
	if seen.Shown < 0.005 || seen.Failed > 0 {
		t.Errorf("a page sees it on %g of its picture, %d frames failed", seen.Shown, seen.Failed)
	}
	v.expect("suppressed", nil)
	media.muted.Store(true)
	way.SetDown(true)
	way.Cut()
	v.goOn()
	v.expect("broken", nil)
	media.muted.Store(false)
	way.SetDown(false)
	v.goOn()
	var resumed struct{ Same bool }
	v.expect("resumed", &resumed)
	if !resumed.Same {
		t.Error("another session was begun, expected the one before to be resumed")
	}
	var stopped struct{ Notes []string }
	v.expect("stopped", &stopped)
	if all := strings.Join(stopped.Notes, "|"); !strings.Contains(all, "There is no camera. Connect one") ||
		!strings.Contains(all, "Chrome on an Android phone") {
		t.Errorf("of what is missing the panel says %q", all)
	}
	v.expect("done", nil)
}

// TestPicturesOfPublishing makes the documents' pictures of the panel for publishing, if requested.
func TestPicturesOfPublishing(t *testing.T) {
	if *pictures == "" {
		t.Skip("pictures are made on demand: go test ./test/browser -run TestPictures -args -pictures DIR")
	}
	tools(t)
	s := start(t, nil)
	publish(t, s, "Ada", "--points", "20000", "--tiles", "1")
	publish(t, s, "Grace", "--points", "20000", "--tiles", "1")
	watch(t, s, "Linus")
	v := begin(t, "screenshots_publish.mjs", pageURL(s))
	v.patience = 5 * patience
	v.expect("made", nil)
	v.expect("done", nil)
}

// checkFigure compares the watched points with a figure of up to 4,000 points in two tiles.
func checkFigure(t *testing.T, sum watched, clouds []pointcloud.Cloud) {
	t.Helper()
	if sum.Decoded < 10 || sum.Undecodable > 0 || len(clouds) == 0 {
		t.Fatalf("volpeer decoded %d frames, %d could not be decoded, %d were shown", sum.Decoded, sum.Undecodable,
			len(clouds))
	}
	most, colors := 0, make(map[[3]uint8]bool)
	low, high := [3]float32{9, 9, 9}, [3]float32{-9, -9, -9}
	for _, cloud := range clouds {
		most = max(most, cloud.Len())
		for i, p := range cloud.Positions {
			for axis, v := range p {
				low[axis], high[axis] = min(low[axis], v), max(high[axis], v)
			}
			colors[cloud.Colors[i]] = true
		}
	}
	// Shown frames may have tiles of neighbouring captures, between which points move from one to the other.
	if most < 1000 || most > 4400 || len(colors) < 500 {
		t.Errorf("the largest frame has %d points, all have %d colours", most, len(colors))
	}
	// A person of 1.75 m on the floor, within arm's reach of the middle.
	if low[1] < -0.01 || low[1] > 0.05 || high[1] < 1.7 || high[1] > 1.8 || low[0] < -0.81 || high[0] > 0.81 ||
		high[0]-low[0] < 0.3 {
		t.Errorf("points reach from %v to %v", low, high)
	}
}
