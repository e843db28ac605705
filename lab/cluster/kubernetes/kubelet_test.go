package kubernetes

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/wait"
)

// decode decodes an object.
func decode[Object any](t *testing.T, text string) *Object {
	t.Helper()
	object := new(Object)
	if err := json.Unmarshal([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestUnsupported: a pod as the chart's is accepted, and other features are refused by name.
func TestUnsupported(t *testing.T) {
	for feature, pod := range map[string]string{
		"": `{"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [
			{"readinessProbe": {"httpGet": {"host": "127.0.0.1", "path": "/readyz", "port": 9090}}}]}`,
		"hostNetwork": `{"containers": [{}]}`,
		"dnsPolicy":   `{"hostNetwork": true, "dnsPolicy": "ClusterFirst", "containers": [{}]}`,
		"container":   `{"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [{}, {}]}`,
		"lifecycle": `{"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [
			{"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}]}`,
		"httpGet": `{"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [
			{"livenessProbe": {"tcpSocket": {"port": 8080}}}]}`,
	} {
		err := unsupported(&Pod{Spec: *decode[PodSpec](t, pod)})
		if (err == nil) != (feature == "") || err != nil && !strings.Contains(err.Error(), feature) {
			t.Errorf("%q: the error is %v", feature, err)
		}
	}
}

// TestFailures: a container that ends by itself, with an error after SIGTERM or by SIGKILL is counted, also if its pod
// is gone.
func TestFailures(t *testing.T) {
	const loop = "; echo ready >&2; while :; do sleep 0.01; done"
	for name, test := range map[string]struct {
		script  string
		deleted bool
		// grace is the grace time of the pod in seconds.
		grace int64
		want  int64
	}{
		"by itself":           {"echo ready >&2; exit 0", false, 0, 1},
		"after SIGTERM":       {"trap 'exit 0' TERM" + loop, true, 3600, 0},
		"error after SIGTERM": {"trap 'exit 3' TERM" + loop, true, 3600, 1},
		"SIGKILL":             {"trap '' TERM" + loop, true, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			process, err := lab.StartCommand(name, exec.Command("/bin/sh", "-c", test.script), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(process.Kill)
			wait.Until(t, "the start", func() bool { return strings.Contains(process.LastOutput(), "ready") })
			c, now := &container{process: process}, time.Now()
			if test.deleted {
				c.pod.Metadata.DeletionTimestamp = &now
			}
			c.pod.Metadata.DeletionGrace, c.pod.Spec.Containers = test.grace, []Container{{}}
			api := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
			k := &kubelet{cluster: &Cluster{client: api}, running: map[string]*container{"": c}}
			wait.Until(t, "the end", func() bool {
				if err := k.advance(t.Context(), c, now); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Millisecond)
				return !c.ended.IsZero()
			})
			if got := k.cluster.Failures(); got != test.want {
				t.Errorf("%d failures are counted, expected %d", got, test.want)
			}
			if test.deleted && len(k.running) > 0 {
				t.Error("the pod still has a container")
			}
		})
	}
}

// TestVariables: variables have the values of fields, and arguments those of variables.
func TestVariables(t *testing.T) {
	k := &kubelet{host: Host{Name: "a", Address: netip.MustParseAddr("10.8.0.1")}}
	pod := &Pod{Metadata: Metadata{Name: "volsfu-0", Namespace: "conferences"}}
	variables := make(map[string]string)
	for _, text := range []string{`{"name": "FIXED", "value": "x"}`,
		`{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}`,
		`{"name": "HOST_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}`} {
		v := decode[Variable](t, text)
		value, err := k.value(pod, v)
		if err != nil {
			t.Fatal(err)
		}
		variables[v.Name] = value
	}
	got := expand("--a=$(FIXED)/$(POD_NAME) $(HOST_ADDRESS) $(OTHER) $FIXED", variables)
	if want := "--a=x/volsfu-0 10.8.0.1 $(OTHER) $FIXED"; got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	for _, text := range []string{`{"name": "A", "valueFrom": {"secretKeyRef": {}}}`,
		`{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}`} {
		if value, err := k.value(pod, decode[Variable](t, text)); err == nil {
			t.Errorf("%s has the value %q", text, value)
		}
	}
}

// TestComplete: a rollout is complete when all pods of the present template are available.
func TestComplete(t *testing.T) {
	const complete = `{"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": {"observedGeneration": 2,
		"availableReplicas": 3, "currentRevision": "b", "updateRevision": "b"}}`
	if !decode[StatefulSet](t, complete).Complete() {
		t.Error("the rollout is not complete")
	}
	for _, change := range [][2]string{{`"generation": 2`, `"generation": 3`}, {`Replicas": 3`, `Replicas": 2`},
		{`"currentRevision": "b"`, `"currentRevision": "a"`}} {
		if decode[StatefulSet](t, strings.Replace(complete, change[0], change[1], 1)).Complete() {
			t.Errorf("the rollout is complete with %s", change[1])
		}
	}
}

// TestFindPrograms: a missing program is named with the command that installs it.
func TestFindPrograms(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := FindPrograms(t.TempDir())
	if !errors.Is(err, lab.ErrUnable) || !strings.Contains(err.Error(), "apt-get install etcd-server") {
		t.Errorf("the error is %v", err)
	}
}
