package pipeline

import (
	"context"
	"errors"
	"os/exec"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/suite"
	"github.com/volsfu/volsfu/test/claim"
)

// sourced runs tests of the source tree.
type sourced struct {
	progress lab.Progress
	// folder is the start of the search for the source tree, from there upwards; empty is the working directory.
	folder string
	// name is the name of the line with the reason for a missing measurement.
	name string
	// draco reports whether the tests require Draco to build.
	draco bool
	tests suite.Part
}

func (s *sourced) run(ctx context.Context) ([]claim.Line, error) {
	if s.draco {
		if missing := missingDraco(ctx); missing != "" {
			return []claim.Line{claim.Skip(s.name, missing)}, nil
		}
	}
	tests := &suite.Tests{Progress: s.progress, Folder: s.folder, Title: s.name, Parts: []suite.Part{s.tests}}
	lines, err := tests.Run(ctx)
	if errors.Is(err, suite.ErrSource) {
		return []claim.Line{claim.Skip(s.name, err.Error())}, nil
	}
	return lines, err
}

// missingDraco returns the missing tool for a build with Draco, empty if no tool is missing. The repository's Makefile
// has the same test.
func missingDraco(ctx context.Context) string {
	for _, tool := range []string{"g++", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed, which building with Draco requires; make deps installs it"
		}
	}
	if exec.CommandContext(ctx, "pkg-config", "--exists", "draco").Run() != nil {
		return "Draco is not installed; make deps installs it"
	}
	return ""
}
