package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestCheckRejectsUnknownVariables: a name that belongs to no key is an error, and the error has the name.
func TestCheckRejectsUnknownVariables(t *testing.T) {
	t.Setenv("VOLSFU_MEDIA_PROT", "7882")
	var out bytes.Buffer
	cmd := newConfig()
	cmd.SetArgs([]string{"check"})
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.Execute()
	if !errors.Is(err, errUnknownVariables) || !strings.Contains(err.Error(), "VOLSFU_MEDIA_PROT") ||
		strings.Contains(out.String(), "valid") {
		t.Errorf("expected an error that names the variable, got %v and %q", err, out.String())
	}
}
