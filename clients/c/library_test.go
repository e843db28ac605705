package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/test/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		if folder := built.folder; folder != "" {
			_ = os.RemoveAll(folder)
		}
		os.Exit(status)
	}))
}

const (
	// buildTimeout allows for a machine that must compile everything and is busy.
	buildTimeout = 10 * time.Minute
	// generous is a time limit beyond any duration here.
	generous = 60 * time.Second
)

// built is the library, which is built once for all tests.
var built struct {
	once     sync.Once
	compiler string
	folder   string
	// absent is the reason why there is no library, err the error of the build.
	absent string
	err    error
}

// library builds the library and returns its folder and the C compiler. Without a compiler, it
// skips the test.
func library(t *testing.T) (folder, compiler string) {
	t.Helper()
	built.once.Do(func() { built.err = build() })
	if built.absent != "" {
		t.Skip("the C library is not tested: " + built.absent)
	}
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.folder, built.compiler
}

func build() error {
	if runtime.GOOS != "linux" {
		built.absent = "how programs find it is only known of Linux"
		return nil
	}
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	enabled, compiler, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if enabled != "1" {
		built.absent = "cgo is switched off, or there is no C compiler"
		return nil
	}
	if built.compiler, err = exec.LookPath(compiler); err != nil {
		built.absent = "there is no C compiler " + compiler
		return nil
	}
	if built.folder, err = os.MkdirTemp("", "volsfu-c-"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	target := filepath.Join(built.folder, "libvolsfu.so")
	out, err = exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-tags", "portable",
		"-trimpath", "-buildvcs=false", "-o",
		target, ".").
		CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// compile compiles a C source, with warnings as errors.
func compile(t *testing.T, source string, flags ...string) string {
	t.Helper()
	folder, compiler := library(t)
	program := filepath.Join(t.TempDir(), "program")
	args := []string{
		"-std=c11",
		"-O1",
		"-g",
		"-Wall",
		"-Wextra",
		"-Wpedantic",
		"-Werror",
		"-pthread",
		"-I.",
		"-o",
		program,
	}
	args = append(append(args, flags...), source, "-L"+folder, "-lvolsfu", "-lm", "-Wl,-rpath,"+folder)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, out)
	}
	return program
}

// sanitizer returns the flag for memory errors. If the compiler has none, it skips the test.
func sanitizer(t *testing.T) string {
	t.Helper()
	_, compiler := library(t)
	const flag = "-fsanitize=address"
	probe := exec.Command(compiler, flag, "-x", "c", "-o", filepath.Join(t.TempDir(), "probe"), "-")
	probe.Stdin = strings.NewReader("int main(void) { return 0; }\n")
	if err := probe.Run(); err != nil {
		t.Skipf("memory errors are not looked for: %s has no AddressSanitizer", compiler)
	}
	return flag
}

// run runs a program to its end and returns its output.
func run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	return out.String(), err
}

// open starts a server that ends with the test.
func open(t *testing.T) *testbed.Conference {
	t.Helper()
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestMisuse makes every detectable mistake.
func TestMisuse(t *testing.T) {
	library(t)
	for _, test := range []struct {
		name  string
		flags func(*testing.T) []string
	}{
		{"as it is", func(*testing.T) []string { return nil }},
		{"with AddressSanitizer", func(t *testing.T) []string { return []string{sanitizer(t)} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := compile(t, filepath.Join("testdata", "misuse.c"), test.flags(t)...)
			out, err := run(t, program, open(t).Server.URL())
			if err != nil || out != "all noticed\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestUseAfterRelease checks that a sanitizer detects a program that reads a frame after its
// release: the library does not hide such mistakes.
func TestUseAfterRelease(t *testing.T) {
	program := compile(t, filepath.Join("testdata", "after_release.c"), sanitizer(t))
	conference := open(t)
	publish(t, conference, "misuse", "")
	out, err := run(t, program, conference.Server.URL(), "misuse")
	if err == nil || !strings.Contains(out, "heap-use-after-free") {
		t.Errorf("%v, expected a complaint of heap-use-after-free\n%s", err, out)
	}
}

var (
	cBlock = regexp.MustCompile("(?ms)^```c\n(.*?)^```$")
	// cPart is a function that a program of README.md can call.
	cPart = regexp.MustCompile("(?ms)^```c example\n(.*?)^```$")
)

// TestExample runs the example of README.md.
func TestExample(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := cBlock.FindAllSubmatch(page, -1)
	if len(blocks) != 1 {
		t.Fatalf("README.md has %d blocks of C, expected one", len(blocks))
	}
	source := filepath.Join(t.TempDir(), "example.c")
	if err := os.WriteFile(source, blocks[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	program := compile(t, source)
	conference := open(t)
	gopher := publish(t, conference, "lab", "")
	out, err := run(t, program, conference.Server.URL())
	if lines := strings.Count(out, "gopher/desk frame "); err != nil || lines != 30 {
		t.Errorf("%v, %d frames, expected 30\n%s", err, lines, out)
	}
	if greetings := gopher.heard("carol", "greeting", []byte("good evening")); greetings == 0 {
		t.Error("nobody heard carol's greeting")
	}
}

// TestExampleOfCodecs compiles the function of README.md that decodes a frame, and lets it decode one.
func TestExampleOfCodecs(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	part := cPart.FindSubmatch(page)
	if part == nil {
		t.Fatal("README.md has no function that decodes")
	}
	source := filepath.Join(t.TempDir(), "example.c")
	program := fmt.Sprintf(`
#include <stdio.h>
#include "volsfu.h"
%s
int main(void) {
  float position[3] = {0.25f, 0.5f, 1};
  uint8_t color[3] = {1, 2, 3}, buffer[4096];
  volsfu_encoding encoding;
  VOLSFU_INIT(encoding);
  memcpy(encoding.codec, "zstd", 4);
  encoding.position_bits = 8;
  for (int axis = 0; axis < 3; axis++) encoding.box.max[axis] = 255;
  volsfu_points points;
  VOLSFU_INIT(points);
  points.positions = position;
  points.colors = color;
  points.count = 1;
  volsfu_frame frame;
  VOLSFU_INIT(frame);
  if (volsfu_encode(&encoding, &points, buffer, sizeof buffer, &frame.length) != VOLSFU_OK) return 1;
  memcpy(frame.codec, "zstd", 4);
  frame.data = buffer;
  show(&frame);
  return 0;
}
`, part[1])
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, compile(t, source))
	// The grid has whole metres.
	if err != nil || out != "1 points, the first at 0 1 1\n" {
		t.Errorf("%v: %q, expected one point at 0 1 1", err, out)
	}
}

// TestHeaderIsCPlusPlus compiles the header as C++.
func TestHeaderIsCPlusPlus(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("the header is not tried as C++: there is no g++")
	}
	probe := exec.Command(
		compiler,
		"-std=c++11",
		"-Wall",
		"-Wextra",
		"-Wpedantic",
		"-Werror",
		"-fsyntax-only",
		"-x",
		"c++",
		"-I.",
		"-",
	)
	probe.Stdin = strings.NewReader(
		"#include \"volsfu.h\"\nint main() { volsfu_config config; VOLSFU_INIT(config); return config.size == 0; }\n",
	)
	if out, err := probe.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
