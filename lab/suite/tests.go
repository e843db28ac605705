package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Tests is a check that runs tests of the source tree.
type Tests struct {
	Progress lab.Progress
	// Folder is where the source tree is looked for, from there upwards; empty is the working directory.
	Folder string
	// Title is the name of the check.
	Title string
	Parts []Part
}

// Part is a run of tests of one package.
type Part struct {
	// Package is a path in the source tree; Pattern says which of its tests run, as go test -run takes it. Arguments are those of the tests' own flags.
	Package, Pattern string
	Arguments        []string
	// Limit is how long they may take.
	Limit time.Duration
	// Counted says that how many tests hold is a figure, under this name; empty is none.
	Counted string
}

// Name implements lab.Check.
func (t *Tests) Name() string { return t.Title }

// Run implements lab.Check. Errors wrap ErrSource where the tests cannot be run, and ErrTests where they fail.
func (t *Tests) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	var failures []error
	for _, part := range t.Parts {
		some, err := t.run(ctx, part)
		lines = append(lines, some...)
		if err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil || errors.Is(err, ErrSource) {
			break
		}
	}
	return lines, errors.Join(failures...)
}

func (t *Tests) run(ctx context.Context, part Part) ([]claim.Line, error) {
	cmd, err := t.command(ctx, part)
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%w of %s: %w", ErrTests, part.Package, err)
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w of %s: %w", ErrTests, part.Package, err)
	}
	o := newOutcome()
	unread := o.read(output, func(l claim.Line) { t.Progress.Say("  %s", l) })
	// The Go command waits until somebody takes what it prints.
	_, _ = io.Copy(io.Discard, output)
	status := cmd.Wait()
	lines := o.lines(part.Counted)
	switch {
	case ctx.Err() != nil:
		return lines, ctx.Err()
	case unread != nil:
		return lines, fmt.Errorf("%w of %s: output cannot be read: %w", ErrTests, part.Package, unread)
	}
	if err := o.failure(status, strings.TrimSpace(complaints.String())); err != nil {
		return lines, fmt.Errorf("%w of %s: %w", ErrTests, part.Package, err)
	}
	return lines, nil
}

// stopPatience is how long the Go command may take to end when it is told to.
const stopPatience = 10 * time.Second

// command is the Go command that runs the tests in the source tree.
func (t *Tests) command(ctx context.Context, part Part) (*exec.Cmd, error) {
	folder := t.Folder
	if folder == "" {
		var err error
		if folder, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
	}
	tree, err := sourceTree(folder, part.Package)
	if err != nil {
		return nil, err
	}
	command, err := goCommand()
	if err != nil {
		return nil, err
	}
	// The race detector is turned off by name, since the environment may turn it on.
	arguments := []string{"test", "-json", "-race=false", "-count=1", "-timeout", part.Limit.String(), "-run", part.Pattern, "./" + part.Package}
	if len(part.Arguments) > 0 {
		arguments = append(append(arguments, "-args"), part.Arguments...)
	}
	cmd := exec.CommandContext(ctx, command, arguments...)
	cmd.Dir, cmd.WaitDelay = tree, stopPatience
	endWhole(cmd)
	return cmd, nil
}
