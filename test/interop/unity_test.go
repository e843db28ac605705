package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/mono"
)

// unityPackage is the folder of the Unity package.
var unityPackage = filepath.Join("..", "..", "clients", "unity")

// unityCore compiles the package's core with its tests and returns the path of the program. It skips the test if Mono
// is missing.
func unityCore(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "core.exe")
	compileUnity(t, program, filepath.Join("Runtime", "Core"), filepath.Join("Tests", "Core"))
	return program
}

// compileUnity compiles folders of the package. It skips the test if Mono is missing.
func compileUnity(t *testing.T, output string, folders ...string) {
	t.Helper()
	var files []string
	for _, folder := range folders {
		files = append(files, unityFiles(t, filepath.Join(unityPackage, folder), ".cs")...)
	}
	if err := mono.Compile(t.Context(), output, files...); errors.Is(err, mono.ErrMissing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
}

// unityLibraries are the packages of Unity that contain the libraries to which assembly definitions refer.
var unityLibraries = map[string]string{"Newtonsoft.Json.dll": "com.unity.nuget.newtonsoft-json"}

// unityFiles returns the files below a folder with the given suffix, except those in hidden folders, which Unity
// ignores.
func unityFiles(t *testing.T, folder, ending string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasSuffix(path, "~") && path != folder:
			return filepath.SkipDir
		case strings.HasSuffix(path, ending):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestUnityCore runs the tests of the core that need no other programs.
func TestUnityCore(t *testing.T) {
	transcripts := filepath.Join("..", "..", "pkg", "client", "testdata", "failover.json")
	out, err := exec.Command("mono", unityCore(t), "pure", transcripts).CombinedOutput()
	if err != nil || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v:\n%s", err, out)
	}
	measured(t, claim.AtLeast("tests of the core by itself that hold, in C#",
		float64(strings.Count(string(out), "ok ")), "", 75))
}

// TestUnityRawPoints lets C# read points written by the Go codec, and the Go codec read those written by C#.
func TestUnityRawPoints(t *testing.T) {
	core, dir := unityCore(t), t.TempDir()
	cloud := &pointcloud.Cloud{}
	for i := range 1000 {
		v := float32(i) / 999
		cloud.Append([3]float32{v, 2 * v, -v}, [3]uint8{uint8(i), uint8(i >> 2), 7})
	}
	encoded, err := codec.CWI0.NewEncoder().Encode(nil, cloud, codec.Params{PositionBits: 16, Box: cloud.Bounds()})
	if err != nil {
		t.Fatal(err)
	}
	if err := codec.CWI0.NewDecoder().Decode(cloud, encoded); err != nil {
		t.Fatal(err)
	}
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	frame := append(vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, len(encoded), time.Time{}).Append(nil),
		encoded...)
	if err := os.WriteFile(from, frame, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mono", core, "points", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	frame, err = os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	var header vr2gather.FrameHeader
	data, err := header.Parse(frame)
	if err != nil || header.FourCC != vr2gather.CodecRawPoints {
		t.Fatalf("%v, codec %s", err, header.FourCC)
	}
	var again pointcloud.Cloud
	if err := codec.CWI0.NewDecoder().Decode(&again, data); err != nil ||
		!slices.Equal(again.Positions, cloud.Positions) || !slices.Equal(again.Colors, cloud.Colors) {
		t.Errorf("%v: got %d points, expected the same %d", err, again.Len(), cloud.Len())
	}
}

// TestUnityComponentsCompile compiles the components and samples against declarations of the engine's types.
func TestUnityComponentsCompile(t *testing.T) {
	compileUnity(t, filepath.Join(t.TempDir(), "unity.dll"), "Runtime", filepath.Join("Tests", "Engine"),
		filepath.Join("Samples~", "Conference"), filepath.Join("Samples~", "Direct"))
}

// TestUnityCoreDoesNotUseTheEngine checks that the core, which must compile without Unity, does not refer to it.
func TestUnityCoreDoesNotUseTheEngine(t *testing.T) {
	for _, file := range unityFiles(t, filepath.Join(unityPackage, "Runtime", "Core"), ".cs") {
		if text := readUnityFile(t, file); strings.Contains(text, "UnityEngine") ||
			strings.Contains(text, "UnityEditor") {
			t.Errorf("%s names the engine", file)
		}
	}
}

// reflective are the parts of Newtonsoft's library that create objects by reflection, which fails in players whose
// unused code is removed, and the functions with settings that other code can change.
var reflective = regexp.MustCompile(`\b(JsonConvert|JsonSerializer|JsonProperty|ToObject|FromObject|dynamic)\b`)

// TestUnityCoreReadsJSONWithoutReflection checks that the core reads and writes JSON by Newtonsoft's readers and trees.
func TestUnityCoreReadsJSONWithoutReflection(t *testing.T) {
	for _, file := range unityFiles(t, filepath.Join(unityPackage, "Runtime"), ".cs") {
		if found := reflective.FindString(readUnityFile(t, file)); found != "" {
			t.Errorf("%s uses %s", file, found)
		}
	}
}

// TestUnityPackageLayout checks the package against the requirements of Unity's package manager: a manifest, assembly
// definitions that name each other and the libraries of the packages that the manifest requires, and a .meta file with
// a unique GUID beside every file and folder, without which packages installed from elsewhere are not imported.
func TestUnityPackageLayout(t *testing.T) {
	var manifest struct {
		Name, Version, Unity string
		Dependencies         map[string]string
		Samples              []struct{ Path string }
	}
	unityJSON(t, filepath.Join(unityPackage, "package.json"), &manifest)
	if !regexp.MustCompile(`^[a-z]+(\.[a-z]+){2,}$`).MatchString(manifest.Name) ||
		!regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(manifest.Version) || manifest.Unity == "" {
		t.Errorf("package.json: name %q, version %q, unity %q", manifest.Name, manifest.Version, manifest.Unity)
	}
	for _, sample := range manifest.Samples {
		if entries, err := os.ReadDir(filepath.Join(unityPackage, sample.Path)); err != nil || len(entries) == 0 {
			t.Errorf("sample %s: %v", sample.Path, err)
		}
	}
	names := map[string]string{}
	definitions := unityFiles(t, unityPackage, ".asmdef")
	for _, file := range definitions {
		var definition struct{ Name string }
		unityJSON(t, file, &definition)
		names[definition.Name] = file
	}
	for _, file := range definitions {
		var definition struct {
			References, PrecompiledReferences []string
			OverrideReferences                bool
		}
		unityJSON(t, file, &definition)
		for _, library := range definition.PrecompiledReferences {
			if manifest.Dependencies[unityLibraries[library]] == "" || !definition.OverrideReferences {
				t.Errorf("%s refers to %s, which no package of the manifest has, or which is not used", file, library)
			}
		}
		for _, reference := range definition.References {
			if names[reference] == "" {
				t.Errorf("%s refers to %s, which no assembly definition is called", file, reference)
			}
		}
	}
	if len(names) < 3 {
		t.Errorf("%d assembly definitions, expected at least three", len(names))
	}
	guids := map[string]string{}
	for _, path := range unityFiles(t, unityPackage, "") {
		if path == unityPackage || strings.HasSuffix(path, ".meta") {
			continue
		}
		guid, err := unityGUID(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if guids[guid] != "" {
			t.Errorf("%s and %s have the same GUID", path, guids[guid])
		}
		guids[guid] = path
	}
	for _, meta := range unityFiles(t, unityPackage, ".meta") {
		if _, err := os.Stat(strings.TrimSuffix(meta, ".meta")); err != nil {
			t.Errorf("%s describes nothing", meta)
		}
	}
}

func unityGUID(path string) (string, error) {
	text, err := os.ReadFile(path + ".meta")
	if err != nil {
		return "", err
	}
	match := regexp.MustCompile(`(?m)^guid: ([0-9a-f]{32})$`).FindSubmatch(text)
	if match == nil {
		return "", fmt.Errorf("%s.meta has no GUID", path)
	}
	return string(match[1]), nil
}

func unityJSON(t *testing.T, file string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(readUnityFile(t, file)), into); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}

func readUnityFile(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
