package clients

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// hostSystem and hostArchitecture are those of this machine.
const (
	hostSystem       = runtime.GOOS
	hostArchitecture = runtime.GOARCH
)

// targets are the systems of users, by GOOS and GOARCH.
var targets = [][2]string{{"windows", "amd64"}, {"windows", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// systems builds volpeer for other systems. If Wine is installed, the program for Windows watches a publisher of Draco.
func systems(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	folder, err := os.MkdirTemp("", "volsfu-systems-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var windows string
	for _, target := range targets {
		b.progress.Say("  building for %s/%s", target[0], target[1])
		path, err := buildPeer(ctx, folder, target[0], target[1])
		if err != nil {
			return lines, err
		}
		file, err := os.Stat(path)
		if err != nil {
			return lines, err
		}
		lines = append(lines, claim.Stated(fmt.Sprintf("volpeer for %s/%s", target[0], target[1]),
			float64(file.Size())/1e6, "MB"))
		if windows == "" {
			windows = path
		}
	}
	line, err := underWine(ctx, b, folder, windows)
	return append(lines, line), err
}

// findWine returns Wine's program, which Debian installs outside of the path.
func findWine() (string, bool) {
	for _, name := range []string{"wine64", "/usr/lib/wine/wine64"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// underWine has volpeer for Windows watch a publisher of Draco.
func underWine(ctx context.Context, b *bench, folder, program string) (line claim.Line, err error) {
	const name = "draco from volpeer to volpeer for Windows"
	wine, found := findWine()
	if !found {
		return claim.Skip(name, "wine64 is not installed"), nil
	}
	under := []string{"env", "WINEPREFIX=" + filepath.Join(folder, "wine"), "WINEDEBUG=-all", wine}
	b.progress.Say("  starting the program for Windows under Wine")
	if err := run(ctx, folder, nil, append(under, program, "--version")...); err != nil {
		// Programs of Go need bcryptprimitives.dll, which Wine 8 does not have.
		return claim.Skip(name, fmt.Sprintf("the program does not start under this Wine: %.300s", err)), ctx.Err()
	}
	volsfu, err := b.program("volsfu")
	if err != nil {
		return line, err
	}
	volpeer, err := b.program("volpeer")
	if err != nil {
		return line, err
	}
	server, err := lab.StartServer(ctx, volsfu)
	if err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	in := watcher("volpeer for Windows", "windows", program)
	command := in.command
	in.command = func(url, room, secret string) []string {
		return append(slices.Clone(under), command(url, room, secret)...)
	}
	cells, err := row(ctx, server, peer("volpeer", volpeer, "draco"), []receiver{in}, "")
	if err != nil {
		return line, err
	}
	return cells[0], nil
}
