package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/internal/config"
)

// variable matches an environment variable that compose.yaml, the unit or a drop-in sets for the server.
var variable = regexp.MustCompile(`(?m)^(?:\s+|Environment=)(` + config.EnvironmentPrefix + `[A-Z_]+)[:=]`)

// TestSettingsExist checks the variables, since the server ignores unknown ones and a misspelt one would go unnoticed.
func TestSettingsExist(t *testing.T) {
	settings := config.DefaultConfig()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.NewLoader(&settings).AddFlags(flags)
	known := make(map[string]bool)
	flags.VisitAll(func(f *pflag.Flag) {
		known[config.EnvironmentPrefix+strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))] = true
	})
	for _, path := range []string{filepath.Join(root, "compose.yaml"),
		filepath.Join(root, "systemd", "volsfu.service"), filepath.Join(root, "systemd", "tls.conf"),
		filepath.Join(root, "systemd", "acme.conf")} {
		matches := variable.FindAllStringSubmatch(string(read(t, path)), -1)
		if len(matches) == 0 {
			t.Errorf("%s: expected settings of the server, found none", path)
		}
		for _, match := range matches {
			if !known[match[1]] {
				t.Errorf("%s sets %s, which is not a setting of the server", path, match[1])
			}
		}
	}
}
