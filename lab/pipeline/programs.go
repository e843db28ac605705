package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// programs are the programs of the repository beside this one.
type programs struct{ volpeer, volsfu, vollab string }

func findPrograms() (p programs, err error) {
	if p.volpeer, err = lab.FindProgram("volpeer"); err != nil {
		return p, err
	}
	if p.volsfu, err = lab.FindProgram("volsfu"); err != nil {
		return p, err
	}
	p.vollab, err = lab.FindProgram("vollab")
	return p, err
}

// notBuiltIn is the beginning of a program's message if the program was built without Draco.
const notBuiltIn = "draco is not built in"

// lacksDraco returns the reason for which the programs cannot code with Draco, empty if they can: vollab codes a few
// points. volpeer and vollab are built in the same way.
func (p programs) lacksDraco(ctx context.Context) (string, error) {
	program, err := lab.StartProgram("vollab codec", p.vollab, nil, "codec", "--codecs", "draco", "--points", "100",
		"--repeats", "1", "--speeds", "10")
	if err != nil {
		return "", err
	}
	err = finish(ctx, program)
	if said := program.LastOutput(); err != nil && strings.Contains(said, notBuiltIn) {
		_, why, _ := strings.Cut(said, notBuiltIn)
		return "vollab: " + notBuiltIn + why, nil
	}
	return "", err
}

// finish waits for a program, which ends with the context.
func finish(ctx context.Context, p *lab.Program) error {
	err := p.Wait(ctx)
	if ctx.Err() != nil {
		_ = p.Stop()
	}
	return err
}

// room is the room of all programs.
const room = "lab"

// scene is a server, a publisher and a watcher.
type scene struct {
	// publish are the publisher's flags in addition to the flags of the room.
	publish []string
	seconds int
	// server are the server's flags.
	server []string
}

// warm are the flags of a server that requests everything, so that publishers encode qualities without subscribers.
var warm = []string{"--rooms-suppression-policy", "warm"}

// shown is the result of a scene.
type shown struct {
	published published
	watched   watched
}

// published is the output of volpeer publish --json, with the fields that the checks need.
type published struct {
	FramesCaptured  int64 `json:"frames_captured"`
	FramesPublished int64 `json:"frames_published"`
	FramesDropped   int64 `json:"frames_dropped"`
	DroppedFor      struct {
		CaptureFailed int64 `json:"capture_failed"`
		SourceBehind  int64 `json:"source_behind"`
		Superseded    int64 `json:"superseded"`
		TooLate       int64 `json:"too_late"`
	} `json:"frames_dropped_for"`
	FramesIdle        int64       `json:"frames_idle"`
	TileFramesLate    int64       `json:"tile_frames_late"`
	TileFramesDropped int64       `json:"tile_frames_dropped"`
	Encode            percentiles `json:"encode_ms"`
	Points            float64     `json:"points_per_frame"`
}

// watched is the output of volpeer watch --json, with the fields that the checks need.
type watched struct {
	Undecodable  int64       `json:"frames_undecodable"`
	Missing      int64       `json:"frames_missing"`
	Skipped      int64       `json:"frames_skipped"`
	FPS          float64     `json:"fps"`
	BitrateBPS   float64     `json:"bitrate_bps"`
	Latency      percentiles `json:"latency_ms"`
	Publications []tile      `json:"publications"`
}

// tile has the figures of one tile.
type tile struct {
	Participant string  `json:"participant"`
	Decoded     int64   `json:"frames_decoded"`
	Undecodable int64   `json:"frames_undecodable"`
	FPS         float64 `json:"fps"`
}

// percentiles are in milliseconds, null without measurements.
type percentiles struct {
	P50, P95, P99, Max *float64
}

// play runs the scene until the watcher's time is over.
func (s scene) play(ctx context.Context, p programs) (outcome shown, err error) {
	server, err := lab.StartServer(ctx, p.volsfu, s.server...)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	publisher, err := lab.StartProgram("volpeer publish", p.volpeer, nil,
		append(entering("publish", server, "alice"), s.publish...)...)
	if err != nil {
		return outcome, err
	}
	err = s.watch(ctx, p, server, &outcome.watched)
	if err = errors.Join(err, publisher.Stop()); err != nil {
		return outcome, err
	}
	return outcome, read(publisher, &outcome.published)
}

func (s scene) watch(ctx context.Context, p programs, server *lab.ServerProgram, into *watched) error {
	watcher, err := lab.StartProgram("volpeer watch", p.volpeer, nil,
		append(entering("watch", server, "carol"), "--seconds", strconv.Itoa(s.seconds))...)
	if err != nil {
		return err
	}
	if err := finish(ctx, watcher); err != nil {
		return err
	}
	return read(watcher, into)
}

// entering returns a command of volpeer with the flags to enter the room and to end with a summary.
func entering(command string, server *lab.ServerProgram, identity string) []string {
	return []string{command, "--server", server.URL(), "--room", room, "--identity", identity, "--json"}
}

// read reads the summary of a program that has ended.
func read(p *lab.Program, into any) error {
	if err := json.Unmarshal(p.Output(), into); err != nil {
		return fmt.Errorf("%w volpeer: its summary cannot be read: %w", lab.ErrProgram, err)
	}
	return nil
}

// line returns the percentiles as lines.
func (p percentiles) lines(name string) (lines []claim.Line) {
	for _, l := range []struct {
		name  string
		value *float64
	}{{"p50", p.P50}, {"p95", p.P95}, {"p99", p.P99}} {
		if l.value != nil {
			lines = append(lines, claim.Information(name+", "+l.name, *l.value, "ms"))
		}
	}
	return lines
}

// median returns the 50th percentile, or NaN without measurements, which meets no target.
func (p percentiles) median() float64 {
	if p.P50 == nil {
		return notMeasured
	}
	return *p.P50
}
