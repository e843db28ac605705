package trust

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/testbed"
)

// recordedLoad is the load of the claim on recordings: publishers of 40 Mbit/s each in one room, and receivers of
// everything.
type recordedLoad struct {
	publishers, receivers int
	frameBytes            int
	// window is the length of a measurement of CPU time with or without a recording, windows the number of each.
	window  time.Duration
	windows int
	// killed is the length of the recording that ends with the server.
	killed time.Duration
}

// recordedRoom is the room of the claim on recordings.
const recordedRoom = "recorded"

// recorded measures the CPU time of recording 200 Mbit/s, kills a server that records, and replays the recording.
func recorded(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	// 4 tiles of 41,667 bytes at 30 frames per second are 40 Mbit/s.
	load := recordedLoad{publishers: 5, receivers: 2, frameBytes: 41_667, window: 8 * time.Second, windows: 3,
		killed: 5 * time.Second}
	if b.short {
		load = recordedLoad{publishers: 2, receivers: 1, frameBytes: 10_000, window: 2 * time.Second, windows: 1,
			killed: 2 * time.Second}
	}
	path, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	peer, err := b.program("volpeer")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "recorded")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lines, at, err := load.measure(ctx, b, path, filepath.Join(dir, "first"))
	if err != nil {
		return lines, err
	}
	more, err := replayedFrames(ctx, b, path, peer, dir, at)
	return append(lines, more...), err
}

// measure measures the CPU time of recording. At the end it kills the server, and returns the time.
func (l *recordedLoad) measure(ctx context.Context, b *bench, path, dir string) (lines []claim.Line, killed time.Time,
	err error) {
	server, err := lab.StartServer(ctx, path, "--recordings-directory", dir)
	if err != nil {
		return nil, killed, err
	}
	defer server.Kill()
	room := testbed.Attend(server.URL())
	defer room.Close()
	if err := l.join(ctx, room); err != nil {
		return nil, killed, err
	}
	var cpu [2]float64 // seconds for each received packet, without and with a recording
	var shares [2]float64
	for n := range l.windows {
		for recording := range 2 {
			b.progress.Say("  window %d of %d, recording: %t", n+1, l.windows, recording == 1)
			if recording == 1 {
				if err := record(ctx, server, http.MethodPost); err != nil {
					return lines, killed, err
				}
			}
			perPacket, share, err := l.cpuTime(ctx, server)
			if err != nil {
				return lines, killed, err
			}
			cpu[recording] += perPacket / float64(l.windows)
			shares[recording] += share / float64(l.windows)
			if recording == 1 {
				if err := record(ctx, server, http.MethodDelete); err != nil {
					return lines, killed, err
				}
			}
		}
	}
	counts, err := exposition.Scrape(ctx, "http://"+server.Admin+"/metrics")
	if err != nil {
		return lines, killed, err
	}
	bits := counts["volsfu_recording_written_bytes_total"] * 8
	lines = append(lines,
		claim.AtMost("recording: CPU time for each packet, more than without", 100*(cpu[1]/cpu[0]-1), "%", 5),
		claim.Stated("recording: CPU of the server without", shares[0], "% of a core"),
		claim.Stated("recording: CPU of the server with", shares[1], "% of a core"),
		claim.Stated("recording: rate", bits/1e6/(l.window*time.Duration(l.windows)).Seconds(), "Mbit/s"),
		claim.Exactly("recording: frames discarded",
			int64(counts[`volsfu_recording_lost_total{reason="discarded"}`]), "", 0),
		claim.Exactly("recording: packets not read in time",
			int64(counts[`volsfu_recording_lost_total{reason="overrun"}`]), "", 0),
	)
	if err := record(ctx, server, http.MethodPost); err != nil {
		return lines, killed, err
	}
	if err := lab.Pause(ctx, l.killed); err != nil {
		return lines, killed, err
	}
	killed = time.Now()
	server.Kill()
	return lines, killed, nil
}

// join lets the publishers and receivers join.
func (l *recordedLoad) join(ctx context.Context, room *testbed.Conference) error {
	for n := range l.publishers + l.receivers {
		part := testbed.Part{Room: recordedRoom, Identity: fmt.Sprintf("p%d", n), Seed: uint64(n),
			MinUplink: testbed.Everything}
		if n < l.publishers {
			part.Loads = []testbed.Load{{Name: "body", Tiles: 4, Qualities: 1, FrameBytes: l.frameBytes, Variation: 0.1,
				Rate: 30}}
		} else {
			part.Receive = true
		}
		p, err := room.Join(ctx, part)
		if err != nil {
			return err
		}
		select {
		case <-p.Connected:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// The estimates of the receivers rise to the rate within some seconds.
	return lab.Pause(ctx, l.window)
}

// cpuTime measures the CPU time of the server over one window: in seconds for each received packet, and in percent of a
// core.
func (l *recordedLoad) cpuTime(ctx context.Context, server *lab.ServerProgram) (perPacket, share float64, err error) {
	before, err := exposition.Scrape(ctx, "http://"+server.Admin+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	began, used := time.Now(), hotpath.ProcessTime(server.PID(), before)
	if err := lab.Pause(ctx, l.window); err != nil {
		return 0, 0, err
	}
	used = hotpath.ProcessTime(server.PID(), before) - used
	took := time.Since(began)
	after, err := exposition.Scrape(ctx, "http://"+server.Admin+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	const received = `volsfu_packets_total{direction="in",kind="media"}`
	packets := after[received] - before[received]
	if packets == 0 {
		return 0, 0, errors.New("the server has received no packets")
	}
	return used.Seconds() / packets, 100 * used.Seconds() / took.Seconds(), nil
}

// record begins or ends the recording of the room.
func record(ctx context.Context, server *lab.ServerProgram, method string) error {
	url := "http://" + server.Admin + "/admin/v1/rooms/" + recordedRoom + "/recording"
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, url, response.Status, text)
	}
	return nil
}

// replayedFrames checks the recording of a server that was killed at a time, replays it to another server that
// records, and compares both recordings.
func replayedFrames(
	ctx context.Context, b *bench, path, peer, dir string, killed time.Time,
) (lines []claim.Line, err error) {
	folder, err := latest(filepath.Join(dir, "first", recording.RoomFolder(recordedRoom)))
	if err != nil {
		return nil, err
	}
	first, err := readFrames(folder)
	if err != nil {
		return nil, err
	}
	lines = append(lines,
		claim.AtMost("kill -9: age of the last frame that is recorded", killed.Sub(first.last).Seconds(), "s", 1),
		claim.Exactly("kill -9: unreadable bytes before the end", first.damage.Skipped, "", 0),
		claim.Stated("kill -9: bytes of the last, incomplete record", float64(first.damage.Torn), ""),
		claim.Stated("kill -9: frames that are recorded", float64(len(first.frames)), ""),
	)
	server, err := lab.StartServer(ctx, path, "--recordings-directory", filepath.Join(dir, "second"),
		"--recordings-automatic", "all")
	if err != nil {
		return lines, err
	}
	defer server.Kill()
	b.progress.Say("  replaying %d frames", len(first.frames))
	var failures lab.Tail
	replay := exec.CommandContext(ctx, peer, "replay", folder, "--server", server.URL(), "--room", recordedRoom,
		"--keep-times", "--max-bitrate", "1Gbit", "--json")
	replay.Stderr = &failures
	said, err := replay.Output()
	if err != nil {
		return lines, fmt.Errorf("volpeer replay: %w: %s", err, failures.Text())
	}
	var counts struct {
		Unsent int64 `json:"frames_unsent"`
	}
	if err := json.Unmarshal(said, &counts); err != nil {
		return lines, fmt.Errorf("volpeer replay --json: %w", err)
	}
	if err := server.Stop(); err != nil {
		return lines, err
	}
	folder, err = latest(filepath.Join(dir, "second", recording.RoomFolder(recordedRoom)))
	if err != nil {
		return lines, err
	}
	second, err := readFrames(folder)
	if err != nil {
		return lines, err
	}
	var missing, different int64
	for name, sum := range first.frames {
		switch got, ok := second.frames[name]; {
		case !ok:
			missing++
		case got != sum:
			different++
		}
	}
	return append(lines,
		claim.Exactly("replay: frames that differ from the recorded ones", different, "", 0),
		claim.Exactly("replay: frames that are missing", missing, "", 0),
		claim.Exactly("replay: frames that could not be sent", counts.Unsent, "", 0),
	), nil
}

// latest returns the last recording in the folder of a room.
func latest(room string) (string, error) {
	entries, err := os.ReadDir(room)
	if err != nil {
		return "", err
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("%w in %s", recording.ErrNone, room)
	}
	return filepath.Join(room, entries[len(entries)-1].Name()), nil
}

// recordedFrames are the frames of a recording: a hash of each, by participant, tile and number, and the arrival of the
// last.
type recordedFrames struct {
	frames map[string][sha256.Size]byte
	last   time.Time
	damage recording.Damage
}

// readFrames reads a recording.
func readFrames(folder string) (r recordedFrames, err error) {
	reader, err := recording.Open(folder)
	if err != nil {
		return r, err
	}
	defer func() { _ = reader.Close() }()
	r.frames = make(map[string][sha256.Size]byte)
	participants := make(map[uint32]string)
	for {
		next, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			r.damage = reader.Damage()
			return r, nil
		case err != nil:
			return r, err
		}
		switch next := next.(type) {
		case *recording.Publication:
			participants[next.ID] = next.Participant
		case *recording.Frame:
			name := fmt.Sprintf("%s %d %d", participants[next.Publication], next.Tile, next.Number)
			hash := sha256.New()
			_, _ = fmt.Fprintf(hash, "%s %x ", next.Codec, next.Capture)
			_, _ = hash.Write(next.Data)
			r.frames[name] = [sha256.Size]byte(hash.Sum(nil))
			if next.At.After(r.last) {
				r.last = next.At
			}
		}
	}
}
