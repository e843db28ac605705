package kubernetes

import (
	"encoding/json"
	"testing"
	"time"
)

// newPod returns a pod as the chart's, on a node unless the name is empty.
func newPod(t *testing.T, node string) Pod {
	t.Helper()
	var p Pod
	const text = `{"metadata": {"name": "volsfu-0", "namespace": "volsfu", "labels": {"app": "volsfu"}}, "spec": {
		"nodeSelector": {"volsfu": "server"}, "affinity": {"podAntiAffinity": {
			"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "kubernetes.io/hostname",
				"labelSelector": {"matchLabels": {"app": "volsfu"}}}]}},
		"containers": [{"ports": [{"protocol": "UDP", "hostPort": 7882}]}]}}`
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	p.Spec.NodeName = node
	return p
}

// newNodes returns nodes with the label of servers.
func newNodes(list ...string) (nodes []Node) {
	for _, name := range list {
		nodes = append(nodes, Node{Metadata: Metadata{Name: name,
			Labels: map[string]string{"kubernetes.io/hostname": name, "volsfu": "server"}}})
	}
	return nodes
}

// TestSchedule: each pod gets a node of its own that is fit.
func TestSchedule(t *testing.T) {
	nodes := newNodes("other", "cordoned", "tainted", "taken", "first", "second")
	nodes[0].Metadata.Labels["volsfu"] = "no"
	nodes[1].Spec.Unschedulable = true
	if err := json.Unmarshal([]byte(`{"spec": {"taints": [{"effect": "NoSchedule"}]}}`), &nodes[2]); err != nil {
		t.Fatal(err)
	}
	ending := newPod(t, "")
	ending.Metadata.DeletionTimestamp = new(time.Time)
	pods := []Pod{newPod(t, "taken"), ending, newPod(t, ""), newPod(t, ""), newPod(t, "")}
	assigned := schedule(pods, nodes)
	if len(assigned) != 2 || assigned[0].node != "first" || assigned[0].pod != &pods[2] ||
		assigned[1].node != "second" || assigned[1].pod != &pods[3] {
		t.Errorf("assigned %v, expected the third pod to first and the fourth to second", assigned)
	}
}

// TestSchedulePorts: pods without anti-affinity that occupy the same port of the host are on different nodes.
func TestSchedulePorts(t *testing.T) {
	taken, pod := newPod(t, "first"), newPod(t, "")
	pod.Spec.Affinity.Pod.Required = nil
	for _, protocol := range []string{"UDP", "TCP"} {
		pod.Spec.Containers[0].Ports[0].Protocol = protocol
		assigned := schedule([]Pod{taken, pod}, newNodes("first"))
		if (len(assigned) == 0) != (protocol == "UDP") {
			t.Errorf("%s: assigned %v beside a pod with UDP", protocol, assigned)
		}
	}
}

// TestScheduleDomains: anti-affinity keeps pods from the other nodes of a domain, too.
func TestScheduleDomains(t *testing.T) {
	nodes := newNodes("first", "second", "third")
	for i, zone := range []string{"a", "a", "b"} {
		nodes[i].Metadata.Labels["zone"] = zone
	}
	pod := newPod(t, "")
	pod.Spec.Affinity.Pod.Required[0].Topology = "zone"
	assigned := schedule([]Pod{newPod(t, "first"), pod}, nodes)
	if len(assigned) != 1 || assigned[0].node != "third" {
		t.Errorf("assigned %v, expected the node of the other zone", assigned)
	}
}
