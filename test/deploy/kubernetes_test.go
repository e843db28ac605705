package deploy

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/volsfu/volsfu/internal/config"
)

// manifest is the part of a Kubernetes object that the tests check.
type manifest struct {
	Kind string
	Data map[string]string
	Spec struct {
		Replicas int
		Template struct {
			Spec struct {
				HostNetwork                   bool `yaml:"hostNetwork"`
				TerminationGracePeriodSeconds int  `yaml:"terminationGracePeriodSeconds"`
				Containers                    []struct {
					Env []struct{ Name, Value string }
				}
			}
		}
	}
}

// TestKubernetes: the configuration of the manifests is valid, and the deployment leaves time for rooms to drain.
func TestKubernetes(t *testing.T) {
	objects := make(map[string]manifest)
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, filepath.Join(root, "kubernetes", "volsfu.yaml"))))
	for {
		var m manifest
		err := decoder.Decode(&m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		objects[m.Kind] = m
	}
	if len(objects) != 4 {
		t.Fatalf("there are %d kinds of objects, expected 4", len(objects))
	}
	file := filepath.Join(t.TempDir(), "volsfu.yaml")
	if err := os.WriteFile(file, []byte(objects["ConfigMap"].Data["volsfu.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	pod := objects["Deployment"].Spec.Template.Spec
	environment := []string{"VOLSFU_CONFIG=" + file}
	for _, variable := range pod.Containers[0].Env {
		environment = append(environment, variable.Name+"="+variable.Value)
	}
	settings := config.DefaultConfig()
	loader := config.NewLoader(&settings)
	if err := errors.Join(loader.Load(environment), loader.Validate()); err != nil {
		t.Error(err)
	}
	if unknown := loader.UnknownVariables(environment); len(unknown) > 0 {
		t.Errorf("%q are no settings of the server", unknown)
	}
	if settings.Admin.Listen != "127.0.0.1:9090" || len(settings.Media.PublicIPs) == 0 || settings.Auth.KeyFile == "" {
		t.Errorf("the settings are %+v, %+v and %+v", settings.Admin, settings.Media.PublicIPs, settings.Auth.KeyFile)
	}
	grace := time.Duration(pod.TerminationGracePeriodSeconds) * time.Second
	if !pod.HostNetwork || grace <= settings.Server.DrainTime || objects["Deployment"].Spec.Replicas != 1 {
		t.Errorf("the pod is %+v, with a drain time of %v", pod, settings.Server.DrainTime)
	}
}
