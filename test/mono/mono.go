// Package mono compiles programs in C# for tests, with Debian's Mono.
package mono

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// newtonsoft is Debian's copy of the JSON library that Unity has as com.unity.nuget.newtonsoft-json. Debian's version
// is 6.0, Unity's 13.0; the parts that the Unity package uses are the same.
const newtonsoft = "/usr/lib/cli/Newtonsoft.Json-5.0/Newtonsoft.Json.dll"

// ErrMissing means that the compiler, the runtime or the JSON library is not installed.
var ErrMissing = errors.New("apt-get install mono-mcs mono-runtime libnewtonsoft-json5.0-cil")

// Compile compiles files, and puts the JSON library beside the output, where the runtime finds it. The output is a
// library if its name ends in .dll, otherwise a program. Warnings are errors. Errors wrap ErrMissing without Mono.
func Compile(ctx context.Context, output string, files ...string) error {
	for _, program := range []string{"mcs", "mono"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("there is no %s: %w", program, ErrMissing)
		}
	}
	library, err := os.ReadFile(newtonsoft)
	if err != nil {
		return fmt.Errorf("%w: %w", err, ErrMissing)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(output), filepath.Base(newtonsoft)), library, 0o600); err != nil {
		return err
	}
	args := []string{"-unsafe", "-langversion:7", "-warnaserror", "-warn:4", "-r:System.dll", "-r:System.Core.dll",
		"-r:" + newtonsoft, "-out:" + output}
	if strings.HasSuffix(output, ".dll") {
		args = append(args, "-target:library")
	}
	out, err := exec.CommandContext(ctx, "mcs", append(args, files...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mcs: %w\n%s", err, out)
	}
	return nil
}
