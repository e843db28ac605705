package rstest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// Fake describes a substitute for the library: its functions do nothing, and there are no cameras.
type Fake struct {
	// Version is in the library's notation, 10000·major + 100·minor + patch.
	Version int
	// Shift is the offset of its option numbers from those of the real library.
	Shift int
	// Without lists the functions to omit.
	Without []string
	// Functions are C sources that replace functions, by name.
	Functions map[string]string
}

// Build makes a library file with the C compiler, or skips the test if there is none.
func (f Fake) Build(t testing.TB) string {
	t.Helper()
	needLoader(t)
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("skipped: no C compiler")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "fake.c"), filepath.Join(dir, "librealsense2.so")
	if err := os.WriteFile(source, []byte(f.source()), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-shared", "-fPIC", "-w", "-o", library, source).
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return library
}

func (f Fake) source() string {
	var c strings.Builder
	c.WriteString("#include <stddef.h>\n#include <stdlib.h>\n#include <unistd.h>\n")
	functions := map[string]string{
		"rs2_get_api_version": fmt.Sprintf("int rs2_get_api_version(void **e) { return %d; }", f.Version),
		"rs2_create_context":  "static int context; void *rs2_create_context(int v, void **e) { return &context; }",
		"rs2_option_to_string": names(
			"rs2_option_to_string",
			f.Shift,
			map[int]string{
				28: "Depth Units",
				36: "Filter Magnitude",
				37: "Filter Smooth Alpha",
				38: "Filter Smooth Delta",
				39: "Holes Fill",
			},
		),
		"rs2_stream_to_string": names("rs2_stream_to_string", 0, map[int]string{1: "Depth", 2: "Color"}),
		"rs2_format_to_string": names(
			"rs2_format_to_string",
			0,
			map[int]string{1: "Z16", 5: "RGB8", 6: "BGR8", 7: "RGBA8", 8: "BGRA8"},
		),
		"rs2_camera_info_to_string": names(
			"rs2_camera_info_to_string",
			0,
			map[int]string{0: "Name", 1: "Serial Number"},
		),
		"rs2_timestamp_domain_to_string": names(
			"rs2_timestamp_domain_to_string",
			0,
			map[int]string{0: "Hardware Clock", 1: "System Time", 2: "Global Time"},
		),
		"rs2_distortion_to_string": names(
			"rs2_distortion_to_string",
			0,
			map[int]string{
				0: "None",
				1: "Modified Brown Conrady",
				2: "Inverse Brown Conrady",
				3: "Ftheta",
				4: "Brown Conrady",
			},
		),
		"rs2_playback_status_to_string": names("rs2_playback_status_to_string", 0, map[int]string{3: "Stopped"}),
	}
	for name, function := range f.Functions {
		functions[name] = function
	}
	for _, name := range rs2.Functions() {
		function, ok := functions[name]
		switch {
		case slices.Contains(f.Without, name):
			continue
		case !ok:
			function = fmt.Sprintf("void *%s(void) { return NULL; }", name)
		}
		c.WriteString(function + "\n")
	}
	return c.String()
}

func names(function string, shift int, values map[int]string) string {
	var c strings.Builder
	fmt.Fprintf(&c, "const char *%s(int value) { switch (value) {", function)
	for value, name := range values {
		fmt.Fprintf(&c, "case %d: return %q;", value+shift, name)
	}
	c.WriteString("} return \"UNKNOWN\"; }")
	return c.String()
}
