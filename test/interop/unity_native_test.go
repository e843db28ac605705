package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nativeLibrary builds the C library and returns its folder. It skips the test without a C compiler.
func nativeLibrary(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("the C library is not tested: there is no C compiler")
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-buildmode=c-shared", "-tags", "portable", "-trimpath", "-buildvcs=false",
		"-o", filepath.Join(folder, "libvolsfu.so"), "./clients/c")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return folder
}

// nativeCommand is a program of the Unity package's core that uses the C library.
func nativeCommand(t *testing.T, core, library string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "mono", append([]string{core, "native"}, args...)...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library)
	return cmd
}

// TestUnityNative has programs in C# use the C library in their process: the structs have the sizes of C, participants
// hear each other and exchange messages, and frames are decoded without managed memory for each frame.
func TestUnityNative(t *testing.T) {
	core, library := unityCore(t), nativeLibrary(t)
	conference := openConference(t, "127.0.0.1:0")
	defer conference.Close()
	url := conference.Server.URL()

	out, err := nativeCommand(t, core, library, "sizes").CombinedOutput()
	if want := structSizes(t); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("%v: the sizes in C# are %s, in C %s", err, out, want)
	}
	out, err = nativeCommand(t, core, library, "talk", url, "talk", "a passphrase").CombinedOutput()
	if err != nil || string(out) != "sound\nmessages\nattributes\njoining\n" {
		t.Errorf("talk: %v\n%s", err, out)
	}
	receiveNatively(t, core, library, url)
}

// structSizes returns the sizes of the structs of volsfu.h that the library does not check.
func structSizes(t *testing.T) string {
	t.Helper()
	names := []string{"volsfu_box", "volsfu_tile", "volsfu_quality", "volsfu_choice"}
	source := "#include <stdio.h>\n#include \"volsfu.h\"\nint main(void) {\n"
	for _, name := range names {
		source += fmt.Sprintf("  printf(\"%s %%zu \", sizeof(%s));\n", name, name)
	}
	program := filepath.Join(t.TempDir(), "sizes")
	compile := exec.Command("cc", "-x", "c", "-I", filepath.Join("..", "..", "clients", "c"), "-o", program, "-")
	compile.Stdin = strings.NewReader(source + "}\n")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// receiveNatively has C# decode what C# publishes.
func receiveNatively(t *testing.T, core, library, url string) {
	t.Helper()
	const points, least = 5000, 5
	publisher := nativeCommand(t, core, library, "publish", url, "frames", "zstd", strconv.Itoa(points))
	stdin, err := publisher.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := publisher.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stdin.Close()
		if err := publisher.Wait(); err != nil {
			t.Errorf("the publisher ended with %v", err)
		}
	}()
	var got struct {
		Decoded     int64 `json:"frames_decoded"`
		Undecodable int64 `json:"frames_undecodable"`
		Points      int64 `json:"points"`
		Counted     int64 `json:"frames_counted"`
		Allocated   int64 `json:"allocated_bytes"`
	}
	// On a busy machine the first frames can come late.
	for seconds := 4; ; seconds *= 2 {
		out, err := nativeCommand(t, core, library, "receive", url, "frames", strconv.Itoa(seconds)).Output()
		if err != nil {
			t.Fatalf("receive: %v", err)
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got.Counted >= least || time.Duration(seconds)*time.Second > patience {
			break
		}
	}
	if got.Counted < least || got.Undecodable != 0 || got.Points != points*got.Decoded {
		t.Errorf("%+v, expected frames of %d points", got, points)
	}
	if got.Allocated != 0 {
		t.Errorf("%d bytes of managed memory for %d frames, expected none", got.Allocated, got.Counted)
	}
}
