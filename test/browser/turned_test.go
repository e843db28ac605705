package browser

import (
	"flag"
	"path/filepath"
	"testing"
)

// turned is the folder with the scene of TestDrawTurned.
var turned = flag.String("turned", "", "folder with scene.json, to draw its views in")

// TestDrawTurned draws captured people from the views of a file as the viewer draws them. vollab check rgbd compares
// the pictures with the true surface.
func TestDrawTurned(t *testing.T) {
	if *turned == "" {
		t.Skip("drawn on demand: vollab check rgbd")
	}
	folder, err := filepath.Abs(*turned)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, nil)
	v := begin(t, "turned.mjs", pageURL(s), folder)
	v.patience = 5 * patience
	v.expect("drawn", nil)
	v.expect("done", nil)
}
