package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/mono"
)

const (
	// people publish personPoints points each, personRate times per second.
	people, personPoints, personRate = 3, 30_000, 30
	// leastDecoded is the expected share of frames in percent.
	leastDecoded = 99.9
	// mostGrowth is the growth of the resident memory, in MB, which counts as flat: the garbage collector of the
	// library and buffers of sockets grow by a few MB after the first minute.
	mostGrowth = 16
)

// csharp is the core of the Unity package, compiled with its tests for Mono, in a folder with the C library.
type csharp struct{ folder, program string }

// buildCSharp compiles the core beside the library that buildC has built into the folder. The error wraps
// lab.ErrUnable without Mono.
func buildCSharp(ctx context.Context, folder string) (csharp, error) {
	tree, err := suite.SourceTree("", "clients/unity")
	if err != nil {
		return csharp{}, err
	}
	c := csharp{folder, filepath.Join(folder, "core.exe")}
	err = mono.Compile(ctx, c.program,
		"-recurse:"+filepath.Join(tree, "clients", "unity", "Runtime", "Core", "*.cs"),
		"-recurse:"+filepath.Join(tree, "clients", "unity", "Tests", "Core", "*.cs"))
	if errors.Is(err, mono.ErrMissing) {
		err = fmt.Errorf("%w: %w", lab.ErrUnable, err)
	}
	return c, err
}

// command returns the command line of a program of the core.
func (c csharp) command(args ...string) []string {
	return append([]string{"env", "LD_LIBRARY_PATH=" + c.folder, "mono", c.program, "native"}, args...)
}

// openCSharp compiles the core for the matrix.
func openCSharp(ctx context.Context, folder string) (receiver, []publisher, error) {
	in := receiver{name: "C#"}
	c, err := buildCSharp(ctx, folder)
	if err != nil {
		return in, nil, err
	}
	in.command = func(url, room, secret string) []string {
		return c.command("receive", url, room, strconv.Itoa(int(watching.Seconds())), secret)
	}
	out := fed(in.name, "zstd", func(url, room, secret string) []string {
		return c.command("publish", url, room, "zstd", strconv.Itoa(points), secret)
	})
	return in, []publisher{out}, nil
}

// threePeople has C# decode three people for the duration of the claim.
func threePeople(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	volsfu, err := b.program("volsfu")
	if err != nil {
		return nil, err
	}
	volpeer, err := b.program("volpeer")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "volsfu-csharp-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if _, err := buildC(ctx, folder); err != nil {
		return nil, err
	}
	core, err := buildCSharp(ctx, folder)
	if err != nil {
		return nil, err
	}
	server, err := lab.StartServer(ctx, volsfu)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	for i := range people {
		cmd := exec.Command(volpeer, "publish", "--server", server.URL(), "--room", "people", "--identity",
			fmt.Sprintf("person-%d", i+1), "--codec", "zstd", "--tiles", "1", "--points", strconv.Itoa(personPoints),
			"--qualities", "only=100%", "--fps", strconv.Itoa(personRate))
		cmd.Env = environment("")
		person, err := lab.StartCommand("volpeer publish", cmd, nil)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, person.Stop()) }()
	}
	b.progress.Say("  receiving three people in C# for %v", b.options.Receiving)
	command := core.command("receive", server.URL(), "people", strconv.Itoa(int(b.options.Receiving.Seconds())))
	running, err := lab.StartCommand("C# receive", exec.CommandContext(ctx, command[0], command[1:]...), nil)
	if err != nil {
		return nil, err
	}
	defer running.Kill()
	if err := running.Wait(ctx); err != nil {
		return nil, err
	}
	return peopleLines(running.Output(), b.options.Receiving)
}

// peopleLines returns the lines of a summary of the receiver in C#.
func peopleLines(summary []byte, lasted time.Duration) ([]claim.Line, error) {
	var s struct {
		Decoded     int64 `json:"frames_decoded"`
		Undecodable int64 `json:"frames_undecodable"`
		Points      int64 `json:"points"`
		Counted     int64 `json:"frames_counted"`
		Allocated   int64 `json:"allocated_bytes"`
		Collections int64 `json:"collections"`
		Begin       int64 `json:"resident_begin"`
		End         int64 `json:"resident_end"`
		Statistics  struct {
			Totals struct {
				Undecodable int64 `json:"frames_undecodable"`
				Missing     int64 `json:"frames_missing"`
				Dropped     int64 `json:"frames_dropped"`
				ByServer    int64 `json:"frames_dropped_by_server"`
			} `json:"totals"`
		} `json:"statistics"`
	}
	if err := json.Unmarshal(summary, &s); err != nil {
		return nil, fmt.Errorf("the receiver in C# prints no summary: %w", err)
	}
	if s.Counted == 0 {
		return []claim.Line{claim.Fail("frames decoded in C#", "no frame was decoded after the first tenth")}, nil
	}
	t := s.Statistics.Totals
	all := s.Decoded + s.Undecodable + t.Undecodable + t.Missing + t.Dropped + t.ByServer
	nominal := lasted.Seconds() * people * personRate
	return []claim.Line{
		claim.AtLeast("frames decoded in C#, of all that were sent", 100*float64(s.Decoded)/float64(all), "%",
			leastDecoded),
		claim.Information("frames decoded in C#, of 30 per second and person, with the time to connect",
			100*float64(s.Decoded)/nominal, "%"),
		claim.Information("points in a frame", float64(s.Points)/float64(s.Decoded), ""),
		claim.Exactly("managed memory allocated for frames in C#", s.Allocated, "B", 0),
		claim.Exactly("garbage collections in C#", s.Collections, "", 0),
		claim.AtMost("growth of resident memory", float64(s.End-s.Begin)/1e6, "MB", mostGrowth),
	}, nil
}
