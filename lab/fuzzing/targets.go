package fuzzing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/volsfu/volsfu/test/fuzz"
)

// target is a package with fuzz tests.
type target struct {
	// importPath and dir are the package, path its path in the checkout.
	importPath, dir, path string
	tests                 []string
}

// name returns the name of a test in results.
func (t *target) name(test string) string { return t.path + "." + test }

// others are the fuzz tests of the product whose inputs are no network bytes: files and settings of operators and
// users, calls of a program that links the C library, and pure functions of trusted values. A package stands for all
// its tests. Every other fuzz test of the product counts.
var others = []string{
	"clients/c.FuzzChoice", "clients/c.FuzzConfig", "clients/c.FuzzHandles", "clients/c.FuzzLiveSession",
	"cmd/volpeer/internal/choice",
	"internal/allocate",
	"internal/config",
	"internal/netem", "internal/netem/router",
	"internal/netfn/edge.FuzzParse",
	"internal/peer/opus", "internal/peer/picture.FuzzRead", "internal/peer/viewtrace",
	"internal/webhook.FuzzQueue",
	"pkg/capture/board", "pkg/capture/cwipc", "pkg/capture/depth", "pkg/capture/glb", "pkg/capture/journal",
	"pkg/capture/kinect",
	"pkg/capture/realsense", "pkg/capture/rgbd", "pkg/capture/sequence",
	"pkg/codec/draco.FuzzEncode", "pkg/codec/ladder",
	"pkg/frametimes.FuzzReadCSV", "pkg/frametimes.FuzzReadJSONL",
	"pkg/pointcloud.FuzzReadPLY",
	"pkg/recording.FuzzReader",
	"pkg/token.FuzzParseKey",
}

// network returns the packages with their tests of network bytes. Packages without such a test are left out.
func network(all []target) []target {
	var chosen []target
	for _, t := range all {
		if slices.Contains(others, t.path) {
			continue
		}
		t.tests = slices.DeleteFunc(slices.Clone(t.tests),
			func(test string) bool { return slices.Contains(others, t.name(test)) })
		if len(t.tests) > 0 {
			chosen = append(chosen, t)
		}
	}
	return chosen
}

// list returns the packages of the product with fuzz tests, in the order of their paths.
func list(ctx context.Context, tree string) ([]target, error) {
	command := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./...")
	command.Dir = tree
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []target
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("output of go list: %w", err)
		}
		path, err := filepath.Rel(tree, p.Dir)
		if err != nil {
			return nil, err
		}
		t := target{importPath: p.ImportPath, dir: p.Dir, path: filepath.ToSlash(path)}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			names, err := fuzz.Tests(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			t.tests = append(t.tests, names...)
		}
		if len(t.tests) > 0 {
			all = append(all, t)
		}
	}
}
