package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// registry is a program in the place of Docker: the digest of a tag is a hash of its name and of $GENERATION.
const registry = `#!/bin/sh
[ "$1 $2 $3" = "buildx imagetools inspect" ] || exit 1
[ "$GENERATION" != broken ] || { echo none; exit 0; }
printf 'sha256:%s\n' "$(printf %s "$4$GENERATION" | sha256sum | cut -d' ' -f1)"
`

// TestImagesArePinned runs scripts/images.sh twice on copies of the files: each image of another project has the digest
// of its tag at that time, and nothing else changes.
func TestImagesArePinned(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "docker"), []byte(registry), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../scripts/images.sh")
	if err != nil {
		t.Fatal(err)
	}
	var files, before []string
	for _, name := range []string{"Dockerfile", "compose.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../deploy", name))
		if err != nil {
			t.Fatal(err)
		}
		files, before = append(files, filepath.Join(folder, name)), append(before, string(text))
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	pin := func(generation string) (output string, err error) {
		command := exec.Command("bash", append([]string{script}, files...)...)
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "GENERATION="+generation)
		text, err := command.CombinedOutput()
		return string(text), err
	}
	digest := regexp.MustCompile(`@sha256:[0-9a-f]{64}`)
	former := ""
	for _, generation := range []string{"first", "second"} {
		if output, err := pin(generation); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		all := ""
		for i, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
			if got := digest.ReplaceAllString(string(text), ""); got != digest.ReplaceAllString(before[i], "") {
				t.Errorf("%s differs by more than digests:\n%s", file, text)
			}
		}
		if n := len(digest.FindAllString(all, -1)); n != 4 || all == former {
			t.Errorf("%d images have digests, expected 4 that have changed:\n%s", n, all)
		}
		for line := range strings.Lines(all) {
			if strings.Contains(line, "volsfu:") && digest.MatchString(line) {
				t.Errorf("the project's own image has a digest: %s", line)
			}
		}
		former = all
	}
	if output, err := pin("broken"); err == nil || !strings.Contains(output, "expected sha256:") {
		t.Errorf("without a digest the script ends with %v: %s", err, output)
	}
}
