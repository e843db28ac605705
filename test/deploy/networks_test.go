package deploy

import (
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAdminListenerInCompose checks compose.yaml: only Prometheus shares a network with the server, whose admin
// listener needs no token, and the port of that listener is not published.
func TestAdminListenerInCompose(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Networks []string
			Ports    []string
		}
	}
	if err := yaml.Unmarshal(read(t, filepath.Join(root, "compose.yaml")), &compose); err != nil {
		t.Fatal(err)
	}
	server, ok := compose.Services["volsfu"]
	if !ok {
		t.Fatal("there is no service volsfu")
	}
	if want := []string{"8080:8080", "7882:7882/udp", "7882:7882/tcp"}; !slices.Equal(server.Ports, want) {
		t.Errorf("the ports %q are published, expected %q", server.Ports, want)
	}
	if len(server.Networks) == 0 {
		t.Error("the server is in the default network, as are services that name none")
	}
	shares := func(networks []string) bool {
		return slices.ContainsFunc(networks, func(n string) bool { return slices.Contains(server.Networks, n) })
	}
	for name, service := range compose.Services {
		if name != "volsfu" && (len(service.Networks) == 0 || shares(service.Networks)) != (name == "prometheus") {
			t.Errorf("%s is in the networks %q, the server in %q", name, service.Networks, server.Networks)
		}
	}
}
