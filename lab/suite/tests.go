package suite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Tests is a check that runs tests of the source tree.
type Tests struct {
	Progress lab.Progress
	// Folder is the start of the search for the source tree, from there upwards; empty is the working directory.
	Folder string
	// Title is the name of the check.
	Title string
	Parts []Part
}

// Part is a run of tests of one package.
type Part struct {
	// Package is a path in the source tree. Pattern selects the tests of the package, as for go test -run. Arguments
	// are for the flags of the tests.
	Package, Pattern string
	Arguments        []string
	// Limit bounds the time of the tests.
	Limit time.Duration
	// Counted is the name of the figure with the number of passed tests; empty means no such figure.
	Counted string
}

// Name implements lab.Check.
func (t *Tests) Name() string { return t.Title }

// Run implements lab.Check. Errors wrap ErrSource if the tests cannot run, and ErrTests if they fail.
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
	// The Go command waits until its output is read.
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

// stopPatience bounds the time of the Go command to end after an interruption.
const stopPatience = 10 * time.Second

// command returns the Go command that runs the tests in the source tree.
func (t *Tests) command(ctx context.Context, part Part) (*exec.Cmd, error) {
	tree, err := SourceTree(t.Folder, part.Package)
	if err != nil {
		return nil, err
	}
	command, err := GoCommand()
	if err != nil {
		return nil, err
	}
	// The race detector is turned off explicitly, because the environment may turn it on.
	arguments := []string{"test", "-json", "-race=false", "-count=1", "-timeout", part.Limit.String(), "-run",
		part.Pattern, "./" + part.Package}
	if len(part.Arguments) > 0 {
		arguments = append(append(arguments, "-args"), part.Arguments...)
	}
	cmd := exec.CommandContext(ctx, command, arguments...)
	cmd.Dir, cmd.WaitDelay = tree, stopPatience
	endWhole(cmd)
	return cmd, nil
}
