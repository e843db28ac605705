package build

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgram builds the smallest program as make build does and runs both forms of the command.
func TestProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "volnet")
	flags := "-X main.version=v1.2.3 -X github.com/volsfu/volsfu/internal/build.commit=abc123 " +
		"-X github.com/volsfu/volsfu/internal/build.date=2026-11-27"
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags", flags, "-o", program, "./cmd/volnet")
	command.Dir = filepath.Join("..", "..")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, argument := range []string{"version", "--version"} {
		said, err := exec.Command(program, argument).Output()
		if want := "volnet v1.2.3 (commit abc123, 2026-11-27)"; err != nil || strings.TrimSpace(string(said)) != want {
			t.Errorf("%s prints %q, %v, expected %q", argument, said, err, want)
		}
	}
}

func TestLine(t *testing.T) {
	if line := Line("volsfu", "v1.2.3"); !strings.HasPrefix(line, "volsfu v1.2.3") {
		t.Errorf("got %q", line)
	}
}
