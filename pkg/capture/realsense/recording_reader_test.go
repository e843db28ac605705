package realsense

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rstest"
)

// TestALibraryThatDoesNotBearAFile uses libraries that end the process, or hang, when they open a
// recording.
func TestALibraryThatDoesNotBearAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "damaged.bag")
	if err := os.WriteFile(path, []byte("what a library may stumble over"), 0o600); err != nil {
		t.Fatal(err)
	}
	const open = "rs2_context_add_device"
	tests := []struct {
		name, function string
		says           string
	}{
		{
			"crash",
			"void *" + open + "(void *c, const char *f, void **e) { *(volatile int *)NULL = 1; return NULL; }",
			"crashed",
		},
		{"exit", "void *" + open + "(void *c, const char *f, void **e) { exit(0); }", "crashed"},
		{
			"hang",
			"void *" + open + "(void *c, const char *f, void **e) { for (;;) pause(); }",
			"did not finish reading",
		},
		{
			"noise",
			"void *" + open + "(void *c, const char *f, void **e) { write(1, \"HHHH\\377\\377\", 6); exit(0); }",
			"expected at most",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig()
			config.Library = rstest.Fake{Version: 25901, Functions: map[string]string{open: test.function}}.Build(t)
			limit := time.Minute
			if test.name == "hang" {
				limit = 500 * time.Millisecond
			}
			_, err := openRecordingReader(config, path, limit)
			if !errors.Is(err, ErrRecording) || !strings.Contains(err.Error(), test.says) ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("got %v, expected %v that says %q and names the file", err, ErrRecording, test.says)
			}
		})
	}
}

// TestACrashWhilePlaying uses a process that ends between two pictures.
func TestACrashWhilePlaying(t *testing.T) {
	config, library := config(t), rstest.Library(t)
	path := filepath.Join(t.TempDir(), "wall.db3")
	rstest.Wall(10).Record(t, library, path, 0)
	r := openTest(t, path, 0, &leapClock{time.Now()}, config)
	var take Take
	read(t, r, &take)
	if err := r.readers[0].child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 10_000 { // pictures in the pipe come first
		if err := r.Read(t.Context(), &take); err != nil {
			again := r.Read(t.Context(), &take)
			if !errors.Is(err, ErrRecording) || !errors.Is(again, ErrRecording) ||
				!strings.Contains(err.Error(), "crashed") {
				t.Errorf("got %v, then %v", err, again)
			}
			return
		}
	}
	t.Error("the recording plays on after its player was killed")
}

func TestRecordingWithoutLibrary(t *testing.T) {
	config := DefaultConfig()
	config.Library = filepath.Join(t.TempDir(), "none.so")
	if _, err := OpenRecording(t.TempDir(), 0, &leapClock{time.Now()}, config); !errors.Is(err, rs2.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := OpenCameras(config); !errors.Is(err, rs2.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	config.Library = rstest.Fake{Version: 25901}.Build(t)
	if _, err := OpenCameras(config); !errors.Is(err, ErrNoCamera) {
		t.Errorf("without a camera: got %v", err)
	}
}
