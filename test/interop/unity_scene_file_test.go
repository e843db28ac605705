package interop

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	unityAnchor    = regexp.MustCompile(`(?m)^--- !u!\d+ &(\d+)$`)
	unityReference = regexp.MustCompile(`\{fileID: (\d+)(?:, guid: ([0-9a-f]{32}), type: \d)?\}`)
	unityScript    = regexp.MustCompile(`m_Script: \{fileID: 11500000, guid: ([0-9a-f]{32})`)
	unityField     = regexp.MustCompile(`(?m)^  ([a-z]\w*):`)
)

// TestUnitySampleScene checks the scene and the materials of the sample Direct: Unity drops a reference to something
// absent, and the value of an unknown field, without an error.
func TestUnitySampleScene(t *testing.T) {
	folder := filepath.Join(unityPackage, "Samples~", "Direct")
	known := map[string]string{}
	for _, part := range []string{filepath.Join(unityPackage, "Runtime"), folder} {
		for _, meta := range unityFiles(t, part, ".meta") {
			path := strings.TrimSuffix(meta, ".meta")
			guid, err := unityGUID(path)
			if err != nil {
				t.Fatal(err)
			}
			if known[guid] != "" {
				t.Errorf("%s and %s have the same GUID", path, known[guid])
			}
			known[guid] = path
		}
	}
	files := append(unityFiles(t, folder, ".unity"), unityFiles(t, folder, ".mat")...)
	if len(files) != 3 {
		t.Fatalf("%d files, expected a scene and two materials", len(files))
	}
	for _, file := range files {
		text := readUnityFile(t, file)
		anchors := map[string]bool{"0": true}
		for _, anchor := range unityAnchor.FindAllStringSubmatch(text, -1) {
			anchors[anchor[1]] = true
		}
		for _, reference := range unityReference.FindAllStringSubmatch(text, -1) {
			if id, guid := reference[1], reference[2]; guid == "" && !anchors[id] || guid != "" && known[guid] == "" {
				t.Errorf("%s refers to %s, which does not exist", file, reference[0])
			}
		}
		for _, document := range strings.Split(text, "\n--- ") {
			script := unityScript.FindStringSubmatch(document)
			if script == nil {
				continue
			}
			source := readUnityFile(t, known[script[1]])
			for _, field := range unityField.FindAllStringSubmatch(document, -1) {
				own := !strings.HasPrefix(field[1], "m_")
				if own && !regexp.MustCompile(`public \w+ `+field[1]+`\b`).MatchString(source) {
					t.Errorf("%s sets the field %s, which %s does not have", file, field[1], known[script[1]])
				}
			}
		}
	}
}
