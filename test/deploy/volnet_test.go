package deploy

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// TestVolnetConfiguration loads the sample, with the part that is commented out as well.
func TestVolnetConfiguration(t *testing.T) {
	text := string(read(t, filepath.Join(root, "volnet.yaml")))
	c, err := edge.Parse("volnet.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if c.Controller != nil || len(c.Paths) != 2 || len(c.Send.Rules) != 2 || len(c.Receive.Inner) != 1 {
		t.Errorf("the sample is %+v", c)
	}
	if c, err = edge.Parse("volnet.yaml", []byte(strings.ReplaceAll(text, "\n#", "\n"))); err == nil {
		t.Fatalf("comments are read as keys: %+v", c)
	}
	for _, key := range []string{"controller:", "  url:", "  token-file:"} {
		text = strings.Replace(text, "\n#"+key, "\n"+key, 1)
	}
	if c, err = edge.Parse("volnet.yaml", []byte(text)); err != nil || c.Controller == nil {
		t.Errorf("with a controller the sample is %+v, %v", c, err)
	}
}

// TestVolnetUnit checks that the edge has its two capabilities and no other, that systemd always restarts it, except if
// its configuration is invalid, and that it may call bpf.
func TestVolnetUnit(t *testing.T) {
	u, err := parseUnit(string(read(t, filepath.Join(root, "systemd", "volnet.service"))))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"AmbientCapabilities": "CAP_BPF CAP_NET_ADMIN", "CapabilityBoundingSet": "CAP_BPF CAP_NET_ADMIN",
		"User": "volnet", "NoNewPrivileges": "yes", "Restart": "on-failure", "RestartPreventExitStatus": "2",
		"RuntimeDirectory": "volnet", "RuntimeDirectoryPreserve": "yes",
	} {
		if got := u.one(t, "Service", key); got != want {
			t.Errorf("%s is %q, expected %q", key, got, want)
		}
	}
	if got := u.one(t, "Unit", "StartLimitIntervalSec"); got != "0" {
		t.Errorf("StartLimitIntervalSec is %s, expected 0", got)
	}
	// The last list decides: @privileged contains bpf.
	if filters := u["Service"]["SystemCallFilter"]; filters[len(filters)-1] != "bpf" {
		t.Errorf("the system calls are %q, expected bpf last", filters)
	}
	memory, err := parseBytes(u.one(t, "Service", "MemoryMax"))
	if err != nil || memory > 256<<20 {
		t.Errorf("MemoryMax is %d, %v, expected at most 256 MiB", memory, err)
	}
	// The keys that volsfu.service has for hardening.
	hardened, err := parseUnit(string(read(t, unitPath)))
	if err != nil {
		t.Fatal(err)
	}
	for key, values := range hardened["Service"] {
		hardens := strings.HasPrefix(key, "Protect") || strings.HasPrefix(key, "Restrict") ||
			strings.HasPrefix(key, "Private")
		if hardens && !slices.Equal(u["Service"][key], values) {
			t.Errorf("%s is %q, expected %q as in volsfu.service", key, u["Service"][key], values)
		}
	}
}
