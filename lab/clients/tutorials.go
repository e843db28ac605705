package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// tutorialPages are the tutorials, relative to the checkout.
const tutorialPages = "docs/tutorials/*.md"

// tutorialTime is the time that a reader who only copies commands needs at most.
const tutorialTime = 3 * time.Minute

// tutorials runs the commands of every tutorial, each in a folder and a network of its own.
func tutorials(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	tree, err := suite.SourceTree("", "docs/tutorials")
	if err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(tree, tutorialPages))
	if err != nil {
		return nil, err
	}
	var programs []string
	for _, name := range []string{"volsfu", "volpeer"} {
		program, err := b.program(name)
		if err != nil {
			return nil, err
		}
		programs = append(programs, filepath.Dir(program))
	}
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	programs = append(programs, filepath.Dir(own))
	for _, page := range pages {
		b.progress.Say("  running the commands of %s", filepath.Base(page))
		lines = append(lines, tutorial(ctx, page, programs))
	}
	return lines, ctx.Err()
}

// tutorial runs the commands of a page and returns the minutes that they take.
func tutorial(ctx context.Context, page string, programs []string) claim.Line {
	title := "commands of docs/tutorials/" + filepath.Base(page)
	text, err := os.ReadFile(page)
	if err != nil {
		return claim.Fail(title, err.Error())
	}
	folder, err := os.MkdirTemp("", "volsfu-tutorial-")
	if err != nil {
		return claim.Fail(title, err.Error())
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctx, cancel := context.WithTimeout(ctx, tutorialTime)
	defer cancel()
	begun := time.Now()
	said, err := runPage(ctx, commands(string(text)), folder, programs)
	if err != nil {
		return claim.Fail(title, fmt.Sprintf("%v: %.400s", err, said))
	}
	return claim.AtMost(title, time.Since(begun).Minutes(), "min", tutorialTime.Minutes())
}

// runPage runs a script in a network namespace with a loopback interface only, and ends all of its processes with it.
func runPage(ctx context.Context, script, folder string, programs []string) (string, error) {
	script = "set -eu\n" + script + "\nkill $(jobs -p) 2>/dev/null || true\n"
	cmd := exec.CommandContext(ctx, "unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c",
		"ip link set lo up && exec bash -c \"$1\"", "bash", script)
	cmd.Dir = folder
	path := strings.Join(append(programs, os.Getenv("PATH")), string(os.PathListSeparator))
	cmd.Env = append(os.Environ(), "PATH="+path, "VOLPEER_TOKEN=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return string(said), err
}

// commands returns the commands of a page, the blocks marked sh, in their order.
func commands(page string) string {
	var script strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		switch {
		case strings.TrimRight(line, "\n") == "```sh":
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside:
			script.WriteString(line)
		}
	}
	return script.String()
}
