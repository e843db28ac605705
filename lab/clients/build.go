package clients

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// The programs that receive and publish with the C library.
//
//go:embed testdata/receive.c testdata/publish.c
var programsInC embed.FS

// run runs a command in a folder with more of the environment.
func run(ctx context.Context, folder string, environment []string, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), environment...)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, said)
	}
	return nil
}

// buildPeer builds volpeer without cgo for a system, from the checkout, and returns its path.
func buildPeer(ctx context.Context, folder, system, architecture string) (string, error) {
	tree, err := suite.SourceTree("", "cmd/volpeer")
	if err != nil {
		return "", err
	}
	goCommand, err := suite.GoCommand()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "volpeer-"+system+"-"+architecture)
	if system == "windows" {
		path += ".exe"
	}
	environment := []string{"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + architecture}
	return path, run(ctx, tree, environment, goCommand, "build", "-trimpath", "-buildvcs=false", "-o", path,
		"./cmd/volpeer")
}

// inC are the programs in C, in the folder of the C library.
type inC struct{ folder string }

// buildC builds the C library and the programs in C, from the checkout. The error wraps suite.ErrSource or
// lab.ErrUnable.
func buildC(ctx context.Context, folder string) (inC, error) {
	tree, err := suite.SourceTree("", "clients/c")
	if err != nil {
		return inC{}, err
	}
	goCommand, err := suite.GoCommand()
	if err != nil {
		return inC{}, err
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return inC{}, fmt.Errorf("%w: there is no C compiler: %w", lab.ErrUnable, err)
	}
	err = run(ctx, tree, []string{"CGO_ENABLED=1"}, goCommand, "build", "-buildmode=c-shared", "-tags", "portable",
		"-trimpath", "-buildvcs=false", "-o", filepath.Join(folder, "libvolsfu.so"), "./clients/c")
	if err != nil {
		return inC{}, err
	}
	for _, name := range []string{"receive", "publish"} {
		source, err := programsInC.ReadFile("testdata/" + name + ".c")
		if err != nil {
			return inC{}, err
		}
		file := filepath.Join(folder, name+".c")
		if err := os.WriteFile(file, source, 0o600); err != nil {
			return inC{}, err
		}
		err = run(ctx, tree, nil, compiler, "-std=c11", "-O1", "-Wall", "-Werror", "-I",
			filepath.Join(tree, "clients", "c"), "-o", filepath.Join(folder, name), file, "-L"+folder, "-lvolsfu",
			"-lm", "-Wl,-rpath="+folder)
		if err != nil {
			return inC{}, err
		}
	}
	return inC{folder}, nil
}

// command returns the command line of a program. An empty passphrase is left out.
func (c inC) command(program, url, room string, number int, secret string) []string {
	command := []string{filepath.Join(c.folder, program), url, room, strconv.Itoa(number)}
	if secret != "" {
		command = append(command, secret)
	}
	return command
}

// receiver receives in C.
func (c inC) receiver() receiver {
	return receiver{name: "C", command: func(url, room, secret string) []string {
		return c.command("receive", url, room, int(watching.Seconds()), secret)
	}}
}

// publisher publishes from C.
func (c inC) publisher() publisher {
	return fed("C", "zstd", func(url, room, secret string) []string {
		return c.command("publish", url, room, points, secret)
	})
}
