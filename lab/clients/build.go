package clients

import (
	"context"
	_ "embed" // embeds the receiver in C
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
)

// receiverSource is the program that receives and decodes with the C library.
//
//go:embed testdata/receive.c
var receiverSource []byte

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

// buildReceiver builds the C library and the receiver in C, from the checkout. The error wraps suite.ErrSource or
// lab.ErrUnable.
func buildReceiver(ctx context.Context, folder string) (string, error) {
	tree, err := suite.SourceTree("", "clients/c")
	if err != nil {
		return "", err
	}
	goCommand, err := suite.GoCommand()
	if err != nil {
		return "", err
	}
	compiler, err := exec.LookPath("cc")
	if err != nil {
		return "", fmt.Errorf("%w: there is no C compiler: %w", lab.ErrUnable, err)
	}
	source, path := filepath.Join(folder, "receive.c"), filepath.Join(folder, "receive")
	if err := os.WriteFile(source, receiverSource, 0o600); err != nil {
		return "", err
	}
	err = run(ctx, tree, []string{"CGO_ENABLED=1"}, goCommand, "build", "-buildmode=c-shared", "-tags", "portable",
		"-trimpath", "-buildvcs=false", "-o", filepath.Join(folder, "libvolsfu.so"), "./clients/c")
	if err != nil {
		return "", err
	}
	return path, run(ctx, tree, nil, compiler, "-std=c11", "-O1", "-Wall", "-Werror", "-I",
		filepath.Join(tree, "clients", "c"), "-o", path, source, "-L"+folder, "-lvolsfu", "-Wl,-rpath="+folder)
}
