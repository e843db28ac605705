package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteTable(t *testing.T) {
	document := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + benchBegin + "\nold\n" + benchEnd + "\nafter\n")
	if err := writeTable(document, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(document)
	if want := "before\n" + benchBegin + "\nnew\n" + benchEnd + "\nafter\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	write("before\n" + benchBegin + "\nold\n")
	if err := writeTable(document, "new\n"); !errors.Is(err, errMarkers) {
		t.Errorf("a document without an end: got %v, want errMarkers", err)
	}
	if err := writeTable(document+"x", "new\n"); err == nil {
		t.Error("a document that is not there was written")
	}
}
