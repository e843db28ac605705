package mono

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, text string) (output, file string) {
	t.Helper()
	folder := t.TempDir()
	file = filepath.Join(folder, "Program.cs")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "program.exe"), file
}

func TestAProgramFindsTheLibrary(t *testing.T) {
	output, file := write(t, `static class Program
{
    static void Main() { System.Console.WriteLine(Newtonsoft.Json.Linq.JToken.Parse("[7]")[0]); }
}`)
	if err := Compile(t.Context(), output, file); errors.Is(err, ErrMissing) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mono", output).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "7" {
		t.Errorf("%v: the program printed %q, expected 7", err, out)
	}
}

func TestAWarningIsAnError(t *testing.T) {
	output, file := write(t, "static class Program { static void Main() { int unused; } }")
	err := Compile(t.Context(), output, file)
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "unused") {
		t.Errorf("got %v, expected the warning about the variable", err)
	}
}
